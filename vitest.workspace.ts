import { existsSync, readdirSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"

const projects = ["packages", "examples"].flatMap((folder) =>
  readdirSync(new URL(folder, import.meta.url)).map((name) => ({ name, root: `${folder}/${name}` }))
)

/** A project may have a `test/globalSetup.ts`, which runs once before its tests. */
const globalSetup = (root: string): ReadonlyArray<string> =>
  ["test/globalSetup.ts"].filter((file) => existsSync(new URL(`${root}/${file}`, import.meta.url)))

/** Fails each test in which a fiber uses the network while it is inside of a write. */
const socketGuard = fileURLToPath(new URL("packages/conformance/src/setup.ts", import.meta.url))

export default defineConfig({
  test: {
    reporters: ["default", "./scripts/count-reporter.mjs"],
    projects: projects.map(({ name, root }) => ({
      ssr: { resolve: { conditions: ["@strata/source", "node", "import", "default"] } },
      test: {
        name,
        root,
        include: ["test/**/*.test.ts"],
        globalSetup: [...globalSetup(root)],
        setupFiles: [socketGuard],
        testTimeout: 30_000,
        hookTimeout: 60_000
      }
    }))
  }
})
