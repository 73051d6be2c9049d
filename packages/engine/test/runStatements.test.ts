import { assert, describe, it } from "@effect/vitest"
import * as SqliteClient from "@strata/sqlite/SqliteClient"
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import { makeSqlite } from "../src/internal/runSql.ts"
import * as Statements from "../src/internal/runStatements.ts"

const { announce: _announce, ...statements } = Statements

describe("statements", () => {
  it.effect("find runs by an index, with and without statistics", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* makeSqlite
      const requireIndex = Effect.forEach(Object.entries(statements), ([name, statement]) =>
        Effect.map(sql.unsafe<{ readonly detail: string }>(`EXPLAIN QUERY PLAN ${statement}`), (plan) => {
          for (const { detail } of plan) assert.notMatch(detail, /^SCAN (strata_run|r)\b/, `${name}: ${detail}`)
        })
      )
      yield* requireIndex
      yield* sql`
        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
        INSERT INTO strata_run (execution_id, workflow, payload, status, owner, started_at, updated_at)
        SELECT i, 'w', '{}', iif(i % 2, 'running', 'suspended'), iif(i % 2, 1, NULL), 0, 0 FROM n`
      yield* sql`ANALYZE`
      yield* requireIndex
    }).pipe(Effect.provide(SqliteClient.layer({ filename: ":memory:" })))
  )
})
