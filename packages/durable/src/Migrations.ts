/**
 * Brings a package's tables to the newest version, over `effect/sql`'s
 * `Migrator`. Each package has a ledger table of its own, since the migrator
 * skips every id at or below the newest one it finds.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Migrator from "effect/sql/Migrator"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import * as Ledger from "./internal/ledger.ts"
import { isPostgres, postgresTransaction } from "./internal/postgres.ts"
import { retryConflicts } from "./internal/retry.ts"

/**
 * A package's migrations: SQL statements by `<id>_<name>`, as in `1_initial`.
 * A statement is never split, so `CREATE TRIGGER … END` stays whole.
 *
 * @since 0.1.0
 * @category models
 */
export interface MigrationSet {
  /** Name of the package in its ledger table, `strata_<name>_migrations`. */
  readonly name: string
  readonly migrations: Readonly<Record<`${number}_${string}`, ReadonlyArray<string>>>
}

/**
 * Applies what is missing, all of it or nothing. Processes that start together
 * on one database wait for each other. Costs one read when there is nothing to
 * do, and then works on a read-only client too. Fails with `BadState` on a
 * database that a newer version has migrated.
 *
 * @since 0.1.0
 * @category constructors
 */
export const run = Effect.fn("Migrations.run")(function* (
  set: MigrationSet
): Effect.fn.Return<void, SqlError | Migrator.MigrationError, SqlClient.SqlClient> {
  const table = Ledger.tableOf(set)
  const { behind } = yield* Ledger.look(set)
  if (behind) {
    const sql = yield* SqlClient.SqlClient
    const migration = migrate({ table, loader: Migrator.fromRecord(loaders(set)) })
    yield* retryConflicts({})(isPostgres(sql) ? oneAtATime(sql, table, migration) : migration)
  }
})

const migrate = Migrator.make({})

/** Postgres lets two processes create one table at a time, and then refuses one of them. */
const oneAtATime = <A, E, R>(
  sql: SqlClient.SqlClient,
  table: string,
  migration: Effect.Effect<A, E, R>
): Effect.Effect<A, E | SqlError, R> =>
  postgresTransaction(sql, { isolation: "read committed" })(
    Effect.gen(function* () {
      yield* sql`SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || '.' || ${table}, 0))`
      // A connection remembers that a table was missing until it locks any other one: this one, for the migrator.
      yield* sql`SELECT 1 FROM pg_class WHERE relname = ${table}`
      return yield* migration
    })
  )

const loaders = (set: MigrationSet) => {
  const record: Record<string, Effect.Effect<void, SqlError, SqlClient.SqlClient>> = {}
  for (const [key, statements] of Object.entries(set.migrations)) {
    record[key] = SqlClient.SqlClient.use((sql) =>
      Effect.forEach(statements, (statement) => sql.unsafe(statement).unprepared, {
        discard: true
      })
    )
  }
  return record
}
