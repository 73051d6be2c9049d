/**
 * What the cache journals. Every change of the cache's tables appends one of these in the same write, so that the tables
 * can be folded back from the journal; results are not in it, but joined by digest.
 *
 * @since 0.1.0
 */
import { Digest } from "@strata/durable/Digest"
import * as Event from "@strata/journal/Event"
import { StreamName } from "@strata/journal/StreamName"
import * as Schema from "effect/Schema"
import { Artifact, Metadata, Recording } from "./CacheEntry.ts"
import { MissReason } from "./Lookup.ts"
import { Refusal } from "./Refusal.ts"
import { StepKey } from "./StepKey.ts"

// ---------------------------------------------------------------------------------------------------------------------
// stream
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The stream in which a cache journals unless told otherwise.
 *
 * @since 0.1.0
 * @category stream
 */
export const stream = StreamName.make("cache")

// ---------------------------------------------------------------------------------------------------------------------
// events of the table
// ---------------------------------------------------------------------------------------------------------------------

/**
 * An entry came into the local cache: `from` is the tier that it was read from, and absent when it was recorded here.
 *
 * @since 0.1.0
 * @category events
 */
export const Recorded = Event.make(
  "cache-recorded",
  Schema.Struct({
    /** The id of its row in the ledger. */
    ledger: Schema.Int,
    key: StepKey,
    digest: Digest,
    artifacts: Schema.Array(Artifact),
    metadata: Metadata,
    from: Schema.optional(Schema.String)
  })
)

/**
 * A result that differs from the one in the cache, which stays.
 *
 * @since 0.1.0
 * @category events
 */
export const Conflicted = Event.make(
  "cache-conflict",
  Schema.Struct({
    key: StepKey,
    /** What is in the cache. */
    kept: Recording,
    keptDigest: Digest,
    /** What was not taken. */
    recording: Recording,
    digest: Digest,
    /** The shared tier where the two met; absent for the local cache. */
    tier: Schema.optional(Schema.String)
  })
)

/**
 * An entry was taken out because what is stored of it cannot be served.
 *
 * @since 0.1.0
 * @category events
 */
export const Quarantined = Event.make(
  "cache-quarantined",
  Schema.Struct({ key: StepKey, recording: Recording, reason: MissReason })
)

/**
 * An entry was taken out on request.
 *
 * @since 0.1.0
 * @category events
 */
export const Evicted = Event.make("cache-evicted", Schema.Struct({ key: StepKey, recording: Recording }))

/**
 * Entries, and results and blobs that nothing refers to any more, were taken out by the collector.
 *
 * @since 0.1.0
 * @category events
 */
export const Collected = Event.make(
  "cache-collected",
  Schema.Struct({
    entries: Schema.Array(Schema.Struct({ key: StepKey, recording: Recording })),
    /** Ids of ledger rows. */
    ledger: Schema.Array(Schema.Int),
    results: Schema.Array(Digest),
    artifacts: Schema.Array(Digest)
  })
)

// ---------------------------------------------------------------------------------------------------------------------
// events of publication
// ---------------------------------------------------------------------------------------------------------------------

/**
 * An entry could not be published; once for each entry, stage and kind.
 *
 * @since 0.1.0
 * @category events
 */
export const Refused = Event.make(
  "cache-publication-refused",
  Schema.Struct({ key: StepKey, recording: Recording, tier: Schema.String, refusal: Refusal })
)
