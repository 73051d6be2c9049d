import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Database } from "../Database.ts"
import * as Reader from "../Reader.ts"

/* What a database has: that of an app has no search index, and that of an index no workflows. */

/** The database was never used for what is asked of it, and is left as it is. */
export class NothingThere extends Schema.TaggedError<NothingThere>("@strata/cli/NothingThere")("NothingThere", {
  what: Schema.String,
  database: Schema.String
}) {
  override get message(): string {
    return `there is no ${this.what} in the database ${this.database}`
  }
}

/** What people call it, by one of its tables. */
export const journal = { what: "journal", table: "strata_journal" }
export const cache = { what: "cache", table: "strata_cache_ledger" }
const runs = { what: "runs of workflows", table: "strata_run" }

type Part = typeof journal

/** Fails where a part is not there. */
export const require = (database: Database, part: Part) =>
  Effect.scoped(Effect.flatMap(Reader.make(database), (sql) => isIn(sql, part))).pipe(
    Effect.flatMap((found) =>
      found ? Effect.void : Effect.fail(new NothingThere({ what: part.what, database: database.name }))
    )
  )

/** What there is beside an index. */
export const present = (sql: SqlClient): Effect.Effect<ReadonlyArray<string>, SqlError> =>
  Effect.map(
    Effect.filter([journal, cache, runs], (part) => isIn(sql, part)),
    (parts) => parts.map(({ what }) => what)
  )

const isIn = (sql: SqlClient, { table }: Part): Effect.Effect<boolean, SqlError> =>
  Effect.map(
    sql.onDialectOrElse({
      pg: () => sql`SELECT 1 WHERE to_regclass(${table}::TEXT) IS NOT NULL`,
      orElse: () => sql`SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ${table}`
    }),
    (rows) => rows.length > 0
  )
