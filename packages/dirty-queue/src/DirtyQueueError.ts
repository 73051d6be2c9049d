/**
 * How operations of the dirty queue fail, apart from the store itself, whose failures stay `SqlError`.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import { NameTooLong } from "./Path.ts"

// ---------------------------------------------------------------------------------------------------------------------
// reasons
// ---------------------------------------------------------------------------------------------------------------------

const registration = { follower: Schema.String, scope: Schema.String }

/**
 * The follower is not registered in the scope, or not any more.
 *
 * @since 0.1.0
 * @category reasons
 */
export class NotRegistered extends Schema.TaggedError<NotRegistered>(
  "@strata/dirty-queue/DirtyQueueError/NotRegistered"
)("NotRegistered", registration) {
  override get message(): string {
    return `Follower ${JSON.stringify(this.follower)} is not registered in scope ${JSON.stringify(this.scope)}`
  }
}

/**
 * The follower is registered in the scope with another prefix.
 *
 * @since 0.1.0
 * @category reasons
 */
export class PrefixMismatch extends Schema.TaggedError<PrefixMismatch>(
  "@strata/dirty-queue/DirtyQueueError/PrefixMismatch"
)("PrefixMismatch", { ...registration, registered: Schema.String, requested: Schema.String }) {
  override get message(): string {
    return `Follower ${JSON.stringify(this.follower)} follows ${JSON.stringify(this.registered)} in scope ${JSON.stringify(this.scope)}, not ${JSON.stringify(this.requested)}`
  }
}

/**
 * The path is not covered by the prefix.
 *
 * @since 0.1.0
 * @category reasons
 */
export class OutsidePrefix extends Schema.TaggedError<OutsidePrefix>(
  "@strata/dirty-queue/DirtyQueueError/OutsidePrefix"
)("OutsidePrefix", { ...registration, prefix: Schema.String, path: Schema.String }) {
  override get message(): string {
    return `Path ${JSON.stringify(this.path)} is outside of prefix ${JSON.stringify(this.prefix)}`
  }
}

/**
 * The prefix is no well-formed Unicode, or contains NUL.
 *
 * @since 0.1.0
 * @category reasons
 */
export class InvalidPrefix extends Schema.TaggedError<InvalidPrefix>(
  "@strata/dirty-queue/DirtyQueueError/InvalidPrefix"
)("InvalidPrefix", { prefix: Schema.String }) {
  override get message(): string {
    return `Prefix ${JSON.stringify(this.prefix)} is not well-formed Unicode without NUL`
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// error
// ---------------------------------------------------------------------------------------------------------------------

/**
 * An operation that the queue refused; nothing was changed.
 *
 * @since 0.1.0
 * @category errors
 */
export class DirtyQueueError extends Schema.TaggedError<DirtyQueueError>("@strata/dirty-queue/DirtyQueueError")(
  "DirtyQueueError",
  { reason: Schema.Union([NotRegistered, PrefixMismatch, OutsidePrefix, InvalidPrefix, NameTooLong]) }
) {
  override get message(): string {
    return this.reason.message
  }
}
