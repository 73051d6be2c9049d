import { assert, describe, it } from "@effect/vitest"
import { SqliteClient } from "@strata/sqlite"
import * as DataVersion from "@strata/sqlite/DataVersion"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as Stream from "effect/Stream"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"

const tempFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "strata-sqlite-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

const tempFile = Effect.map(tempFolder, (folder) => join(folder, "test.db"))

const open = (options: SqliteClient.SqliteClientOptions) => Effect.provide(SqliteClient.make(options), Reactivity.layer)

const memory = open({ filename: ":memory:" })

describe("SqliteClient", () => {
  it.effect("binds every type SQLite has, and the ones it lacks by a stated rule", () =>
    Effect.gen(function* () {
      const sql = yield* memory
      const bytes = new Uint8Array([0, 255])
      const rows = yield* sql`SELECT ${null} AS n, ${"é😀"} AS t, ${1.5} AS r, ${10n} AS i, ${bytes} AS b,
        ${true} AS yes, ${new Date(5)} AS d`
      assert.deepStrictEqual(
        { ...rows[0], b: Array.from(rows[0]!.b as Uint8Array) },
        { n: null, t: "é😀", r: 1.5, i: 10, b: [0, 255], yes: 1, d: 5 }
      )
      const error = yield* Effect.flip(sql`SELECT ${Symbol.iterator} AS s`)
      assert.strictEqual(error._tag, "SqlError")
    })
  )

  it.effect("sets the pragmas that were asked for", () =>
    Effect.gen(function* () {
      const sql = yield* open({
        filename: yield* tempFile,
        synchronous: "NORMAL",
        walAutocheckpoint: 77,
        journalSizeLimit: 1234,
        cacheSize: 2048,
        foreignKeys: false
      })
      const pragma = (name: string) => Effect.map(sql.unsafe(`PRAGMA ${name}`).values, (rows) => rows[0]?.[0])
      assert.deepStrictEqual(
        yield* Effect.all([
          pragma("journal_mode"),
          pragma("synchronous"),
          pragma("wal_autocheckpoint"),
          pragma("journal_size_limit"),
          pragma("cache_size"),
          pragma("foreign_keys"),
          pragma("busy_timeout")
        ]),
        ["wal", 1, 77, 1234, -2048, 0, 0]
      )
    })
  )

  it.effect("defaults to full durability", () =>
    Effect.gen(function* () {
      const sql = yield* open({ filename: yield* tempFile })
      assert.strictEqual((yield* sql.unsafe("PRAGMA synchronous").values)[0]?.[0], 2)
      assert.strictEqual((yield* sql.unsafe("PRAGMA journal_mode").values)[0]?.[0], "wal")
    })
  )

  it.effect("classifies errors by result code", () =>
    Effect.gen(function* () {
      const sql = yield* memory
      yield* sql`CREATE TABLE t (id INTEGER PRIMARY KEY, u TEXT UNIQUE, c TEXT CHECK (c <> 'no'))`
      yield* sql`INSERT INTO t VALUES (1, 'a', 'yes')`
      const unique = yield* Effect.flip(sql`INSERT INTO t VALUES (2, 'a', 'yes')`)
      assert.strictEqual(unique.reason._tag, "UniqueViolation")
      const check = yield* Effect.flip(sql`INSERT INTO t VALUES (3, 'b', 'no')`)
      assert.strictEqual(check.reason._tag, "ConstraintError")
    })
  )

  it.effect("rolls back what a failed or interrupted transaction wrote", () =>
    Effect.gen(function* () {
      const sql = yield* memory
      yield* sql`CREATE TABLE t (id INTEGER PRIMARY KEY)`
      yield* Effect.exit(sql.withTransaction(Effect.andThen(sql`INSERT INTO t VALUES (1)`, Effect.fail("no"))))
      const inserted = yield* Deferred.make<void>()
      const fiber = yield* Effect.forkChild(
        sql.withTransaction(
          sql`INSERT INTO t VALUES (2)`.pipe(
            Effect.andThen(Deferred.succeed(inserted, undefined)),
            Effect.andThen(Effect.never)
          )
        )
      )
      yield* Deferred.await(inserted)
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(yield* sql`SELECT * FROM t`, [])
    })
  )

  it.effect("keeps what a fiber writes that outlives its transaction out of the transactions of others", () =>
    Effect.gen(function* () {
      const sql = yield* memory
      yield* sql`CREATE TABLE t (a TEXT)`
      const ended = yield* Deferred.make<void>()
      const late = Effect.andThen(
        Deferred.await(ended),
        Effect.all(
          [
            sql`INSERT INTO t VALUES ('statement')`,
            sql`INSERT INTO t VALUES ('values')`.values,
            sql`INSERT INTO t VALUES ('unprepared')`.unprepared,
            Stream.runDrain(sql`INSERT INTO t VALUES ('stream') RETURNING a`.stream),
            sql.withTransaction(sql`INSERT INTO t VALUES ('transaction')`),
            sql.withGroupedTransaction(sql`INSERT INTO t VALUES ('grouped')`),
            sql.withGroupedTransaction(sql.withTransaction(sql`INSERT INTO t VALUES ('nested')`))
          ],
          { concurrency: "unbounded" }
        )
      )
      const forked = yield* sql.withGroupedTransaction(Effect.forkDetach(late))
      const inside = yield* Deferred.make<void>()
      const leave = yield* Deferred.make<void>()
      const other = yield* Effect.forkChild(
        sql.withGroupedTransaction(
          sql`INSERT INTO t VALUES ('other')`.pipe(
            Effect.andThen(Deferred.succeed(inside, undefined)),
            Effect.andThen(Deferred.await(leave)),
            Effect.andThen(Effect.fail("no"))
          )
        )
      )
      yield* Deferred.await(inside)
      yield* Deferred.succeed(ended, undefined)
      for (let i = 0; i < 100; i++) yield* Effect.yieldNow
      yield* Deferred.succeed(leave, undefined)
      assert.deepStrictEqual(yield* Fiber.await(other), Exit.fail("no"))
      yield* Fiber.join(forked)
      assert.deepStrictEqual(
        (yield* sql`SELECT a FROM t ORDER BY a`.values).map(([a]) => a),
        ["grouped", "nested", "statement", "stream", "transaction", "unprepared", "values"]
      )
    })
  )

  it.effect("is usable again after a COMMIT that failed", () =>
    Effect.gen(function* () {
      const sql = yield* memory
      yield* sql`CREATE TABLE parent (id INTEGER PRIMARY KEY)`
      yield* sql`CREATE TABLE child (id INTEGER REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED)`
      const failed = yield* Effect.exit(sql.withTransaction(sql`INSERT INTO child VALUES (1)`))
      assert.isTrue(Exit.isFailure(failed))
      yield* sql.withTransaction(sql`INSERT INTO parent VALUES (7)`)
      assert.deepStrictEqual(yield* sql`SELECT * FROM child`, [])
      assert.deepStrictEqual(
        (yield* sql`SELECT id FROM parent`).map((row) => row.id),
        [7]
      )
    })
  )

  it.effect("fails a write at once when another connection writes, and reads all the same", () =>
    Effect.gen(function* () {
      const filename = yield* tempFile
      const a = yield* open({ filename })
      const b = yield* open({ filename })
      yield* a`CREATE TABLE t (id INTEGER)`
      yield* a.withTransaction(
        Effect.gen(function* () {
          yield* a`INSERT INTO t VALUES (1)`
          const error = yield* Effect.flip(b.withTransaction(b`INSERT INTO t VALUES (2)`))
          assert.strictEqual(error.reason._tag, "LockTimeoutError")
          assert.deepStrictEqual(yield* b`SELECT * FROM t`, [])
        })
      )
      assert.strictEqual((yield* b`SELECT * FROM t`).length, 1)
    })
  )

  it.live("says what SQLite says, and of which file", () =>
    Effect.gen(function* () {
      const filename = `${yield* tempFile}/none/app.db`
      const error = yield* Effect.flip(open({ filename }))
      assert.strictEqual(error.reason.message, `SQLite: open of ${filename} failed: unable to open database file`)
      const sql = yield* memory
      const missing = yield* Effect.flip(sql`SELECT * FROM nope`)
      assert.strictEqual(missing.reason.message, "SQLite: execute failed: no such table: nope")
    })
  )

  it.live("waits at open for a peer that holds the file, and not for ever", () =>
    Effect.gen(function* () {
      const filename = yield* tempFile
      const peer = new DatabaseSync(filename)
      yield* Effect.addFinalizer(() => Effect.sync(() => peer.close()))
      peer.exec("CREATE TABLE t (id INTEGER); BEGIN EXCLUSIVE")
      const error = yield* Effect.flip(open({ filename, openTimeout: "50 millis" }))
      assert.strictEqual(error.reason._tag, "LockTimeoutError")
      const opening = yield* Effect.forkChild(open({ filename }))
      yield* Effect.sleep("50 millis")
      peer.exec("COMMIT")
      const sql = yield* Fiber.join(opening)
      assert.deepStrictEqual(yield* sql`SELECT * FROM t`, [])
    })
  )

  it.effect("refuses to write when opened for reading only", () =>
    Effect.gen(function* () {
      const filename = yield* tempFile
      const writer = yield* open({ filename })
      yield* writer`CREATE TABLE t (id INTEGER)`
      const reader = yield* open({ filename, readonly: true })
      assert.deepStrictEqual(yield* reader`SELECT * FROM t`, [])
      assert.isTrue(Exit.isFailure(yield* Effect.exit(reader`INSERT INTO t VALUES (1)`)))
      const missing = yield* Effect.flip(open({ filename: `${filename}-none`, readonly: true }))
      assert.strictEqual(missing.reason._tag, "ConnectionError")
    })
  )

  it.effect("streams more rows than a chunk holds, with other statements in between", () =>
    Effect.gen(function* () {
      const sql = yield* memory
      const numbers = sql<{ readonly n: number }>`
        WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 1000) SELECT n FROM s`
      const sum = yield* sql.withTransaction(
        Stream.runFoldEffect(
          numbers.stream,
          () => 0,
          (total, row) => Effect.as(sql`SELECT 1`, total + row.n)
        )
      )
      assert.strictEqual(sum, 500_500)
      assert.strictEqual((yield* Stream.runCollect(Stream.take(numbers.stream, 3))).length, 3)
      assert.strictEqual((yield* numbers).length, 1000)
    })
  )

  it.effect("applies name transforms both ways", () =>
    Effect.gen(function* () {
      const sql = yield* open({
        filename: ":memory:",
        transformQueryNames: (name) => name.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`),
        transformResultNames: (name) => name.replace(/_([a-z])/g, (_, c: string) => c.toUpperCase())
      })
      yield* sql`CREATE TABLE t (first_name TEXT)`
      yield* sql`INSERT INTO t ${sql.insert({ firstName: "Ada" })}`
      assert.deepStrictEqual(
        (yield* sql`SELECT * FROM t`).map((row) => ({ ...row })),
        [{ firstName: "Ada" }]
      )
    })
  )

  it.effect("backs up the committed state of a file and of memory", () =>
    Effect.gen(function* () {
      const folder = yield* tempFolder
      for (const [name, filename] of [
        ["file", join(folder, "a.db")],
        ["memory", ":memory:"]
      ] as const) {
        const sql = yield* open({ filename })
        yield* sql`CREATE TABLE t (id INTEGER)`
        yield* sql`INSERT INTO t VALUES (1)`
        const copy = join(folder, `${name}-copy.db`)
        yield* sql.backup(copy)
        yield* sql`INSERT INTO t VALUES (2)`
        const restored = yield* open({ filename: copy })
        assert.deepStrictEqual(
          (yield* restored`SELECT id FROM t`).map((row) => row.id),
          [1]
        )
      }
    })
  )
})

describe("DataVersion", () => {
  it.effect("changes when another connection has committed, and only then", () =>
    Effect.gen(function* () {
      const filename = yield* tempFile
      const sql = yield* open({ filename })
      yield* sql`CREATE TABLE t (id INTEGER)`
      const dataVersion = yield* DataVersion.make(filename)
      const first = yield* dataVersion
      assert.strictEqual(yield* dataVersion, first)
      yield* sql`SELECT * FROM t`
      assert.strictEqual(yield* dataVersion, first)
      yield* sql`INSERT INTO t VALUES (1)`
      assert.notStrictEqual(yield* dataVersion, first)
    })
  )
})
