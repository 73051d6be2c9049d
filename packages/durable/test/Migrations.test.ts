import { assert, describe, it } from "@effect/vitest"
import * as Migrations from "@strata/durable/Migrations"
import { SqliteClient } from "@strata/sqlite"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const first: Migrations.MigrationSet = {
  name: "test",
  migrations: {
    "1_initial": [
      "CREATE TABLE a (id INTEGER PRIMARY KEY)",
      "CREATE TABLE log (id INTEGER)",
      "CREATE TRIGGER copy AFTER INSERT ON a BEGIN INSERT INTO log VALUES (NEW.id); INSERT INTO log VALUES (-NEW.id); END"
    ]
  }
}

const second: Migrations.MigrationSet = {
  name: "test",
  migrations: {
    ...first.migrations,
    "2_more": ["ALTER TABLE a ADD COLUMN name TEXT", "INSERT INTO a VALUES (1, 'one')"]
  }
}

const memory = it.layer(SqliteClient.layer({ filename: ":memory:" }))

describe("Migrations", () => {
  memory("applies what is missing, once", (it) => {
    it.effect("in steps", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* Migrations.run(first)
        yield* Migrations.run(first)
        yield* Migrations.run(second)
        yield* Migrations.run(second)
        assert.deepStrictEqual(
          (yield* sql`SELECT id FROM log ORDER BY id`).map((row) => row.id),
          [-1, 1]
        )
      })
    )

    it.effect("refuses a database of a newer version", () =>
      Effect.gen(function* () {
        yield* Migrations.run(second)
        const error = yield* Effect.flip(Migrations.run(first))
        assert.strictEqual(error._tag === "MigrationError" && error.kind, "BadState")
      })
    )

    it.effect("leaves nothing of a migration that fails, and keeps other packages apart", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const exit = yield* Effect.exit(
          Migrations.run({
            name: "other",
            migrations: { "1_bad": ["CREATE TABLE half (id INTEGER)", "CREATE NONSENSE"] }
          })
        )
        assert.isTrue(Exit.isFailure(exit))
        assert.deepStrictEqual(yield* sql`SELECT name FROM sqlite_master WHERE name = 'half'`, [])
        yield* Migrations.run({ name: "other", migrations: { "1_good": ["CREATE TABLE half (id INTEGER)"] } })
      })
    )
  })

  it.live("lets processes that start together wait for each other", () =>
    Effect.gen(function* () {
      const folder = yield* Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(join(tmpdir(), "strata-migrations-"))),
        (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
      )
      const client = SqliteClient.layer({ filename: join(folder, "test.db") })
      yield* Effect.all(
        Array.from({ length: 8 }, () => Effect.provide(Migrations.run(second), Layer.fresh(client))),
        { concurrency: "unbounded" }
      )
      yield* Effect.provide(
        SqlClient.SqlClient.use((sql) =>
          Effect.map(sql`SELECT id FROM a`, (rows) => assert.strictEqual(rows.length, 1))
        ),
        client
      )
    })
  )
})
