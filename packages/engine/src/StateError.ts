/**
 * How clocks and deferreds refuse what they are given, apart from the store, whose failures stay `SqlError`, and the
 * journal, whose failures stay `JournalError`. No error holds an exit or its metadata.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

const quote = (text: string): string => JSON.stringify(text)

// ---------------------------------------------------------------------------------------------------------------------
// reasons
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A name that not every store keeps unchanged: it is empty, or has a NUL or half of a surrogate pair.
 *
 * @since 0.1.0
 * @category reasons
 */
export class InvalidName extends Schema.TaggedError<InvalidName>("@strata/engine/StateError/InvalidName")(
  "InvalidName",
  { kind: Schema.Literals(["execution id", "clock", "deferred"]), name: Schema.String }
) {
  override get message(): string {
    return `The ${this.kind} ${quote(this.name)} has to be well-formed Unicode without NUL, and not empty`
  }
}

/**
 * An exit, or its metadata, that has no canonical JSON.
 *
 * @since 0.1.0
 * @category reasons
 */
export class InvalidValue extends Schema.TaggedError<InvalidValue>("@strata/engine/StateError/InvalidValue")(
  "InvalidValue",
  { executionId: Schema.String, deferred: Schema.String, detail: Schema.String }
) {
  override get message(): string {
    return `The completion of deferred ${quote(this.deferred)} of run ${quote(this.executionId)} is refused: ${this.detail}`
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// error
// ---------------------------------------------------------------------------------------------------------------------

/**
 * An operation that was refused; nothing was changed.
 *
 * @since 0.1.0
 * @category errors
 */
export class StateError extends Schema.TaggedError<StateError>("@strata/engine/StateError")("StateError", {
  reason: Schema.Union([InvalidName, InvalidValue])
}) {
  override get message(): string {
    return this.reason.message
  }
}
