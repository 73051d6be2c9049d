import type { Scope } from "@strata/dirty-queue/Path"
import type { DurableWriter } from "@strata/durable/DurableWriter"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { type Problem, ProblemReason } from "../FileTree.ts"

/** What the last scans could not use, kept so that it can be told without another scan. */

const Rows = Schema.Array(Schema.Struct({ path: Schema.String, reason: Schema.fromJsonString(ProblemReason) }))

/** What is stored was encoded here, so that a row which does not decode is a fault of this module. */
const decode = (rows: ReadonlyArray<object>): Effect.Effect<ReadonlyArray<Problem>> =>
  Effect.catchTag(Schema.decodeUnknownEffect(Rows)(rows), "SchemaError", Effect.die)

export const list = (
  sql: SqlClient.SqlClient,
  scope: Scope,
  under: string
): Effect.Effect<ReadonlyArray<Problem>, SqlError> => Effect.flatMap(read(sql, scope, under), decode)

/** Puts what a scan found in place of what was known of the part that it looked at. Writes only what is new. */
export const replace = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  durable: DurableWriter["Service"],
  scope: Scope,
  under: string,
  problems: ReadonlyArray<Problem>
): Effect.fn.Return<void, SqlError> {
  const known = new Map((yield* read(sql, scope, under)).map(({ path, reason }) => [path, reason]))
  const found = new Map(problems.map(({ path, reason }) => [path, JSON.stringify(reason)]))
  const gone = [...known.keys()].filter((path) => !found.has(path))
  const fresh = [...found].filter(([path, reason]) => known.get(path) !== reason)
  if (gone.length + fresh.length === 0) return
  yield* durable.write(
    Effect.andThen(
      sql.unsafe("DELETE FROM strata_search_problem WHERE scope = ? AND path IN (SELECT value FROM json_each(?))", [
        scope,
        JSON.stringify(gone)
      ]),
      sql.unsafe(
        `INSERT INTO strata_search_problem (scope, path, reason)
        SELECT ?, value ->> 0, value ->> 1 FROM json_each(?) WHERE true
        ON CONFLICT (scope, path) DO UPDATE SET reason = excluded.reason`,
        [scope, JSON.stringify(fresh)]
      )
    )
  )
})

const read = (sql: SqlClient.SqlClient, scope: Scope, under: string) =>
  sql.unsafe<{ readonly path: string; readonly reason: string }>(
    `SELECT path, reason FROM strata_search_problem
    WHERE scope = ?1 AND path >= ?2 AND substr(path, 1, length(?2)) = ?2 ORDER BY path`,
    [scope, under]
  )
