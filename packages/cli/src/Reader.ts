/**
 * Reads a database without changing it. The driver of Postgres is loaded by those who use one.
 *
 * @since 0.1.0
 */
import * as SqliteClient from "@strata/sqlite/SqliteClient"
import type { PostgresClientError } from "@strata/strata/PostgresClient"
import * as Effect from "effect/Effect"
import * as Reactivity from "effect/reactivity/Reactivity"
import type * as Scope from "effect/Scope"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Database } from "./Database.ts"

/**
 * A client that can only read, for the life of the scope.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (database: Database): Effect.Effect<SqlClient, SqlError | PostgresClientError, Scope.Scope> =>
  database._tag === "File"
    ? SqliteClient.make({ filename: database.name, readonly: true }).pipe(Effect.provide(Reactivity.layer))
    : Effect.flatMap(
        Effect.promise(() => import("@strata/strata/PostgresClient")),
        (client) => client.make({ url: database.url, readonly: true, maxConnections: 1 })
      )
