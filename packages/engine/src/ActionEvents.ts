/**
 * What actions journal beside the events of the cache. A result that is cached has the cache's own `cache-recorded`, in
 * the write that stores it; these are for what leaves no row. They hold names and digests, never what those are of.
 *
 * @since 0.1.0
 */
import { Artifact, Recording } from "@strata/cache/CacheEntry"
import { StepKey } from "@strata/cache/StepKey"
import { Digest } from "@strata/durable/Digest"
import * as Event from "@strata/journal/Event"
import { StreamName } from "@strata/journal/StreamName"
import * as Context from "effect/Context"
import * as Schema from "effect/Schema"

// ---------------------------------------------------------------------------------------------------------------------
// stream
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The stream in which actions journal, such as that of the run they are part of. Default `actions`.
 *
 * @since 0.1.0
 * @category references
 */
export const Stream: Context.Reference<StreamName> = Context.Reference("@strata/engine/ActionEvents/Stream", {
  defaultValue: () => StreamName.make("actions")
})

// ---------------------------------------------------------------------------------------------------------------------
// events
// ---------------------------------------------------------------------------------------------------------------------

const step = { key: StepKey, action: Schema.NonEmptyString, version: Schema.NonEmptyString }

/**
 * A body has failed. A body that was interrupted has no outcome, and no entry.
 *
 * @since 0.1.0
 * @category events
 */
export const Failed = Event.make(
  "action-failed",
  Schema.Struct({
    ...step,
    kind: Schema.Literals(["failure", "defect"]),
    /** The tag of the error, else its name, else what kind of value it is. */
    error: Schema.String,
    /** Of the error's encoding by its Schema, without what is `Redacted`; absent where it has none. */
    digest: Schema.optional(Digest),
    durationMs: Schema.Finite
  })
)

/**
 * A body has succeeded, and its result was not cached: the caller wanted to bypass the cache, or the action does not
 * count the result as cacheable.
 *
 * @since 0.1.0
 * @category events
 */
export const Completed = Event.make(
  "action-completed",
  Schema.Struct({
    ...step,
    recording: Recording,
    uncached: Schema.Literals(["bypass", "not-cacheable"]),
    digest: Digest,
    artifacts: Schema.Array(Artifact),
    durationMs: Schema.Finite
  })
)
