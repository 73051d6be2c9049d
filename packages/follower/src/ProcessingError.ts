/**
 * Why a path could not be processed, in the terms that decide what happens to it next. Readers and index writers fail
 * with it; whatever else they fail with is no answer about the path but about the store.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

// ---------------------------------------------------------------------------------------------------------------------
// reasons
// ---------------------------------------------------------------------------------------------------------------------

const fields = { message: Schema.String, cause: Schema.optionalKey(Schema.Defect()) }

/**
 * The next attempt may succeed: the path is retried with growing delays, and becomes a dead letter after the last one.
 *
 * @since 0.1.0
 * @category reasons
 */
export class Transient extends Schema.TaggedError<Transient>("@strata/follower/ProcessingError/Transient")(
  "Transient",
  fields
) {}

/**
 * What the follower depends on cannot be reached, so no path can be processed now: the follower pauses, and the
 * attempt does not count.
 *
 * @since 0.1.0
 * @category reasons
 */
export class Busy extends Schema.TaggedError<Busy>("@strata/follower/ProcessingError/Busy")("Busy", fields) {}

/**
 * No attempt can succeed: the path is a dead letter at once, until it changes or is revived.
 *
 * @since 0.1.0
 * @category reasons
 */
export class Poison extends Schema.TaggedError<Poison>("@strata/follower/ProcessingError/Poison")("Poison", fields) {}

/**
 * There is no such content any more: the path is removed from the index.
 *
 * @since 0.1.0
 * @category reasons
 */
export class Gone extends Schema.TaggedError<Gone>("@strata/follower/ProcessingError/Gone")("Gone", fields) {}

// ---------------------------------------------------------------------------------------------------------------------
// error
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The failure of one path, or of a batch of paths, with the reason that decides what the follower does.
 *
 * @since 0.1.0
 * @category errors
 */
export class ProcessingError extends Schema.TaggedError<ProcessingError>("@strata/follower/ProcessingError")(
  "ProcessingError",
  { reason: Schema.Union([Transient, Busy, Poison, Gone]) }
) {
  override get message(): string {
    return this.reason.message
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

const causeOf = (cause: unknown) => (cause === undefined ? {} : { cause })

/**
 * A failure that the next attempt may not meet.
 *
 * @since 0.1.0
 * @category constructors
 */
export const transient = (message: string, cause?: unknown): ProcessingError =>
  new ProcessingError({ reason: new Transient({ message, ...causeOf(cause) }) })

/**
 * A failure of what all paths depend on.
 *
 * @since 0.1.0
 * @category constructors
 */
export const busy = (message: string, cause?: unknown): ProcessingError =>
  new ProcessingError({ reason: new Busy({ message, ...causeOf(cause) }) })

/**
 * A failure that every attempt will meet.
 *
 * @since 0.1.0
 * @category constructors
 */
export const poison = (message: string, cause?: unknown): ProcessingError =>
  new ProcessingError({ reason: new Poison({ message, ...causeOf(cause) }) })

/**
 * The content is gone.
 *
 * @since 0.1.0
 * @category constructors
 */
export const gone = (message: string, cause?: unknown): ProcessingError =>
  new ProcessingError({ reason: new Gone({ message, ...causeOf(cause) }) })
