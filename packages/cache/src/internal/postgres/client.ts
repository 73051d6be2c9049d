import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import type * as SqlClient from "effect/sql/SqlClient"
import { CacheError, Invalid, Unreachable, Unsupported } from "../../CacheError.ts"
import type { Settings } from "./settings.ts"
import * as Sockets from "./sockets.ts"

/** Who this client is. */
export interface Credentials {
  readonly username: string
  readonly password?: Redacted.Redacted<string> | undefined
}

export interface Connecting {
  readonly url: string | URL
  readonly credentials: Credentials | undefined
  readonly maxConnections: number
}

export interface Client {
  readonly sql: SqlClient.SqlClient
  /** Gives the effect that cuts the connections which are open now, with all that is on its way over them. */
  readonly cutter: () => Effect.Effect<void>
}

/** A client that connects when it is first used. No error holds any part of the URL. */
export const make = Effect.fnUntraced(function* (
  settings: Settings,
  { credentials, maxConnections, url }: Connecting
): Effect.fn.Return<Client, CacheError, Scope.Scope> {
  const { tier } = settings
  const sockets = Sockets.make(yield* check(tier, url))
  const PgClient = yield* load(tier)
  const largest = Math.max(settings.maxEntryBytes * 2, settings.maxBlobBytes)
  const statementMs = Math.ceil(settings.responseMs + (largest / settings.minBytesPerSecond) * 1000)
  const sql = yield* PgClient.make({
    stream: sockets.connect,
    url: Redacted.make(String(url)),
    username: credentials?.username,
    password: credentials?.password,
    maxConnections,
    connectTimeout: Duration.millis(settings.connectMs),
    applicationName: "strata-cache",
    maxMessageSize: largest + 1024 ** 2,
    startupParameters: {
      // What is given up here ends there too.
      statement_timeout: `${statementMs}`,
      idle_in_transaction_session_timeout: `${statementMs}`,
      default_transaction_isolation: "read committed",
      client_min_messages: "warning",
      ...(settings.readOnly ? { default_transaction_read_only: "on" } : {})
    }
  }).pipe(
    Effect.provideServiceEffect(Reactivity.Reactivity, Reactivity.make),
    Effect.mapError(() => new CacheError({ reason: new Unreachable({ tier, detail: "the client was not made" }) }))
  )
  return { sql, cutter: sockets.cutter }
})

const check = Effect.fnUntraced(function* (tier: string, address: string | URL): Effect.fn.Return<URL, CacheError> {
  const invalid = (detail: string) => new CacheError({ reason: new Invalid({ tier, detail }) })
  const url = URL.parse(String(address))
  if (url === null) return yield* invalid("the URL is none")
  if (url.protocol !== "postgres:" && url.protocol !== "postgresql:") {
    return yield* invalid("the URL is not one of postgres(ql)")
  }
  if (url.username !== "" || url.password !== "" || secrets.some((name) => url.searchParams.has(name))) {
    return yield* invalid("the URL holds credentials: they belong into `credentials`")
  }
  if (url.hash !== "") return yield* invalid("the URL has a fragment")
  const mode = url.searchParams.get("sslmode")
  if (mode !== null && !sslModes.has(mode)) return yield* invalid("the URL has an sslmode that is not known")
  return url
})

/** Parameters of a URL that say who a client is. */
export const secrets = ["user", "password"] as const

const sslModes = new Set(["disable", "allow", "prefer", "require", "verify-ca", "verify-full"])

/** Loaded by whoever uses the tier, and not installed by others. */
const load = (tier: string) =>
  Effect.tryPromise({
    try: () => import("@effect/sql-pg/PgClient"),
    catch: () =>
      new CacheError({
        reason: new Unsupported({
          tier,
          operation: "be used without the package @effect/sql-pg, which is to be installed"
        })
      })
  })
