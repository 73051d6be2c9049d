import { assert, describe, it } from "@effect/vitest"
import * as SqliteClient from "@strata/sqlite/SqliteClient"
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import * as Storage from "../src/internal/sqliteStorage.ts"
import * as Statements from "../src/internal/statements.ts"

/** What is read a page at a time. */
const pages = {
  readStream: Statements.readStream(false),
  "readStream by type": Statements.readStream(true),
  readAll: Statements.readAll(false),
  "readAll by type": Statements.readAll(true),
  readArchive: Statements.readArchive(false),
  listStreams: Statements.listStreams
}

describe("statements", () => {
  it.effect("read a page without sorting, with and without statistics", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* Storage.make
      const requireOrder = Effect.forEach(Object.entries(pages), ([name, statement]) =>
        Effect.map(sql.unsafe<{ readonly detail: string }>(`EXPLAIN QUERY PLAN ${statement}`), (plan) => {
          assert.isNotEmpty(plan, name)
          for (const { detail } of plan) assert.notInclude(detail, "TEMP B-TREE", name)
        })
      )
      yield* requireOrder
      yield* sql`INSERT INTO strata_journal_stream (name, head) VALUES ('a', 1000), ('b', 1000)`
      yield* sql`
        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
        INSERT INTO strata_journal (stream, seq, type, payload, recorded_at)
        SELECT s.id, i, 'type', 'null', 0 FROM n CROSS JOIN strata_journal_stream AS s`
      yield* sql`ANALYZE`
      yield* requireOrder
    }).pipe(Effect.provide(SqliteClient.layer({ filename: ":memory:" })))
  )
})
