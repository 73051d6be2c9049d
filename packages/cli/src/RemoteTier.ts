/**
 * The tier of the cache that machines share, made of what the command line says of it.
 *
 * @since 0.1.0
 */
import type * as Cache from "@strata/cache/Cache"
import type { CacheError } from "@strata/cache/CacheError"
import * as HttpCache from "@strata/cache/HttpCache"
import * as PostgresCache from "@strata/cache/PostgresCache"
import * as RedisCache from "@strata/cache/RedisCache"
import * as S3Cache from "@strata/cache/S3Cache"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { SharedTier } from "./SharedTier.ts"

// ---------------------------------------------------------------------------------------------------------------------
// constants
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A tier that does not answer, or not to the end, must not hold a command up for longer than a few seconds in all.
 *
 * @since 0.1.0
 * @category constants
 */
export const deadlines = { connect: "1500 millis", response: "1500 millis", lookup: "2500 millis" } as const

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The tier at an address. A server is asked when the tier is used, and is not waited for long then.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (tier: SharedTier): Effect.Effect<Cache.Remote, CacheError> => {
  const { readOnly } = tier
  switch (tier.protocol) {
    case "http":
      return Effect.succeed(remote(HttpCache, { ...httpOptions(tier), readOnly, deadlines: httpDeadlines }))
    case "redis":
      return Effect.map(RedisCache.fromUrl(tier.url), (address) =>
        remote(RedisCache, { ...address, readOnly, deadlines: { ...deadlines, start: "1 second" } })
      )
    case "postgres":
      return Effect.map(PostgresCache.fromUrl(tier.url), (address) =>
        remote(PostgresCache, { ...address, readOnly, deadlines })
      )
    case "s3":
      return Effect.map(S3Cache.fromUrl(tier.url), (address) =>
        remote(S3Cache, { ...address, readOnly, deadlines: httpDeadlines })
      )
  }
}

/**
 * Fails with `Invalid` when the address is none that the tier can use. No server is asked.
 *
 * @since 0.1.0
 * @category constructors
 */
export const validate = (tier: SharedTier): Effect.Effect<void, CacheError> =>
  Effect.asVoid(Effect.scoped(Effect.flatMap(make(tier), ({ artifacts }) => artifacts)))

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const httpDeadlines: HttpCache.Deadlines = { ...deadlines, idle: "1500 millis" }

const httpOptions = ({ token, url }: SharedTier): HttpCache.HttpCacheOptions => ({
  url: Redacted.value(url),
  credentials: token === undefined ? undefined : { _tag: "Bearer", token }
})

const remote = <Options>(
  tier: {
    readonly stepCache: (options: Options) => Cache.Remote["steps"]
    readonly artifactStore: (options: Options) => Cache.Remote["artifacts"]
  },
  options: Options
): Cache.Remote => ({ steps: tier.stepCache(options), artifacts: tier.artifactStore(options) })
