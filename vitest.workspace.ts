import { readdirSync } from "node:fs"
import { defineConfig } from "vitest/config"

const projects = ["packages", "examples"].flatMap((folder) =>
  readdirSync(new URL(folder, import.meta.url)).map((name) => ({ name, root: `${folder}/${name}` }))
)

export default defineConfig({
  test: {
    projects: projects.map(({ name, root }) => ({
      ssr: { resolve: { conditions: ["@strata/source", "node", "import", "default"] } },
      test: { name, root, include: ["test/**/*.test.ts"], testTimeout: 30_000, hookTimeout: 60_000 }
    }))
  }
})
