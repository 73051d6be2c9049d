import { assert, describe, it } from "@effect/vitest"
import { Action, Journal, Strata } from "@strata/strata"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const countWords = () => {
  let runs = 0
  const action = Action.make({
    name: "word-count",
    version: "1",
    input: Schema.String,
    success: Schema.Int,
    run: (text) => Effect.sync(() => (runs++, text.split(/\s+/).length))
  })
  return { action, runs: () => runs }
}

const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "strata-cache-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

const sqlite = (folder: string) =>
  Strata.layerCache({ directory: join(folder, "artifacts") }).pipe(
    Layer.provideMerge(Strata.layerSqlite({ filename: join(folder, "app.db") }))
  )

const memory = Strata.layerCacheTest().pipe(Layer.provideMerge(Strata.layerTest))

describe("the cache on top of a bundle", () => {
  it.effect("runs an action once, and says why its result is there", () =>
    Effect.gen(function* () {
      const { action, runs } = countWords()
      assert.strictEqual(yield* Action.run(action, "to be or not"), 4)
      assert.strictEqual(yield* Action.run(action, "to be or not"), 4)
      assert.strictEqual(runs(), 1)
      const entries = yield* Journal.Journal.use((journal) => journal.readAll())
      assert.deepStrictEqual(
        entries.map(({ type }) => type),
        ["cache-recorded"]
      )
    }).pipe(Effect.provide(memory))
  )

  it.live("remembers it in the file", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const { action, runs } = countWords()
      for (const decision of ["ran", "local-hit"] as const) {
        const outcome = yield* Effect.provide(Action.result(action, "to be"), sqlite(folder))
        assert.deepInclude(outcome, { value: 2, decision })
      }
      assert.strictEqual(runs(), 1)
    })
  )
})
