import { assert, describe, it } from "@effect/vitest"
import * as DurableWriter from "@strata/durable/DurableWriter"
import { Cells, durableWriterSuite } from "@strata/durable/testing"
import { SqliteClient } from "@strata/sqlite"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Random from "effect/Random"
import * as SqlClient from "effect/sql/SqlClient"
import { ConstraintError, LockTimeoutError, SqlError } from "effect/sql/SqlError"
import * as TestClock from "effect/testing/TestClock"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { isConflict } from "../src/internal/retry.ts"

const cellsMemory = Layer.sync(Cells, () => {
  const cells = new Map<string, number>()
  const set = (name: string, value: number) =>
    DurableWriter.WriteTransaction.use((transaction) => {
      const before = cells.get(name)
      cells.set(name, value)
      return transaction.onRollback(() => {
        if (before === undefined) cells.delete(name)
        else cells.set(name, before)
      })
    })
  return Cells.of({
    get: (name) => Effect.sync(() => cells.get(name)),
    set,
    insert: (name, value) => (cells.has(name) ? Effect.fail("exists") : set(name, value))
  })
})

const cellsSql = Layer.effect(
  Cells,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const writer = yield* DurableWriter.DurableWriter
    yield* writer.write(sql`CREATE TABLE IF NOT EXISTS cell (name TEXT PRIMARY KEY, value INTEGER NOT NULL)`)
    return Cells.of({
      get: (name) =>
        Effect.map(sql`SELECT value FROM cell WHERE name = ${name}`.values, (rows) => rows[0]?.[0] as number),
      set: (name, value) => sql`INSERT OR REPLACE INTO cell VALUES (${name}, ${value})`,
      insert: (name, value) => sql`INSERT INTO cell VALUES (${name}, ${value})`
    })
  })
)

const layerSqlite = (filename: string) =>
  cellsSql.pipe(Layer.provideMerge(DurableWriter.layer()), Layer.provideMerge(SqliteClient.layer({ filename })))

const tempFile = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "strata-durable-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  ),
  (folder) => join(folder, "test.db")
)

durableWriterSuite("memory", { layer: () => Layer.provideMerge(cellsMemory, DurableWriter.layerMemory()) })

durableWriterSuite("sqlite", {
  layer: () => layerSqlite(":memory:"),
  twoConnections: () =>
    Effect.gen(function* () {
      const filename = yield* tempFile
      return [yield* Layer.build(layerSqlite(filename)), yield* Layer.build(layerSqlite(filename))] as const
    })
})

const conflict = new SqlError({ reason: new LockTimeoutError({ cause: new Error("any text") }) })
const broken = new SqlError({ reason: new ConstraintError({ cause: new Error("database is locked") }) })

describe("retry", () => {
  const attempts = (
    options: DurableWriter.DurableWriterOptions,
    body: (attempt: number) => Effect.Effect<void, unknown>
  ) =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql`CREATE TABLE IF NOT EXISTS t (id INTEGER)`
      const writer = yield* DurableWriter.make(options)
      const times: Array<number> = []
      const fiber = yield* Effect.forkChild(
        Effect.exit(
          writer.write(
            Effect.gen(function* () {
              times.push(yield* Effect.clockWith((clock) => clock.currentTimeMillis))
              yield* sql`INSERT INTO t VALUES (${times.length})`
              yield* body(times.length)
            })
          )
        )
      )
      return { times, fiber, sql }
    })

  const sqlite = it.layer(SqliteClient.layer({ filename: ":memory:" }), { excludeTestServices: false })

  sqlite("on SQLite", (it) => {
    it.effect("replays the whole body after a conflict, and keeps only the last attempt", () =>
      Effect.gen(function* () {
        const { fiber, sql } = yield* attempts({}, (attempt) => (attempt < 4 ? Effect.fail(conflict) : Effect.void))
        yield* TestClock.adjust("1 second")
        assert.isTrue(Exit.isSuccess(yield* Fiber.join(fiber)))
        assert.deepStrictEqual(
          (yield* sql`SELECT id FROM t`).map((row) => row.id),
          [4]
        )
      })
    )

    it.effect("never waits longer than the cap, and gives up in the stated time", () =>
      Effect.gen(function* () {
        const { fiber, times } = yield* attempts(
          { retryBase: "10 millis", retryCap: "40 millis", retryFor: "2 seconds" },
          () => Effect.fail({ _tag: "Mine", reason: conflict })
        )
        for (let i = 0; i < 300; i++) yield* TestClock.adjust("10 millis")
        assert.isTrue(Exit.isFailure(yield* Fiber.join(fiber)))
        const delays = times.slice(1).map((time, i) => time - times[i]!)
        assert.isAtMost(Math.max(...delays), 40)
        assert.isAtLeast(Math.min(...delays.slice(2)), 20)
        assert.isAbove(new Set(delays.slice(3)).size, 1)
        assert.isAtLeast(times.at(-1)! - times[0]!, 1_900)
      }).pipe(Random.withSeed("delays"))
    )

    it.effect("does not retry anything else, whatever its message says", () =>
      Effect.gen(function* () {
        for (const error of [broken, new Error("database is locked"), "SQLITE_BUSY"]) {
          const { fiber, times } = yield* attempts({}, () => Effect.fail(error))
          assert.deepStrictEqual(yield* Fiber.join(fiber), Exit.fail(error))
          assert.strictEqual(times.length, 1)
        }
      })
    )

    it.effect("leaves the retry to the outermost write", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const writer = yield* DurableWriter.make()
        let outer = 0
        let inner = 0
        const fiber = yield* Effect.forkChild(
          writer.write(
            Effect.suspend(() => {
              outer++
              return writer.write(
                Effect.suspend(() => (++inner < 3 ? Effect.fail(conflict) : Effect.asVoid(sql`SELECT 1`)))
              )
            })
          )
        )
        yield* TestClock.adjust("1 second")
        yield* Fiber.join(fiber)
        assert.deepStrictEqual([outer, inner], [3, 3])
      })
    )

    it.effect("works again after a disk that was full and a COMMIT that failed", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const writer = yield* DurableWriter.make()
        yield* sql`CREATE TABLE big (b BLOB)`
        const pages = (yield* sql.unsafe("PRAGMA page_count").values)[0]![0] as number
        yield* sql.unsafe(`PRAGMA max_page_count = ${pages + 2}`)
        const full = yield* Effect.exit(writer.write(sql`INSERT INTO big VALUES (zeroblob(1000000))`))
        assert.isTrue(Exit.isFailure(full))
        yield* sql.unsafe("PRAGMA max_page_count = 1000000")
        yield* writer.write(sql`INSERT INTO big VALUES (zeroblob(1000000))`)

        yield* sql`CREATE TABLE parent (id INTEGER PRIMARY KEY)`
        yield* sql`CREATE TABLE child (id INTEGER REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED)`
        const failed = yield* Effect.flip(writer.write(sql`INSERT INTO child VALUES (1)`))
        assert.strictEqual(failed.reason._tag, "ConstraintError")
        yield* writer.write(sql`INSERT INTO parent VALUES (1)`)
        assert.strictEqual((yield* sql`SELECT * FROM child`).length, 0)
      })
    )

    it.effect("undoes what shared a full disk once, and runs it again as a write of its own", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const writer = yield* DurableWriter.make()
        yield* sql`CREATE TABLE IF NOT EXISTS t (id INTEGER)`
        yield* sql`DELETE FROM t`
        yield* sql`CREATE TABLE IF NOT EXISTS big (b BLOB)`
        const pages = (yield* sql.unsafe("PRAGMA page_count").values)[0]![0] as number
        yield* sql.unsafe(`PRAGMA max_page_count = ${pages + 2}`)
        const seen: Array<string> = []
        const innocent = (i: number) =>
          writer.write(
            Effect.gen(function* () {
              seen.push(`run ${i}`)
              const transaction = yield* DurableWriter.WriteTransaction
              yield* transaction.onRollback(() => void seen.push(`undone ${i}`))
              yield* writer.write(sql`INSERT INTO t VALUES (${i})`)
              // The others come while this one has its turn.
              yield* Effect.yieldNow
              yield* transaction.afterCommit(Effect.sync(() => void seen.push(`committed ${i}`)))
            })
          )
        const full = writer.write(sql`INSERT INTO big VALUES (zeroblob(1000000))`)
        const exits = yield* Effect.all([innocent(1), innocent(2), full, innocent(3)].map(Effect.exit), {
          concurrency: "unbounded"
        })
        assert.deepStrictEqual(exits.map(Exit.isSuccess), [true, true, false, true])
        assert.deepStrictEqual((yield* sql`SELECT id FROM t ORDER BY id`.values).flat(), [1, 2, 3])
        for (const i of [1, 2]) {
          assert.deepStrictEqual(
            seen.filter((line) => line.endsWith(String(i))),
            ["run", "undone", "run", "committed"].map((what) => `${what} ${i}`)
          )
        }
        yield* sql.unsafe("PRAGMA max_page_count = 1000000")
      })
    )

    it.effect("joins a transaction that a fiber has begun which outlived a write", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const writer = yield* DurableWriter.make()
        yield* sql`CREATE TABLE IF NOT EXISTS t (id INTEGER)`
        yield* sql`DELETE FROM t`
        const ended = yield* Deferred.make<void>()
        const inside: Array<boolean> = []
        const own = writer.write(sql`INSERT INTO t VALUES (1)`).pipe(
          Effect.andThen(DurableWriter.insideTransaction),
          Effect.map((isInside) => void inside.push(isInside)),
          Effect.andThen(Effect.fail("no"))
        )
        const late = Effect.andThen(Deferred.await(ended), Effect.exit(sql.withTransaction(own)))
        const forked = yield* writer.write(Effect.forkDetach(late))
        yield* Deferred.succeed(ended, undefined)
        assert.deepStrictEqual(yield* Fiber.join(forked), Exit.fail("no"))
        assert.deepStrictEqual(inside, [true])
        assert.deepStrictEqual(yield* sql`SELECT id FROM t`, [])
      })
    )

    it.effect("undoes what a nested write registered with its outer one, in a transaction of the client's own", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const writer = yield* DurableWriter.make()
        const undone: Array<string> = []
        const register = (text: string) =>
          DurableWriter.WriteTransaction.use(({ onRollback }) => onRollback(() => void undone.push(text)))
        const outer = register("outer").pipe(
          Effect.andThen(writer.write(register("inner"))),
          Effect.andThen(Effect.fail("no"))
        )
        yield* sql.withTransaction(Effect.exit(writer.write(outer)))
        assert.deepStrictEqual(undone, ["inner", "outer"])
      })
    )

    it.effect("logs a write that held its transaction for long, with its span", () =>
      Effect.gen(function* () {
        const lines: Array<string> = []
        const logger = Logger.make(({ message }) => void lines.push(String(message)))
        const writer = yield* DurableWriter.make({ slowWrite: "100 millis" })
        const program = Effect.gen(function* () {
          yield* writer.write(Effect.void)
          const fiber = yield* Effect.forkChild(
            writer.write(Effect.sleep(Duration.millis(150))).pipe(Effect.withSpan("slow one"))
          )
          yield* TestClock.adjust("150 millis")
          yield* Fiber.join(fiber)
        })
        yield* Effect.provide(program, Logger.layer([logger]))
        assert.strictEqual(lines.length, 1)
      })
    )
  })

  it("recognises a conflict through reasons and causes, of any depth but not for ever", () => {
    const loop: { cause?: unknown } = {}
    loop.cause = loop
    assert.isTrue(isConflict(conflict))
    assert.isTrue(isConflict({ cause: { reason: { _tag: "Storage", cause: conflict } } }))
    assert.isTrue(isConflict(new Error("outer", { cause: conflict })))
    for (const other of [broken, loop, undefined, null, "locked", { reason: "text" }]) assert.isFalse(isConflict(other))
  })
})
