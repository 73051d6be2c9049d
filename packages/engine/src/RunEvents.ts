/**
 * What runs of workflows journal, each in the write that does what it tells: in the stream of the run, see `RunStream`.
 * Clocks and deferreds have events of their own. Payloads hold names and digests; values are in their rows.
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
 * How something ended. `defect` also where an error and a defect came together.
 *
 * @since 0.1.0
 * @category models
 */
export const Outcome = Schema.Literals(["success", "failure", "defect", "interrupted"])

/**
 * @since 0.1.0
 * @category models
 */
export type Outcome = typeof Outcome.Type

// ---------------------------------------------------------------------------------------------------------------------
// events
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A run exists from here on.
 *
 * @since 0.1.0
 * @category events
 */
export const Started = Event.make(
  "run-started",
  Schema.Struct({
    workflow: Schema.NonEmptyString,
    /** The run that waits for it. */
    parent: Schema.optional(Schema.NonEmptyString),
    /** Of the payload's row. */
    digest: Digest
  })
)

/**
 * An attempt of an activity has an outcome, which no replay runs again.
 *
 * @since 0.1.0
 * @category events
 */
export const ActivityCompleted = Event.make(
  "activity-completed",
  Schema.Struct({
    name: Schema.String,
    attempt: Schema.Int,
    outcome: Outcome,
    /** Of the row with its exit. */
    digest: Digest
  })
)

/**
 * A run has failed and waits for somebody to resume or interrupt it, see `Workflow.SuspendOnFailure`.
 *
 * @since 0.1.0
 * @category events
 */
export const Suspended = Event.make("run-suspended", Schema.Struct({ failed: Schema.Literal(true) }))

/**
 * Somebody asked for the run to go on.
 *
 * @since 0.1.0
 * @category events
 */
export const Resumed = Event.make("run-resumed", Schema.Struct({}))

/**
 * Somebody asked for the run to be interrupted. `unsafe` also cuts off what it does at the moment.
 *
 * @since 0.1.0
 * @category events
 */
export const Interrupted = Event.make("run-interrupted", Schema.Struct({ mode: Schema.Literals(["safe", "unsafe"]) }))

/**
 * A run has its result, and will not run again.
 *
 * @since 0.1.0
 * @category events
 */
export const Completed = Event.make(
  "run-completed",
  Schema.Struct({
    outcome: Outcome,
    /** Of the row's result. */
    digest: Digest
  })
)

/**
 * A run was started with what another one had done, up to and with one of its entries; copies of those come next.
 *
 * @since 0.1.0
 * @category events
 */
export const Forked = Event.make("run-forked", Schema.Struct({ from: Schema.NonEmptyString, seq: Schema.Int }))

/**
 * All of them.
 *
 * @since 0.1.0
 * @category events
 */
export const all = [Started, Forked, ActivityCompleted, Suspended, Resumed, Interrupted, Completed] as const
