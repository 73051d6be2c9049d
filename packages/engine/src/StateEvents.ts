/**
 * What clocks and deferreds of a run journal, in the stream of the run, see `RunStream`, and in the write that does what
 * it tells. Their rows can be made again from these entries, see `DeferredClockFold`, so the entries have what is in the
 * rows: all of a clock, and of a deferred the digests of its values, which are in its row only.
 *
 * @since 0.1.0
 */
import { Digest } from "@strata/durable/Digest"
import * as Event from "@strata/journal/Event"
import * as Schema from "effect/Schema"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * How a clock ended: its deadline came, its run settled first, or somebody took it back.
 *
 * @since 0.1.0
 * @category models
 */
export const ClockOutcome = Schema.Literals(["fired", "settled", "cancelled"])

/**
 * @since 0.1.0
 * @category models
 */
export type ClockOutcome = typeof ClockOutcome.Type

/** Milliseconds since the epoch, as in the row. */
const at = Schema.Int

// ---------------------------------------------------------------------------------------------------------------------
// events
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A run sleeps until a deadline, at which a deferred of the run is completed.
 *
 * @since 0.1.0
 * @category events
 */
export const ClockScheduled = Event.make(
  "clock-scheduled",
  Schema.Struct({ name: Schema.NonEmptyString, deferred: Schema.NonEmptyString, deadline: Schema.Int, at })
)

/**
 * A clock fired, or will not fire any more.
 *
 * @since 0.1.0
 * @category events
 */
export const ClockCompleted = Event.make(
  "clock-completed",
  Schema.Struct({ name: Schema.NonEmptyString, outcome: ClockOutcome, at })
)

/**
 * A deferred has its exit. The digests are those of the canonical JSON of exit and metadata.
 *
 * @since 0.1.0
 * @category events
 */
export const DeferredCompleted = Event.make(
  "deferred-completed",
  Schema.Struct({ name: Schema.NonEmptyString, exit: Digest, metadata: Schema.NullOr(Digest), at })
)

/**
 * A run went on with the exit of a deferred.
 *
 * @since 0.1.0
 * @category events
 */
export const DeferredConsumed = Event.make("deferred-consumed", Schema.Struct({ name: Schema.NonEmptyString, at }))

/**
 * All of them.
 *
 * @since 0.1.0
 * @category events
 */
export const all = [ClockScheduled, ClockCompleted, DeferredCompleted, DeferredConsumed] as const
