/**
 * The cache that machines share, as it is named on the command line and in the environment.
 *
 * @since 0.1.0
 */
import type { CacheError } from "@strata/cache/CacheError"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Flag from "effect/cli/Flag"
import * as PostgresUrl from "./internal/postgresUrl.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Where the cache is, and how it is used. `RemoteTier` makes a tier of it.
 *
 * @since 0.1.0
 * @category models
 */
export interface SharedTier {
  readonly protocol: Protocol
  /** With the credentials that are in it, but for `http`. */
  readonly url: Redacted.Redacted
  /** Nothing is sent there. */
  readonly readOnly: boolean
  /** Of `http`. */
  readonly token: Redacted.Redacted | undefined
}

/**
 * Which tier it is: `HttpCache`, `RedisCache`, `PostgresCache` or `S3Cache`.
 *
 * @since 0.1.0
 * @category models
 */
export type Protocol = "http" | "redis" | "postgres" | "s3"

// ---------------------------------------------------------------------------------------------------------------------
// errors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * What was given is no address of a cache. It is not repeated, since it may hold a password.
 *
 * @since 0.1.0
 * @category errors
 */
export class SharedTierInvalid extends Schema.TaggedError<SharedTierInvalid>("@strata/cli/SharedTierInvalid")(
  "SharedTierInvalid",
  { from: Schema.Literals(["--shared", "STRATA_SHARED"]), detail: Schema.String }
) {
  override get message(): string {
    return `${this.from}: ${this.detail}`
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// flags
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The flags of a command that extracts.
 *
 * @since 0.1.0
 * @category flags
 */
export const flags = {
  shared: Flag.String("shared").pipe(
    Flag.withMetavar("URL"),
    Flag.withDescription(
      "A cache that machines share: what one has extracted, no other extracts. https://, redis://, postgres:// or s3://; " +
        "the text of indexed files is stored there. Default: STRATA_SHARED, which shows a password to nobody; a bearer " +
        "token for https:// is read from STRATA_SHARED_TOKEN"
    ),
    Flag.optional
  ),
  readOnly: Flag.Boolean("read-only").pipe(
    Flag.withoutNegation,
    Flag.withDescription(
      "Only take from the shared cache: nothing is sent there, and what is extracted here stays in this index, which is " +
        "written as ever"
    ),
    Flag.withDefault(false)
  )
}

/**
 * What these flags are given.
 *
 * @since 0.1.0
 * @category flags
 */
export interface Given {
  readonly shared: Option.Option<string>
  readonly readOnly: boolean
}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The tier that flags, or else the environment, name; none when neither does. Nobody is asked for it yet.
 *
 * @since 0.1.0
 * @category constructors
 */
export const fromFlags = Effect.fnUntraced(function* (
  given: Given
): Effect.fn.Return<SharedTier | undefined, SharedTierInvalid | CacheError | Config.ConfigError> {
  const from = Option.isSome(given.shared) ? "--shared" : "STRATA_SHARED"
  const named = Option.isSome(given.shared)
    ? given.shared
    : yield* Config.option(Config.NonEmptyString("STRATA_SHARED"))
  if (Option.isNone(named)) return undefined
  const invalid = (detail: string) => new SharedTierInvalid({ from, detail })
  const protocol = yield* Effect.mapError(protocolOf(named.value), invalid)
  const wrong = protocol === "postgres" ? PostgresUrl.wrongParameter(named.value, ["schema", "prefix"]) : undefined
  if (wrong !== undefined) return yield* invalid(wrong)
  const token = yield* Config.option(Config.Redacted("STRATA_SHARED_TOKEN"))
  const tier: SharedTier = {
    protocol,
    url: Redacted.make(named.value),
    readOnly: given.readOnly,
    token: Option.getOrUndefined(token)
  }
  const { validate } = yield* Effect.promise(() => import("./RemoteTier.ts"))
  yield* Effect.catchReason(validate(tier), "CacheError", "Invalid", ({ detail }) => invalid(detail))
  return tier
})

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const protocols: Readonly<Record<string, Protocol>> = {
  "http:": "http",
  "https:": "http",
  "redis:": "redis",
  "rediss:": "redis",
  "postgres:": "postgres",
  "postgresql:": "postgres",
  "s3:": "s3"
}

const protocolOf = (text: string): Effect.Effect<Protocol, string> => {
  const url = URL.parse(text)
  if (url === null) return Effect.fail("a URL is wanted, as https://cache.example.com/strata")
  const protocol = Object.hasOwn(protocols, url.protocol) ? protocols[url.protocol] : undefined
  if (protocol === undefined) return Effect.fail("the URL is not one of http, https, redis, rediss, postgres or s3")
  return protocol === "http" && url.username + url.password !== ""
    ? Effect.fail("a token belongs into STRATA_SHARED_TOKEN, not the URL")
    : Effect.succeed(protocol)
}
