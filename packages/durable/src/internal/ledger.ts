import * as Effect from "effect/Effect"
import * as Migrator from "effect/sql/Migrator"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { MigrationSet } from "../Migrations.ts"

/** The table in which `effect/sql`'s `Migrator` writes down what was applied. */
export const tableOf = (set: MigrationSet): string => `strata_${set.name}_migrations`

/** Id of the newest migration that a database has, 0 without any. Fails on a database that a newer version has migrated. */
export const look = Effect.fnUntraced(function* (
  set: MigrationSet
): Effect.fn.Return<
  { readonly found: number; readonly behind: boolean },
  SqlError | Migrator.MigrationError,
  SqlClient.SqlClient
> {
  const table = tableOf(set)
  const newest = Math.max(...Object.keys(set.migrations).map((key) => Number.parseInt(key, 10)))
  const found = yield* latest(table)
  if (found > newest) {
    return yield* new Migrator.MigrationError({
      kind: "BadState",
      message: `${table} is at ${found}, this version knows ${newest}: the database was written by a newer version`
    })
  }
  return { found, behind: found < newest }
})

const latest = Effect.fnUntraced(function* (table: string): Effect.fn.Return<number, SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const exists = sql.onDialectOrElse({
    pg: () => sql`SELECT 1 AS found WHERE to_regclass(${`"${table}"`}) IS NOT NULL`,
    orElse: () => sql`SELECT 1 AS found FROM sqlite_master WHERE type = 'table' AND name = ${table}`
  })
  if ((yield* exists).length === 0) {
    return 0
  }
  const rows = yield* sql<{
    readonly id: number | null
  }>`SELECT max(migration_id) AS id FROM ${sql(table)}`
  return rows[0]?.id ?? 0
})
