import { assert, describe, it } from "@effect/vitest"
import * as DurableWriter from "@strata/durable/DurableWriter"
import * as Event from "@strata/journal/Event"
import * as Journal from "@strata/journal/Journal"
import { StreamName } from "@strata/journal/StreamName"
import * as SqliteClient from "@strata/sqlite/SqliteClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { afterEach, beforeEach } from "vitest"
import { type Folder, makeFolder } from "./program.ts"

let folder: Folder

beforeEach(() => {
  folder = makeFolder()
  folder.write("docs/a.txt", "word")
  folder.run(["index", "docs"])
})

afterEach(() => folder.remove())

/** Appends as another process does. */
const append = (stream: string, payloads: ReadonlyArray<number>) =>
  Effect.gen(function* () {
    const journal = yield* Journal.Journal
    for (const n of payloads) {
      yield* DurableWriter.write(journal.append(StreamName.make(stream), [Event.json("counted", { n })]))
    }
  }).pipe(
    Effect.provide(
      Layer.mergeAll(Journal.layerSql(), DurableWriter.layer()).pipe(
        Layer.provide(SqliteClient.layer({ filename: join(folder.path, ".strata", "strata.db") }))
      )
    )
  )

const numbers = (entries: ReadonlyArray<{ readonly payload: { readonly n: number } }>) =>
  entries.map(({ payload }) => payload.n)

describe("strata journal", () => {
  it("shows nothing where there is nothing, and is no index of its own", () => {
    assert.deepStrictEqual(folder.json(["journal"]), { code: 0, entries: [] })
    assert.strictEqual(folder.run(["journal"]).out, "")
    const { code, error } = folder.json(["journal", "--database", "other.db"])
    assert.deepStrictEqual([code, error.tag], [3, "DatabaseFileError"])
  })

  it.live("shows the last entries of all streams, in order, or of one", () =>
    Effect.gen(function* () {
      yield* append("one", [1, 2])
      yield* append("two", [3])
      yield* append("one", [4, 5])
      const all = folder.json(["journal"])
      assert.deepStrictEqual(numbers(all.entries), [1, 2, 3, 4, 5])
      assert.deepInclude(all.entries[2], { stream: "two", seq: 1, type: "counted", payload: { n: 3 } })
      assert.isAbove(all.entries[2].recordedAt, 1_600_000_000_000)
      assert.deepStrictEqual(numbers(folder.json(["journal", "--limit", "3"]).entries), [3, 4, 5])
      assert.deepStrictEqual(numbers(folder.json(["journal", "--limit", "0"]).entries), [])
      assert.deepStrictEqual(numbers(folder.json(["journal", "--stream", "one", "--limit", "3"]).entries), [2, 4, 5])
      assert.deepStrictEqual(folder.json(["journal", "--stream", "on"]).entries, [])
      const lines = folder.run(["journal", "--limit", "1"]).out.trim().split("\n")
      assert.strictEqual(lines.length, 1)
      assert.match(lines[0] ?? "", /^\d{4}-\d\d-\d\dT[\d:.]+Z {2}one {2}4 {2}counted {2}\{"n":5\}$/)
    })
  )

  it.live("follows what other processes append", () =>
    Effect.gen(function* () {
      yield* append("one", [1, 2])
      const child = folder.start(["journal", "--follow", "--limit", "1", "--json"])
      const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
      const next = Effect.promise(async () => JSON.parse(String((await lines.next()).value)).payload.n)
      assert.strictEqual(yield* next, 2)
      yield* append("two", [3, 4])
      assert.strictEqual(yield* next, 3)
      assert.strictEqual(yield* next, 4)
    })
  )

  it("refuses what makes no sense", () => {
    assert.strictEqual(folder.run(["journal", "--limit", "-1"]).code, 2)
    assert.strictEqual(folder.run(["journal", "--stream", ""]).code, 2)
  })
})
