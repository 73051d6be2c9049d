/**
 * A real D1 for tests and scripts: `miniflare` runs `workerd`, the program that Cloudflare's own servers run, with
 * databases that live as long as it does. Nothing outside of this machine is asked.
 *
 * A test file says at its top
 *
 * ```ts
 * const d1 = await D1.forThisFile()
 * afterAll(d1.stop)
 * ```
 *
 * and skips what needs a D1 unless `d1.isAvailable`; with `STRATA_TEST_D1_REQUIRED` a D1 that cannot be started is a
 * failure. Each test works on a database of its own, see {@link Databases}.
 *
 * @since 0.1.0
 */
import * as D1Client from "@effect/sql-d1/D1Client"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import type * as SqlClient from "effect/sql/SqlClient"
import type { Miniflare } from "miniflare"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A database, as a Worker is given it.
 *
 * @since 0.1.0
 * @category models
 */
export type Database = D1Client.D1ClientConfig["db"]

/**
 * Databases that nobody has used.
 *
 * @since 0.1.0
 * @category models
 */
export interface Databases {
  /** An empty database. */
  readonly database: Effect.Effect<Database, D1Error>
  /** A client of an empty database. */
  readonly layer: Layer.Layer<D1Client.D1Client | SqlClient.SqlClient, D1Error>
}

/**
 * The databases of a test file.
 *
 * @since 0.1.0
 * @category models
 */
export interface FileDatabases extends Databases {
  readonly isAvailable: boolean
  readonly stop: () => Promise<void>
}

/**
 * D1 cannot be started. `detail`: why.
 *
 * @since 0.1.0
 * @category errors
 */
export class D1Error extends Schema.TaggedError<D1Error>("@strata/durable/testing/D1Error")("D1Error", {
  detail: Schema.String
}) {
  override get message(): string {
    return `D1 cannot be started: ${this.detail}`
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Starts `workerd`, which answers when this ends. It is stopped, and its databases are gone, when the scope closes.
 * Databases are made by the dozen, and `workerd` is started again when they are used up.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make: Effect.Effect<Databases, D1Error, Scope.Scope> = Effect.gen(function* () {
  const servers: Array<Promise<Miniflare>> = []
  yield* Effect.addFinalizer(() => Effect.promise(() => Promise.all(servers.map(dispose))))
  const server = (index: number) => (servers[index] ??= start())
  let used = 0
  yield* attempt(() => server(0))
  const database = attempt(async (): Promise<Database> => {
    const index = used++
    return (await server(Math.floor(index / perServer))).getD1Database(nameOf(index % perServer))
  })
  return { database, layer: Layer.unwrap(Effect.map(database, layerOf)) }
})

/**
 * A client of a database.
 *
 * @since 0.1.0
 * @category constructors
 */
export const layerOf = (db: Database): Layer.Layer<D1Client.D1Client | SqlClient.SqlClient> =>
  Layer.orDie(D1Client.layer({ db }))

/**
 * {@link make} for the test file that calls it, at its top level. Says why when there can be none.
 *
 * @since 0.1.0
 * @category constructors
 */
export const forThisFile = async (): Promise<FileDatabases> => {
  const scope = Scope.makeUnsafe()
  const stop = () => Effect.runPromise(Scope.close(scope, Exit.void))
  const databases = await Effect.runPromiseExit(Scope.provide(make, scope))
  if (Exit.isSuccess(databases)) return { ...databases.value, isAvailable: true, stop }
  await stop()
  if (process.env["STRATA_TEST_D1_REQUIRED"] !== undefined) throw Cause.squash(databases.cause)
  console.warn(`The tests that need D1 are skipped. ${Cause.pretty(databases.cause)}`)
  const missing = Effect.fail(new D1Error({ detail: "it is not available" }))
  return { database: missing, layer: Layer.unwrap(missing), isAvailable: false, stop }
}

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/** More of them make `workerd` slow to start. */
const perServer = 64

const nameOf = (index: number): string => `DB${index}`

/** The package is asked for when it is needed, so that tests can be skipped where it does not run. */
const start = async (): Promise<Miniflare> => {
  const { Miniflare } = await import("miniflare")
  const server = new Miniflare({
    modules: true,
    script: "export default { fetch: () => new Response(null, { status: 404 }) }",
    d1Databases: Object.fromEntries(Array.from({ length: perServer }, (_, i) => [nameOf(i), nameOf(i)]))
  })
  await server.ready
  return server
}

const dispose = (server: Promise<Miniflare>): Promise<void> =>
  server.then(
    (server) => server.dispose(),
    () => undefined
  )

const attempt = <A>(f: () => Promise<A>): Effect.Effect<A, D1Error> =>
  Effect.tryPromise({ try: f, catch: (cause) => new D1Error({ detail: String(cause) }) })
