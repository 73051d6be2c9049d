/**
 * The shared tier on Redis 7 or newer, or Valkey, for entries and small blobs, by Effect's own client of it. A put is one
 * `SET` with `NX` and `GET`, which tells who was first: arbitration is exact. Nothing that the server has is trusted:
 * digests, sizes and keys are checked here.
 *
 * The packages `@effect/platform-node` and `redis` are loaded by the first connection. One is opened when it is needed,
 * and again when it broke: a server that is away is unreachable, and never keeps a layer from being built. Credentials
 * are in no error, log or span.
 *
 * Source: https://redis.io/docs/latest/commands/set/
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import type { ArtifactStore } from "./ArtifactStore.ts"
import { CacheError, Invalid } from "./CacheError.ts"
import * as Arbitration from "./internal/redis/arbitration.ts"
import * as Artifacts from "./internal/redis/artifacts.ts"
import * as Connection from "./internal/redis/connection.ts"
import * as Entries from "./internal/redis/entries.ts"
import * as Server from "./internal/redis/server.ts"
import type { Settings } from "./internal/redis/settings.ts"
import * as Target from "./internal/redis/target.ts"
import type { StepCache } from "./StepCache.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Who the server takes this client for: a user of its access control list, by default the one named `default`.
 *
 * @since 0.1.0
 * @category models
 */
export interface Credentials {
  readonly username?: string | undefined
  readonly password: Redacted.Redacted<string>
}

/**
 * How long the server may take.
 *
 * @since 0.1.0
 * @category models
 */
export interface Deadlines {
  /** Looking the name up, connecting, TLS, and signing in. Default 5 seconds. */
  readonly connect?: Duration.Input | undefined
  /**
   * From an answer to the next one while some are waited for, besides the time of its bytes and those of its command. A
   * connection on which it is passed has failed for all that wait. Default 15 seconds.
   */
  readonly response?: Duration.Input | undefined
  /**
   * For a lookup in all, whatever it has to ask for, besides the time of the bytes that have arrived, at
   * `minBytesPerSecond`. Default 30 seconds.
   */
  readonly lookup?: Duration.Input | undefined
  /** What is on its way takes no longer than at this speed. Default 65,536. */
  readonly minBytesPerSecond?: number | undefined
  /** How long a step cache waits, when it is made, to learn whether the server arbitrates. Default 1 second. */
  readonly start?: Duration.Input | undefined
}

/**
 * Where the tier is, and within what bounds it is used.
 *
 * @since 0.1.0
 * @category models
 */
export interface RedisCacheOptions {
  /**
   * With `redis:`, or `rediss:` for TLS; its path is the number of a database, by default 0. No user info and no query,
   * see {@link fromUrl}.
   */
  readonly url: string | URL
  /**
   * Names the tier in errors, lookups, metrics and refusals, and to publication, which remembers by it what is there.
   * Default: the URL, with the prefix as its query unless it is the default one.
   */
  readonly name?: string | undefined
  readonly credentials?: Credentials | undefined
  /** Begins the name of every key, so that several caches, and others, can use one database. Default `strata:`. */
  readonly prefix?: string | undefined
  /**
   * How long an entry or a blob stays after it was put; at least a millisecond. A lookup does not prolong it. To put a
   * blob that is there, or an entry that names it, does. Default: until the server evicts it.
   */
  readonly ttl?: Duration.Input | undefined
  /** Refuses to put and to take out by `ReadOnly`, without a command. Default `false`. */
  readonly readOnly?: boolean | undefined
  readonly deadlines?: Deadlines | undefined
  /** The largest entry, with its result, that is sent or received. Bytes; default 16 MiB. */
  readonly maxEntryBytes?: number | undefined
  /** The largest artifact that is sent or received; while it is sent it is in memory. Bytes; default 16 MiB. */
  readonly maxBlobBytes?: number | undefined
  /**
   * What lookups and puts ask about an entry's artifacts: `exists`, the default, asks for each whether it is there, and
   * it is a miss, or refused by `ArtifactMissing`, when one is not; `trust` asks nothing.
   */
  readonly artifacts?: "exists" | "trust" | undefined
}

// ---------------------------------------------------------------------------------------------------------------------
// options
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The options of a URL as Redis tools take it, `redis[s]://[[user]:password@]host[:port][/database][?prefix=…]`. What is
 * in the URL for credentials is only in `credentials` then. Fails with `Invalid`, without a word of the URL, when it is
 * none or has other parameters.
 *
 * @since 0.1.0
 * @category options
 */
export const fromUrl = (url: Redacted.Redacted<string>): Effect.Effect<RedisCacheOptions, CacheError> =>
  Effect.gen(function* () {
    const invalid = (detail: string) => new CacheError({ reason: new Invalid({ tier: "redis", detail }) })
    const address = URL.parse(Redacted.value(url))
    if (address === null) return yield* invalid("the URL is none")
    const { password, searchParams, username } = address
    const prefix = searchParams.get("prefix")
    searchParams.delete("prefix")
    if (searchParams.size > 0) return yield* invalid("the URL has a parameter that is not known")
    const [user, secret] = yield* Effect.try({
      try: () => [decodeURIComponent(username), decodeURIComponent(password)] as const,
      catch: () => invalid("the credentials in the URL are not encoded as they should be")
    })
    address.username = ""
    address.password = ""
    address.search = ""
    return {
      url: address.href,
      ...(user === "" && secret === ""
        ? {}
        : { credentials: { username: user === "" ? undefined : user, password: Redacted.make(secret) } }),
      ...(prefix === null ? {} : { prefix })
    }
  })

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The entries of the server.
 *
 * A put is decided in one step of the server, and a fenced `evict` too. A lookup that finds something else than an entry
 * of the key, or one whose blobs are gone, is a miss that says why; the next put writes over what can be served to
 * nobody, if it is still there.
 *
 * Fails with `Invalid` when the options cannot be used, and with `Unsupported` when the server is found not to arbitrate.
 * A server that does not answer in time is asked for that before the first put, which then fails.
 *
 * @since 0.1.0
 * @category constructors
 */
export const stepCache: (options: RedisCacheOptions) => Effect.Effect<StepCache["Service"], CacheError, Scope.Scope> =
  Effect.fnUntraced(function* (options) {
    const settings = yield* settingsOf(options)
    const connection = yield* connect(options)
    const arbitration = Arbitration.make(connection, settings)
    if (!settings.readOnly) {
      yield* arbitration.ensure.pipe(
        Effect.timeoutOption(options.deadlines?.start ?? "1 second"),
        Effect.catchIf(
          ({ reason }) => reason._tag !== "Unsupported",
          () => Effect.void
        )
      )
    }
    return Entries.make({ connection, settings, arbitration })
  })

/**
 * The blobs of the server, each in a value. `list` fails with `Unsupported`.
 *
 * Content is hashed on its way, both ways. A blob that is corrupt is taken out by whoever reads it, so that it is missing
 * and the next put sends it. Fails with `Invalid` when the options cannot be used.
 *
 * @since 0.1.0
 * @category constructors
 */
export const artifactStore: (
  options: RedisCacheOptions
) => Effect.Effect<ArtifactStore["Service"], CacheError, Scope.Scope> = Effect.fnUntraced(function* (options) {
  const settings = yield* settingsOf(options)
  return Artifacts.make(yield* connect(options), settings)
})

// ---------------------------------------------------------------------------------------------------------------------
// accessors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * What the server says of itself: its software with the version, and its time in milliseconds since the epoch. Needs the
 * commands `INFO` and `TIME`, which nothing else does; `Forbidden` to a user that has them not.
 *
 * @since 0.1.0
 * @category accessors
 */
export const server: (
  options: RedisCacheOptions
) => Effect.Effect<{ readonly software: string; readonly now: number }, CacheError> = Effect.fnUntraced(function* (
  options
) {
  return yield* Server.ask(yield* connect(options))
}, Effect.scoped)

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const defaultPrefix = "strata:"

const nameOf = ({ name, prefix, url }: RedisCacheOptions): string => {
  if (name !== undefined) return name
  const address = URL.parse(String(url))
  if (address === null) return "redis"
  const base = `${address.protocol}//${address.host}${address.pathname.replace(/\/+$/, "")}`
  return prefix === undefined || prefix === defaultPrefix ? base : `${base}?prefix=${encodeURIComponent(prefix)}`
}

const connect = (options: RedisCacheOptions): Effect.Effect<Connection.Connection, CacheError, Scope.Scope> =>
  Effect.flatMap(Target.make(nameOf(options), options), (target) =>
    Connection.make(target, deadlines(options.deadlines))
  )

const deadlines = (options: Deadlines = {}): Connection.Deadlines => ({
  connectMs: Duration.toMillis(options.connect ?? "5 seconds"),
  responseMs: Duration.toMillis(options.response ?? "15 seconds"),
  minBytesPerSecond: options.minBytesPerSecond ?? 65_536
})

const settingsOf = (options: RedisCacheOptions): Effect.Effect<Settings, CacheError> => {
  const tier = nameOf(options)
  const ttlMs = options.ttl === undefined ? undefined : Math.floor(Duration.toMillis(options.ttl))
  if (ttlMs !== undefined && !(ttlMs >= 1 && Number.isSafeInteger(ttlMs))) {
    return Effect.fail(new CacheError({ reason: new Invalid({ tier, detail: "the ttl is less than a millisecond" }) }))
  }
  return Effect.succeed({
    tier,
    prefix: options.prefix ?? defaultPrefix,
    ttlMs,
    readOnly: options.readOnly ?? false,
    maxEntryBytes: options.maxEntryBytes ?? 16 * 1024 ** 2,
    maxBlobBytes: options.maxBlobBytes ?? 16 * 1024 ** 2,
    lookup: {
      lookupMs: Duration.toMillis(options.deadlines?.lookup ?? "30 seconds"),
      minBytesPerSecond: deadlines(options.deadlines).minBytesPerSecond
    },
    artifacts: options.artifacts ?? "exists"
  })
}
