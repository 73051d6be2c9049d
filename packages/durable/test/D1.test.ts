import { afterAll, assert, describe, it } from "@effect/vitest"
import * as D1 from "@strata/durable/D1"
import type { MigrationSet } from "@strata/durable/Migrations"
import * as Testing from "@strata/durable/testing/d1"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"

const d1 = await Testing.forThisFile()
afterAll(d1.stop)

const table: MigrationSet = {
  name: "cells",
  migrations: {
    "1_initial": [
      "CREATE TABLE cell (name TEXT PRIMARY KEY, value INTEGER UNIQUE CHECK (value > 0), parent TEXT REFERENCES cell (name))",
      "CREATE TABLE log (value INTEGER)",
      `CREATE TRIGGER cell_insert AFTER INSERT ON cell BEGIN
        INSERT INTO log (value) VALUES (NEW.value);
        INSERT INTO log (value) VALUES (-NEW.value);
      END`
    ]
  }
}

const newer: MigrationSet = {
  name: "cells",
  migrations: { ...table.migrations, "2_more": ["ALTER TABLE cell ADD COLUMN note TEXT"] }
}

const broken: MigrationSet = {
  name: "cells",
  migrations: { ...table.migrations, "2_more": ["CREATE TABLE more (a TEXT)", "CREATE TABLE log (a TEXT)"] }
}

describe.skipIf(!d1.isAvailable)("D1", () => {
  it.effect("runs a batch as a whole, or not at all", () =>
    Effect.gen(function* () {
      const { batch, prepare, run } = yield* D1.make
      yield* D1.migrate(table)
      const insert = (name: string, value: number) =>
        prepare("INSERT INTO cell (name, value) VALUES (?1, ?2) RETURNING name, value", [name, value])
      const [first, log] = yield* batch([insert("a", 1), prepare("SELECT value FROM log ORDER BY value")])
      assert.deepStrictEqual(D1.values(first), [["a", 1]])
      assert.deepStrictEqual(D1.values(log), [[-1], [1]])
      yield* Effect.flip(batch([insert("b", 2), insert("c", 0)]))
      assert.deepStrictEqual(yield* run("SELECT name FROM cell"), [["a"]])
      assert.deepStrictEqual(yield* batch([]), [])
    }).pipe(Effect.provide(d1.layer))
  )

  it.effect("tells errors apart by the result code of SQLite", () =>
    Effect.gen(function* () {
      const { batch, prepare, run } = yield* D1.make
      yield* D1.migrate(table)
      yield* run("INSERT INTO cell (name, value) VALUES ('a', 1)")
      const reasonOf = (statement: string) => Effect.map(Effect.flip(run(statement)), ({ reason }) => reason._tag)
      assert.strictEqual(yield* reasonOf("INSERT INTO cell (name, value) VALUES ('b', 1)"), "UniqueViolation")
      assert.strictEqual(yield* reasonOf("INSERT INTO cell (name, value) VALUES ('a', 2)"), "ConstraintError")
      assert.strictEqual(yield* reasonOf("INSERT INTO cell (name, value) VALUES ('b', 0)"), "ConstraintError")
      assert.strictEqual(yield* reasonOf("INSERT INTO cell (name, parent) VALUES ('b', 'x')"), "ConstraintError")
      assert.strictEqual(yield* reasonOf("PRAGMA journal_mode"), "AuthenticationError")
      assert.strictEqual(yield* reasonOf("SELECT * FROM missing"), "UnknownError")
      // The text of the failure is the caller's, and is not searched.
      assert.strictEqual(yield* reasonOf(`SELECT * FROM "x: SQLITE_BUSY"`), "UnknownError")
      const inBatch = yield* Effect.flip(batch([prepare("INSERT INTO cell (name, value) VALUES ('b', 1)")]))
      assert.deepInclude(inBatch.reason, { _tag: "UniqueViolation", constraint: "cell.value" })
    }).pipe(Effect.provide(d1.layer))
  )

  it.effect("refuses more than 100 parameters, and takes a list as one", () =>
    Effect.gen(function* () {
      const { run } = yield* D1.make
      const many = Array.from({ length: 101 }, (_, i) => i)
      yield* Effect.flip(run(`SELECT ${many.map(() => "?").join()}`, many))
      assert.deepStrictEqual(yield* run("SELECT count(*) FROM json_each(?1)", [JSON.stringify(many)]), [[101]])
    }).pipe(Effect.provide(d1.layer))
  )

  it.effect("migrates once, with triggers whole, whoever comes first", () =>
    Effect.gen(function* () {
      const { run } = yield* D1.make
      yield* Effect.all(
        Array.from({ length: 8 }, () => D1.migrate(newer)),
        { concurrency: "unbounded" }
      )
      yield* D1.migrate(newer)
      assert.deepStrictEqual(yield* run("SELECT migration_id, name FROM strata_cells_migrations"), [
        [1, "initial"],
        [2, "more"]
      ])
      yield* run("INSERT INTO cell (name, value, note) VALUES ('a', 7, 'n')")
      assert.deepStrictEqual(yield* run("SELECT value FROM log ORDER BY value"), [[-7], [7]])
    }).pipe(Effect.provide(d1.layer))
  )

  it.effect("applies nothing of a migration that fails, and reports why", () =>
    Effect.gen(function* () {
      const { run } = yield* D1.make
      yield* D1.migrate(table)
      const failed = yield* Effect.result(D1.migrate(broken))
      assert.isTrue(Result.isFailure(failed))
      assert.deepStrictEqual(yield* run("SELECT 1 FROM sqlite_master WHERE name = 'more'"), [])
      assert.deepStrictEqual(yield* run("SELECT max(migration_id) FROM strata_cells_migrations"), [[1]])
      yield* D1.migrate(newer)
      assert.strictEqual((yield* Effect.flip(D1.migrate(table)))._tag, "MigrationError")
    }).pipe(Effect.provide(d1.layer))
  )
})

describe("D1.pieces", () => {
  it("cuts by number and by size, and keeps every item", () => {
    assert.deepStrictEqual(D1.pieces([], 3), [])
    assert.deepStrictEqual(D1.pieces([1, [2], "😀", 4], 3), ['[1,[2],"😀"]', "[4]"])
    const large = Array.from({ length: 5 }, (_, i) => String(i).repeat(200_000))
    const cut = D1.pieces([...large, "x".repeat(3_000_000)], 1000)
    assert.isAbove(cut.length, 3)
    assert.isTrue(cut.slice(0, -1).every((piece) => Buffer.byteLength(piece) <= 1_000_000))
    assert.deepStrictEqual(
      cut.flatMap((piece) => JSON.parse(piece)),
      [...large, "x".repeat(3_000_000)]
    )
  })
})
