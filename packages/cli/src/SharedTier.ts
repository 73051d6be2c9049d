/**
 * The cache that machines share, as it is named on the command line and in the environment.
 *
 * @since 0.1.0
 */
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Flag from "effect/cli/Flag"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A server of the Bazel HTTP cache protocol, see `HttpCache`.
 *
 * @since 0.1.0
 * @category models
 */
export interface SharedTier {
  readonly url: URL
  /** Nothing is sent there. */
  readonly readOnly: boolean
  readonly token: Redacted.Redacted | undefined
}

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
      "A cache that machines share, at http(s)://: what one has extracted, no other extracts. The text of indexed files " +
        "is stored there. Default: STRATA_SHARED; a bearer token is read from STRATA_SHARED_TOKEN"
    ),
    Flag.optional
  ),
  readOnly: Flag.Boolean("read-only").pipe(
    Flag.withoutNegation,
    Flag.withDescription("Take from the shared cache, and send nothing there"),
    Flag.withDefault(false)
  )
}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The tier that flags, or else the environment, name; none when neither does.
 *
 * @since 0.1.0
 * @category constructors
 */
export const fromFlags = Effect.fnUntraced(function* (given: {
  readonly shared: Option.Option<string>
  readonly readOnly: boolean
}): Effect.fn.Return<SharedTier | undefined, SharedTierInvalid | Config.ConfigError> {
  const from = Option.isSome(given.shared) ? "--shared" : "STRATA_SHARED"
  const named = Option.isSome(given.shared)
    ? given.shared
    : yield* Config.option(Config.NonEmptyString("STRATA_SHARED"))
  if (Option.isNone(named)) return undefined
  const url = yield* Effect.mapError(parse(named.value), (detail) => new SharedTierInvalid({ from, detail }))
  const token = yield* Config.option(Config.Redacted("STRATA_SHARED_TOKEN"))
  return { url, readOnly: given.readOnly, token: Option.getOrUndefined(token) }
})

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const parse = (text: string): Effect.Effect<URL, string> => {
  const url = URL.parse(text)
  if (url === null) return Effect.fail("a URL is wanted, as https://cache.example.com/strata")
  if (url.protocol !== "http:" && url.protocol !== "https:") return Effect.fail("the URL is not one of http or https")
  if (url.username + url.password !== "") return Effect.fail("a token belongs into STRATA_SHARED_TOKEN, not the URL")
  return url.search + url.hash === "" ? Effect.succeed(url) : Effect.fail("the URL has a query or a fragment")
}
