/**
 * The client of a Postgres that is named by a URL as its tools take it,
 * `postgres://[user[:password]@]host[:port]/database[?…]`, with one parameter more: `schema`, in which the tables are.
 * The package `@effect/sql-pg` is loaded when the first client is made.
 *
 * @since 0.1.0
 */
import type { PgClient } from "@effect/sql-pg/PgClient"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Where the database is, and how it is used.
 *
 * @since 0.1.0
 * @category models
 */
export interface PostgresClientOptions {
  readonly url: Redacted.Redacted
  /** How many connections there are at most. Default 10. */
  readonly maxConnections?: number | undefined
  /** For a connection: looking the name up, connecting, TLS, and signing in. Default 5 seconds. */
  readonly connectTimeout?: Duration.Input | undefined
  /** Whether transactions can only read; then no schema is created either. Default `false`. */
  readonly readonly?: boolean | undefined
}

/**
 * A URL taken apart.
 *
 * @since 0.1.0
 * @category models
 */
export interface Address {
  /** What Postgres knows of it. */
  readonly url: Redacted.Redacted
  readonly schema: string | undefined
  /** Host, port, database and schema: what can be shown. */
  readonly name: string
}

// ---------------------------------------------------------------------------------------------------------------------
// errors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * What was given is no URL of a Postgres. It is not repeated, since it may hold a password.
 *
 * @since 0.1.0
 * @category errors
 */
export class AddressInvalid extends Schema.TaggedClass<AddressInvalid>("@strata/strata/PostgresClient/AddressInvalid")(
  "AddressInvalid",
  { detail: Schema.String }
) {
  get message(): string {
    return `the address of the database cannot be used: ${this.detail}`
  }
}

/**
 * The package `@effect/sql-pg` is not installed.
 *
 * @since 0.1.0
 * @category errors
 */
export class DriverMissing extends Schema.TaggedClass<DriverMissing>("@strata/strata/PostgresClient/DriverMissing")(
  "DriverMissing",
  {}
) {
  get message(): string {
    return "Postgres needs the package @effect/sql-pg, which is to be installed"
  }
}

/**
 * No client can be made.
 *
 * @since 0.1.0
 * @category errors
 */
export class PostgresClientError extends Schema.TaggedError<PostgresClientError>("@strata/strata/PostgresClientError")(
  "PostgresClientError",
  { reason: Schema.Union([AddressInvalid, DriverMissing]) }
) {
  override get message(): string {
    return this.reason.message
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// conversions
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Whether text is meant to be the URL of a Postgres, and not the name of a file.
 *
 * @since 0.1.0
 * @category conversions
 */
export const isAddress = (text: string): boolean => /^postgres(ql)?:/i.test(text)

/**
 * Takes a URL apart, and finds what is wrong with it before anybody is asked.
 *
 * @since 0.1.0
 * @category conversions
 */
export const parse = (given: Redacted.Redacted): Effect.Effect<Address, PostgresClientError> =>
  Effect.gen(function* () {
    const text = Redacted.value(given)
    const url = isAddress(text) ? URL.parse(text) : null
    if (url === null) return yield* invalid("a URL is wanted, as postgres://user@host/database")
    if (url.hostname === "") return yield* invalid("the URL has no host")
    if (url.hash !== "") return yield* invalid("the URL has a fragment")
    yield* Effect.try({
      try: () => [url.username, url.password, url.pathname].map(decodeURIComponent),
      catch: () => asError("user, password or database are not encoded as they should be")
    })
    const mode = url.searchParams.get("sslmode")
    if (mode !== null && !sslModes.has(mode)) return yield* invalid("the URL has an sslmode that is not known")
    const schema = url.searchParams.get("schema") ?? undefined
    if (schema !== undefined && (schema === "" || schema.includes("\0") || Buffer.byteLength(schema) > 63)) {
      return yield* invalid("the schema is no name of at most 63 bytes")
    }
    url.searchParams.delete("schema")
    const base = `postgres://${url.host}${url.pathname}`
    return {
      url: Redacted.make(url.href),
      schema,
      name: schema === undefined ? base : `${base}?${new URLSearchParams({ schema })}`
    }
  })

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A client, for the life of the scope. A schema that is named and missing is created, unless it can only read.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = Effect.fn("PostgresClient.make")(function* (
  options: PostgresClientOptions
): Effect.fn.Return<PgClient, PostgresClientError | SqlError, Scope.Scope> {
  const { schema, url } = yield* parse(options.url)
  const driver = yield* load
  const readonly = options.readonly ?? false
  const sql = yield* driver
    .make({
      url,
      maxConnections: options.maxConnections ?? 10,
      connectTimeout: options.connectTimeout ?? "5 seconds",
      applicationName: "strata",
      startupParameters: {
        client_min_messages: "warning",
        ...(readonly ? { default_transaction_read_only: "on" } : {}),
        ...(schema === undefined ? {} : { search_path: `"${schema.replaceAll('"', '""')}"` })
      }
    })
    .pipe(Effect.provideServiceEffect(Reactivity.Reactivity, Reactivity.make))
  if (schema !== undefined && !readonly) yield* ensureSchema(sql, schema)
  return sql
})

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A client, see {@link make}.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  options: PostgresClientOptions
): Layer.Layer<PgClient | SqlClient, PostgresClientError | SqlError> =>
  Layer.unwrap(Effect.map(load, (driver) => driver.layerFrom(make(options))))

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const asError = (detail: string) => new PostgresClientError({ reason: new AddressInvalid({ detail }) })

const invalid = (detail: string) => Effect.fail(asError(detail))

const sslModes: ReadonlySet<string> = new Set(["disable", "allow", "prefer", "require", "verify-ca", "verify-full"])

const load = Effect.tryPromise({
  try: () => import("@effect/sql-pg/PgClient"),
  catch: () => new PostgresClientError({ reason: new DriverMissing() })
})

const ensureSchema = Effect.fnUntraced(function* (sql: SqlClient, schema: string) {
  const found = yield* sql`SELECT 1 FROM pg_namespace WHERE nspname = ${schema}`
  if (found.length > 0) return
  yield* sql`CREATE SCHEMA IF NOT EXISTS ${sql(schema)}`.pipe(
    Effect.catchIf(
      // Another process has made it in the same moment.
      ({ reason }) => reason._tag === "UniqueViolation",
      () => Effect.void
    )
  )
})
