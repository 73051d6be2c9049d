/**
 * The shared tier on Postgres 15 or newer, for entries and small blobs, over a client of its own. A put is one
 * `INSERT … ON CONFLICT DO NOTHING` that also gives the winner: arbitration is exact. An entry refers to its blobs, so
 * that none of them can be pruned before it. The database refuses results and blobs that are not of their digest, and
 * what it gives is checked here again.
 *
 * A database that is away is unreachable, and never keeps a layer from being built: connections are opened when they are
 * needed, and again when they broke. Tables that are missing are made then, by one client at a time, unless it is
 * read-only. Credentials are in no error, log or span.
 *
 * Source: https://www.postgresql.org/docs/current/sql-insert.html#SQL-ON-CONFLICT
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import type * as SqlClient from "effect/sql/SqlClient"
import type { ArtifactStore } from "./ArtifactStore.ts"
import { CacheError, Invalid } from "./CacheError.ts"
import * as Artifacts from "./internal/postgres/artifacts.ts"
import * as Client from "./internal/postgres/client.ts"
import * as Database from "./internal/postgres/database.ts"
import * as Entries from "./internal/postgres/entries.ts"
import * as Pruning from "./internal/postgres/pruning.ts"
import type { Settings } from "./internal/postgres/settings.ts"
import type { StepCache } from "./StepCache.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Who the database takes this client for.
 *
 * @since 0.1.0
 * @category models
 */
export interface Credentials {
  readonly username: string
  readonly password?: Redacted.Redacted<string> | undefined
}

/**
 * How long the database may take. A statement that is given up here is ended there; when that takes longer than half a
 * second, the connections that were open are closed, unless they are those of a `client`.
 *
 * @since 0.1.0
 * @category models
 */
export interface Deadlines {
  /** Looking the name up, connecting, TLS, and signing in. Default 5 seconds. */
  readonly connect?: Duration.Input | undefined
  /** For a statement, beside the time of its bytes, and that of a connection if one has to be opened. Default 15 seconds. */
  readonly response?: Duration.Input | undefined
  /**
   * For a lookup in all, whatever it has to ask for, besides the time of the bytes that have arrived, at
   * `minBytesPerSecond`. Default 30 seconds.
   */
  readonly lookup?: Duration.Input | undefined
  /** What is on its way takes no longer than at this speed. Default 65,536. */
  readonly minBytesPerSecond?: number | undefined
}

/**
 * Where the tier is, and within what bounds it is used.
 *
 * @since 0.1.0
 * @category models
 */
export interface PostgresCacheOptions {
  /**
   * With `postgres:` or `postgresql:`, and parameters as libpq has them, such as `sslmode`. No user info, see
   * {@link fromUrl}. Either this or `client`.
   */
  readonly url?: string | URL | undefined
  readonly credentials?: Credentials | undefined
  /** How many connections there are at most, for `url`. Default 4. */
  readonly maxConnections?: number | undefined
  /**
   * A client to use instead of a URL, which lives at least as long as the tier. What the tier does is in no transaction of
   * the app. Its own deadlines hold too, and its isolation has to be `READ COMMITTED`, Postgres's default.
   */
  readonly client?: SqlClient.SqlClient | undefined
  /**
   * Names the tier in errors, lookups, metrics and refusals, and to publication, which remembers by it what is there.
   * Default: host and database of the URL, with schema and prefix as its query if they are given; for `client`,
   * `postgres`.
   */
  readonly name?: string | undefined
  /** Where the tables are; created when it is missing. Default: the first schema of the connection's search path. */
  readonly schema?: string | undefined
  /**
   * Tables are called `strata_<prefix>_entry`, `_blob`, `_artifact` and `_migrations`, so that several caches can be in
   * one schema. Lower-case letters, digits and `_`, at most 30. Default `shared`.
   */
  readonly prefix?: string | undefined
  /** Refuses to put, to take out and to prune by `ReadOnly`, without a statement, and creates nothing. Default `false`. */
  readonly readOnly?: boolean | undefined
  readonly deadlines?: Deadlines | undefined
  /** The largest result, and the largest metadata with the names of artifacts. Bytes; default 16 MiB. */
  readonly maxEntryBytes?: number | undefined
  /** The largest artifact that is sent or received; meanwhile it is in memory. Bytes; default 4 MiB. */
  readonly maxBlobBytes?: number | undefined
  /** A hit writes the time of its use down, for `prune`, when the one that is there is older than this. Default 1 day. */
  readonly useGrain?: Duration.Input | undefined
  /**
   * What lookups and puts ask about an entry's artifacts: `exists`, the default, asks for each whether it is there, and
   * it is a miss, or refused by `ArtifactMissing`, when one is not; `trust` asks nothing, for blobs that are elsewhere.
   */
  readonly artifacts?: "exists" | "trust" | undefined
}

/**
 * What may stay in the tier, by the clock of the database.
 *
 * @since 0.1.0
 * @category models
 */
export interface PruneOptions {
  /** How long an entry may go unused, not finer than `useGrain`. Default: for ever. */
  readonly maxAge?: Duration.Input | undefined
  /** How many entries may stay: those that were used last. Default: all. */
  readonly maxEntries?: number | undefined
  /**
   * How many bytes the results and the blobs of entries may have; what entries share counts for each. Those that were used
   * last stay. Default: any number.
   */
  readonly maxBytes?: number | undefined
  /** Blobs that no entry refers to stay for so long after they were last put, not finer than an hour. Default 1 day. */
  readonly grace?: Duration.Input | undefined
}

/**
 * What was taken out. Sizes are in bytes.
 *
 * @since 0.1.0
 * @category models
 */
export interface Pruned {
  readonly entries: number
  readonly resultBytes: number
  readonly blobs: number
  readonly blobBytes: number
}

// ---------------------------------------------------------------------------------------------------------------------
// options
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The options of a URL as Postgres tools take it, `postgres://[user[:password]@]host[:port]/database[?…]`. What is in the
 * URL for credentials is only in `credentials` then; the parameters `schema` and `prefix` are the options of that name.
 * Fails with `Invalid`, without a word of the URL, when it is none.
 *
 * @since 0.1.0
 * @category options
 */
export const fromUrl = (url: Redacted.Redacted<string>): Effect.Effect<PostgresCacheOptions, CacheError> =>
  Effect.gen(function* () {
    const invalid = (detail: string) => new CacheError({ reason: new Invalid({ tier: "postgres", detail }) })
    const address = URL.parse(Redacted.value(url))
    if (address === null) return yield* invalid("the URL is none")
    const take = (name: string): string | undefined => {
      const value = address.searchParams.get(name) ?? undefined
      address.searchParams.delete(name)
      return value
    }
    const [user, password] = yield* Effect.try({
      try: () => [decodeURIComponent(address.username), decodeURIComponent(address.password)] as const,
      catch: () => invalid("the credentials in the URL are not encoded as they should be")
    })
    const [userParameter, passwordParameter] = Client.secrets.map(take)
    const username = userParameter ?? user
    const secret = passwordParameter ?? password
    if (username === "" && secret !== "") return yield* invalid("the URL has a password and no user")
    address.username = ""
    address.password = ""
    const schema = take("schema")
    const prefix = take("prefix")
    return {
      url: address.href,
      ...(username === ""
        ? {}
        : { credentials: { username, password: secret === "" ? undefined : Redacted.make(secret) } }),
      ...(schema === undefined ? {} : { schema }),
      ...(prefix === undefined ? {} : { prefix })
    }
  })

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The entries of the database.
 *
 * A lookup that finds something else than an entry of the key, or one whose blobs are gone, is a miss that says why; the
 * next put replaces what can be served to nobody. An evict by recording is one statement, which never takes a fresher
 * entry. Fails with `Invalid` when the options cannot be used, and with `Unsupported` when the client is not installed.
 *
 * @since 0.1.0
 * @category constructors
 */
export const stepCache: (
  options: PostgresCacheOptions
) => Effect.Effect<StepCache["Service"], CacheError, Scope.Scope> = Effect.fnUntraced(function* (options) {
  return yield* Entries.make(yield* connect(options))
})

/**
 * The blobs of the database, each in a row.
 *
 * Content is hashed on its way, both ways, and by the database. A blob that is corrupt is found by whoever reads it, and by
 * a put after an hour: it is missing from then on, and the next put heals it. `remove` takes content out whether or not an
 * entry refers to it. Fails with `Invalid` when the options cannot be used, and with `Unsupported` when the client is not
 * installed.
 *
 * @since 0.1.0
 * @category constructors
 */
export const artifactStore: (
  options: PostgresCacheOptions
) => Effect.Effect<ArtifactStore["Service"], CacheError, Scope.Scope> = Effect.fnUntraced(function* (options) {
  return Artifacts.make(yield* connect(options))
})

// ---------------------------------------------------------------------------------------------------------------------
// pruning
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Takes out of the tier what is too old or too much: entries, then blobs that no entry refers to. Several may run at a
 * time; an entry that is used meanwhile stays, and so do the blobs of one that is put meanwhile. Run it now and then, on
 * one machine: nothing else limits the tier.
 *
 * With blobs of entries that are elsewhere, or are put with `artifacts: "trust"`, nothing refers to them, and `grace` is
 * how long they stay.
 *
 * @since 0.1.0
 * @category pruning
 */
export const prune: (options: PostgresCacheOptions, limits: PruneOptions) => Effect.Effect<Pruned, CacheError> =
  Effect.fnUntraced(function* (options, limits) {
    return yield* Pruning.prune(yield* connect(options), {
      maxAgeMs: limits.maxAge === undefined ? Number.MAX_SAFE_INTEGER : inMillis(limits.maxAge),
      maxEntries: limits.maxEntries ?? Number.MAX_SAFE_INTEGER,
      maxBytes: limits.maxBytes ?? Number.MAX_SAFE_INTEGER,
      graceMs: inMillis(limits.grace ?? "1 day")
    })
  }, Effect.scoped)

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const connect = Effect.fnUntraced(function* (
  options: PostgresCacheOptions
): Effect.fn.Return<Database.Database, CacheError, Scope.Scope> {
  const settings = yield* settingsOf(options)
  const { client, credentials, maxConnections, url } = options
  if (client !== undefined && url === undefined) {
    return yield* client.onDialectOrElse({
      pg: () => Effect.succeed(Database.make({ sql: client, cutter: () => Effect.void }, settings)),
      orElse: () => invalid(settings.tier, "the client is not one of Postgres")
    })
  }
  if (url === undefined || client !== undefined) return yield* invalid(settings.tier, "it needs a URL or a client")
  return Database.make(
    yield* Client.make(settings, { url, credentials, maxConnections: maxConnections ?? 4 }),
    settings
  )
})

const settingsOf = (options: PostgresCacheOptions): Effect.Effect<Settings, CacheError> => {
  const tier = nameOf(options)
  const { deadlines, prefix = "shared", schema } = options
  if (!/^[a-z][a-z0-9_]{0,29}$/.test(prefix)) {
    return invalid(tier, "the prefix is not one of at most 30 lower-case letters, digits and _")
  }
  if (schema !== undefined && (schema === "" || schema.includes("\0") || Buffer.byteLength(schema) > 63)) {
    return invalid(tier, "the schema is no name of at most 63 bytes")
  }
  const minBytesPerSecond = deadlines?.minBytesPerSecond ?? 65_536
  return Effect.succeed({
    tier,
    schema,
    prefix,
    readOnly: options.readOnly ?? false,
    connectMs: inMillis(deadlines?.connect ?? "5 seconds"),
    responseMs: inMillis(deadlines?.response ?? "15 seconds"),
    minBytesPerSecond,
    lookup: { lookupMs: inMillis(deadlines?.lookup ?? "30 seconds"), minBytesPerSecond },
    maxEntryBytes: options.maxEntryBytes ?? 16 * 1024 ** 2,
    maxBlobBytes: options.maxBlobBytes ?? 4 * 1024 ** 2,
    useGrainMs: inMillis(options.useGrain ?? "1 day"),
    artifacts: options.artifacts ?? "exists"
  })
}

const nameOf = ({ name, prefix, schema, url }: PostgresCacheOptions): string => {
  if (name !== undefined) return name
  const address = url === undefined ? null : URL.parse(String(url))
  if (address === null) return "postgres"
  const query = new URLSearchParams({
    ...(schema === undefined ? {} : { schema }),
    ...(prefix === undefined ? {} : { prefix })
  })
  const base = `postgres://${address.host}${address.pathname.replace(/\/+$/, "")}`
  return query.size === 0 ? base : `${base}?${query}`
}

const inMillis = (duration: Duration.Input): number => Math.round(Duration.toMillis(duration))

const invalid = (tier: string, detail: string): Effect.Effect<never, CacheError> =>
  Effect.fail(new CacheError({ reason: new Invalid({ tier, detail }) }))
