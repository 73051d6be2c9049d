/** What happens to the database while `watch` runs. */
import { assert, describe, it } from "@effect/vitest"
import * as Postgres from "@strata/durable/testing/postgres"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as fs from "node:fs"
import { join } from "node:path"
import { type Folder, makeFolder } from "./program.ts"

const folder = Effect.acquireRelease(Effect.sync(makeFolder), (folder) => Effect.sync(() => folder.remove()))

const until = (isTrue: () => boolean) =>
  Effect.promise(async () => {
    const end = performance.now() + 20_000
    while (!isTrue()) {
      assert.isBelow(performance.now(), end, "it takes too long")
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  })

const watch = (machine: Folder, ...args: ReadonlyArray<string>) => {
  const child = machine.start(["watch", "docs", ...args])
  const said = { out: "", err: "" }
  child.stdout!.on("data", (chunk) => (said.out += String(chunk)))
  child.stderr!.on("data", (chunk) => (said.err += String(chunk)))
  return { child, said }
}

describe("while watch runs", { timeout: 120_000 }, () => {
  it.live("a database file that is deleted ends it", () =>
    Effect.gen(function* () {
      const machine = yield* folder
      machine.write("docs/a.md", "first words")
      const { child, said } = watch(machine)
      yield* until(() => said.out.includes("1 file indexed"))
      fs.rmSync(join(machine.path, ".strata"), { recursive: true })
      machine.write("docs/b.md", "second words")
      yield* until(() => child.exitCode !== null)
      const file = join(machine.path, ".strata/strata.db")
      assert.strictEqual(child.exitCode, 3)
      assert.strictEqual(
        said.err,
        `watching docs\nstrata: the index ${file} was deleted or replaced while it was in use\n`
      )
      assert.strictEqual(said.out, "1 file indexed, 0 removed, 0 failed\n")
    })
  )

  it.live.skipIf(!Postgres.isAvailable())("a server that is started anew is waited for", () =>
    Effect.gen(function* () {
      const machine = yield* folder
      const server = yield* Postgres.make({ durable: true, quiet: true })
      const database = Redacted.value(server.url)
      machine.write("docs/a.md", "first words")
      const { child, said } = watch(machine, "--json", "--database", database)
      yield* until(() => said.out.includes("\n"))
      for (const word of ["second", "third"]) {
        // First as an administrator does, who has it take leave of its clients.
        if (word === "second") {
          process.kill(server.pid, "SIGINT")
          yield* Effect.sleep("1 second")
        }
        yield* server.kill
        machine.write(`docs/${word}.md`, `${word} words`)
        yield* Effect.sleep("3 seconds")
        yield* server.restart
        yield* until(() => machine.json(["search", word, "--database", database]).total === 1)
      }
      assert.isNull(child.exitCode)
      const told = said.err.trim().split("\n")
      assert.strictEqual(told.length, 2, said.err)
      for (const line of told) {
        assert.match(line, /^postgres:\/\/[^@]*: .*; watch waits for it, and goes on$/)
      }
      assert.include(said.out, '"failed":1')
      child.kill("SIGINT")
      yield* until(() => child.exitCode !== null)
      assert.strictEqual(child.exitCode, 130)
    })
  )
})
