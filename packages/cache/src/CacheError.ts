/**
 * How tiers of the cache fail. Step caches and artifact stores, local and shared, have this one vocabulary, so that what
 * is built over tiers decides by the tag of the reason. No error holds results, credentials or URLs with user info.
 *
 * @since 0.1.0
 */
import { Digest } from "@strata/durable/Digest"
import * as Schema from "effect/Schema"

const tier = { tier: Schema.String }

// ---------------------------------------------------------------------------------------------------------------------
// reasons of shared tiers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * No connection to the tier, or it broke; or a gateway says that what is behind it cannot be reached.
 *
 * @since 0.1.0
 * @category reasons
 */
export class Unreachable extends Schema.TaggedError<Unreachable>("@strata/cache/CacheError/Unreachable")(
  "Unreachable",
  { ...tier, detail: Schema.String, status: Schema.optional(Schema.Int) }
) {
  override get message(): string {
    return `${this.tier} cannot be reached: ${this.detail}`
  }
}

/**
 * The tier did not do its part in time.
 *
 * @since 0.1.0
 * @category reasons
 */
export class TimedOut extends Schema.TaggedError<TimedOut>("@strata/cache/CacheError/TimedOut")("TimedOut", {
  ...tier,
  phase: Schema.Literals(["connect", "response", "body", "total"]),
  afterMs: Schema.Finite
}) {
  override get message(): string {
    return `${this.tier} was silent for ${this.afterMs} ms (${this.phase})`
  }
}

/**
 * The tier has failed so often that it is left alone until `retryAfterMs` from now.
 *
 * @since 0.1.0
 * @category reasons
 */
export class BreakerOpen extends Schema.TaggedError<BreakerOpen>("@strata/cache/CacheError/BreakerOpen")(
  "BreakerOpen",
  { ...tier, retryAfterMs: Schema.Finite }
) {
  override get message(): string {
    return `${this.tier} is left alone for ${this.retryAfterMs} ms`
  }
}

/**
 * The call came from inside of a write, which must not hold the database while a network answers. Nothing was asked of
 * the tier.
 *
 * @since 0.1.0
 * @category reasons
 */
export class InsideWrite extends Schema.TaggedError<InsideWrite>("@strata/cache/CacheError/InsideWrite")(
  "InsideWrite",
  tier
) {
  override get message(): string {
    return `${this.tier} is not asked from inside of a write`
  }
}

/**
 * The tier refuses this client, as with 401 or 403.
 *
 * @since 0.1.0
 * @category reasons
 */
export class Forbidden extends Schema.TaggedError<Forbidden>("@strata/cache/CacheError/Forbidden")("Forbidden", {
  ...tier,
  status: Schema.optional(Schema.Int)
}) {
  override get message(): string {
    return `${this.tier} refuses access`
  }
}

/**
 * Larger than the tier, or this client, accepts; sizes in bytes. `limit` is absent where the tier does not tell it.
 *
 * @since 0.1.0
 * @category reasons
 */
export class TooLarge extends Schema.TaggedError<TooLarge>("@strata/cache/CacheError/TooLarge")("TooLarge", {
  ...tier,
  size: Schema.Finite,
  limit: Schema.optional(Schema.Finite)
}) {
  override get message(): string {
    return this.limit === undefined
      ? `${this.size} bytes are too many for ${this.tier}`
      : `${this.size} bytes are more than the ${this.limit} that ${this.tier} takes`
  }
}

/**
 * The tier sends elsewhere; other origins are not followed.
 *
 * @since 0.1.0
 * @category reasons
 */
export class Redirected extends Schema.TaggedError<Redirected>("@strata/cache/CacheError/Redirected")("Redirected", {
  ...tier,
  status: Schema.Int
}) {
  override get message(): string {
    return `${this.tier} redirects to another origin`
  }
}

/**
 * An answer that the protocol does not foresee, as a status of 500.
 *
 * @since 0.1.0
 * @category reasons
 */
export class Unexpected extends Schema.TaggedError<Unexpected>("@strata/cache/CacheError/Unexpected")("Unexpected", {
  ...tier,
  detail: Schema.String,
  status: Schema.optional(Schema.Int)
}) {
  override get message(): string {
    return `${this.tier} answered unexpectedly: ${this.detail}`
  }
}

/**
 * The tier, or this client of it, does not take writes.
 *
 * @since 0.1.0
 * @category reasons
 */
export class ReadOnly extends Schema.TaggedError<ReadOnly>("@strata/cache/CacheError/ReadOnly")("ReadOnly", tier) {
  override get message(): string {
    return `${this.tier} is read-only`
  }
}

/**
 * The tier has no such operation.
 *
 * @since 0.1.0
 * @category reasons
 */
export class Unsupported extends Schema.TaggedError<Unsupported>("@strata/cache/CacheError/Unsupported")(
  "Unsupported",
  { ...tier, operation: Schema.String }
) {
  override get message(): string {
    return `${this.tier} cannot ${this.operation}`
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// reasons of content
// ---------------------------------------------------------------------------------------------------------------------

/**
 * An entry, or a message of the tier, is not what it has to be.
 *
 * @since 0.1.0
 * @category reasons
 */
export class Invalid extends Schema.TaggedError<Invalid>("@strata/cache/CacheError/Invalid")("Invalid", {
  ...tier,
  detail: Schema.String
}) {
  override get message(): string {
    return `${this.tier}: ${this.detail}`
  }
}

/**
 * Blobs that are not in the store.
 *
 * @since 0.1.0
 * @category reasons
 */
export class ArtifactMissing extends Schema.TaggedError<ArtifactMissing>("@strata/cache/CacheError/ArtifactMissing")(
  "ArtifactMissing",
  { ...tier, digests: Schema.Array(Digest) }
) {
  override get message(): string {
    return `${this.tier} lacks ${this.digests.length} blobs, the first is ${this.digests[0] ?? "unknown"}`
  }
}

/**
 * Content whose digest or size is not the one it goes by.
 *
 * @since 0.1.0
 * @category reasons
 */
export class ArtifactCorrupt extends Schema.TaggedError<ArtifactCorrupt>("@strata/cache/CacheError/ArtifactCorrupt")(
  "ArtifactCorrupt",
  { ...tier, digest: Digest }
) {
  override get message(): string {
    return `The content of blob ${this.digest} in ${this.tier} is not that of its digest`
  }
}

/**
 * The database or the file system failed.
 *
 * @since 0.1.0
 * @category reasons
 */
export class StorageFailed extends Schema.TaggedError<StorageFailed>("@strata/cache/CacheError/StorageFailed")(
  "StorageFailed",
  { ...tier, cause: Schema.Defect() }
) {
  override get message(): string {
    return `The storage of ${this.tier} failed`
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// errors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Every reason.
 *
 * @since 0.1.0
 * @category reasons
 */
export const CacheErrorReason = Schema.Union([
  Unreachable,
  TimedOut,
  BreakerOpen,
  InsideWrite,
  Forbidden,
  TooLarge,
  Redirected,
  Unexpected,
  ReadOnly,
  Unsupported,
  Invalid,
  ArtifactMissing,
  ArtifactCorrupt,
  StorageFailed
])

/**
 * @since 0.1.0
 * @category reasons
 */
export type CacheErrorReason = typeof CacheErrorReason.Type

/**
 * A tier has failed.
 *
 * @since 0.1.0
 * @category errors
 */
export class CacheError extends Schema.TaggedError<CacheError>("@strata/cache/CacheError")("CacheError", {
  reason: CacheErrorReason
}) {
  override get message(): string {
    return this.reason.message
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// classification
// ---------------------------------------------------------------------------------------------------------------------

/**
 * What a failure says about trying again:
 *
 * - `away`: the tier as a whole is out of reach, for now; nothing is wrong with what was asked.
 * - `never`: the same request will always fail.
 * - `later`: the next attempt may succeed.
 *
 * @since 0.1.0
 * @category classification
 */
export type Outlook = "away" | "never" | "later"

/**
 * @since 0.1.0
 * @category classification
 */
export const outlook = (error: CacheError): Outlook => {
  switch (error.reason._tag) {
    case "Unreachable":
    case "TimedOut":
    case "BreakerOpen":
      return "away"
    case "Forbidden":
    case "TooLarge":
    case "Redirected":
    case "ReadOnly":
    case "Unsupported":
    case "Invalid":
      return "never"
    case "InsideWrite":
    case "Unexpected":
    case "ArtifactMissing":
    case "ArtifactCorrupt":
    case "StorageFailed":
      return "later"
  }
}
