import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { WriteOptions } from "../DurableWriter.ts"

export const isPostgres = (sql: SqlClient.SqlClient): boolean =>
  sql.onDialectOrElse({ pg: () => true, orElse: () => false })

/** A transaction with the isolation of a write, whatever the server's default is; a savepoint within one. */
export const postgresTransaction =
  (sql: SqlClient.SqlClient, options?: WriteOptions) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | SqlError, R> =>
    Effect.withFiber((fiber) => {
      // What begins this transaction is not what a transaction of another client inside of it begins with.
      const own = Context.get(fiber.context, SqlClient.BeginTransaction)
      return sql
        .withTransaction(Effect.provideService(effect, SqlClient.BeginTransaction, own))
        .pipe(Effect.provideService(SqlClient.BeginTransaction, begin(options)))
    })

const begin = (options: WriteOptions | undefined): string =>
  options?.isolation === "read committed"
    ? "BEGIN ISOLATION LEVEL READ COMMITTED"
    : "BEGIN ISOLATION LEVEL SERIALIZABLE"
