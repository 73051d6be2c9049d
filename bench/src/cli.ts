/** The whole process of a search against that of Node with nothing to do. */
import * as Effect from "effect/Effect"
import { execFileSync } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { type Bench, type Run, temporaryFolder, timed } from "./Harness.ts"

const launcher = fileURLToPath(new URL("../../packages/cli/bin/strata.js", import.meta.url))

const spawn = (args: ReadonlyArray<string>, cwd: string): Run =>
  timed(Effect.sync(() => void execFileSync(process.execPath, args, { cwd })))

/** With a database of its own: one in a folder above would be found. */
const strata = (cwd: string, ...args: ReadonlyArray<string>) =>
  spawn([launcher, ...args, "--database", "bench.db"], cwd)

const searchable = Effect.gen(function* () {
  const folder = yield* temporaryFolder
  mkdirSync(join(folder, "docs"))
  for (let i = 0; i < 50; i++) {
    writeFileSync(join(folder, "docs", `page-${i}.md`), `# Page ${i}\n\nThe dirty queue of page ${i}.\n`)
  }
  yield* strata(folder, "index", "docs")
  return folder
})

export const cli: Bench = {
  name: "cli",
  cases: [
    {
      name: "search-process",
      about: "strata search in a small database, the whole process; node-startup is node -e 0",
      unit: "ms",
      better: "lower",
      contenders: Effect.map(searchable, (folder) => ({
        ours: strata(folder, "search", "dirty queue"),
        rivals: { "node-startup": spawn(["-e", "0"], folder) }
      }))
    }
  ]
}
