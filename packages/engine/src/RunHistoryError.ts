/**
 * How the history of a run cannot be changed as was asked, apart from the store, whose failures stay `SqlError`, and the
 * journal, whose failures stay `JournalError`.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

const run = { executionId: Schema.String }

const quote = (text: string): string => JSON.stringify(text)

// ---------------------------------------------------------------------------------------------------------------------
// reasons
// ---------------------------------------------------------------------------------------------------------------------

/**
 * There is no such run, or there is none any more.
 *
 * @since 0.1.0
 * @category reasons
 */
export class UnknownRun extends Schema.TaggedError<UnknownRun>("@strata/engine/RunHistoryError/UnknownRun")(
  "UnknownRun",
  run
) {
  override get message(): string {
    return `there is no run ${quote(this.executionId)}`
  }
}

/**
 * The run has entries from `first` to `last` that it can be taken back to; with less it would not have been started.
 *
 * @since 0.1.0
 * @category reasons
 */
export class SeqOutOfRange extends Schema.TaggedError<SeqOutOfRange>("@strata/engine/RunHistoryError/SeqOutOfRange")(
  "SeqOutOfRange",
  { ...run, seq: Schema.Int, first: Schema.Int, last: Schema.Int }
) {
  override get message(): string {
    return `the seq ${this.seq} is none of run ${quote(this.executionId)}: from ${this.first} to ${this.last} is possible`
  }
}

/**
 * Compaction has deleted the entries below `floor`.
 *
 * @since 0.1.0
 * @category reasons
 */
export class BelowFloor extends Schema.TaggedError<BelowFloor>("@strata/engine/RunHistoryError/BelowFloor")(
  "BelowFloor",
  { ...run, seq: Schema.Int, floor: Schema.Int }
) {
  override get message(): string {
    return `the seq ${this.seq} of run ${quote(this.executionId)} was compacted: from ${this.floor} on is possible`
  }
}

/**
 * Another process that is alive runs it at the moment.
 *
 * @since 0.1.0
 * @category reasons
 */
export class OwnedElsewhere extends Schema.TaggedError<OwnedElsewhere>("@strata/engine/RunHistoryError/OwnedElsewhere")(
  "OwnedElsewhere",
  { ...run, owner: Schema.Int, host: Schema.String, pid: Schema.Int }
) {
  override get message(): string {
    return `the run ${quote(this.executionId)} is under way in process ${this.pid} on ${this.host}`
  }
}

/**
 * The run has its result already.
 *
 * @since 0.1.0
 * @category reasons
 */
export class RunSettled extends Schema.TaggedError<RunSettled>("@strata/engine/RunHistoryError/RunSettled")(
  "RunSettled",
  run
) {
  override get message(): string {
    return `the run ${quote(this.executionId)} has settled already`
  }
}

/**
 * The new run cannot have this id: a run has it, or something was told to one that will.
 *
 * @since 0.1.0
 * @category reasons
 */
export class ExecutionIdTaken extends Schema.TaggedError<ExecutionIdTaken>(
  "@strata/engine/RunHistoryError/ExecutionIdTaken"
)("ExecutionIdTaken", run) {
  override get message(): string {
    return `the execution id ${quote(this.executionId)} is taken`
  }
}

/**
 * An id that cannot be stored: empty, with NUL, or no well-formed Unicode.
 *
 * @since 0.1.0
 * @category reasons
 */
export class InvalidExecutionId extends Schema.TaggedError<InvalidExecutionId>(
  "@strata/engine/RunHistoryError/InvalidExecutionId"
)("InvalidExecutionId", run) {
  override get message(): string {
    return `${quote(this.executionId)} is no execution id: it has to be well-formed Unicode without NUL, and not empty`
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// error
// ---------------------------------------------------------------------------------------------------------------------

/**
 * @since 0.1.0
 * @category errors
 */
export const RunHistoryErrorReason = Schema.Union([
  UnknownRun,
  SeqOutOfRange,
  BelowFloor,
  OwnedElsewhere,
  RunSettled,
  ExecutionIdTaken,
  InvalidExecutionId
])

/**
 * @since 0.1.0
 * @category errors
 */
export type RunHistoryErrorReason = typeof RunHistoryErrorReason.Type

/**
 * An operation that was refused; nothing was changed.
 *
 * @since 0.1.0
 * @category errors
 */
export class RunHistoryError extends Schema.TaggedError<RunHistoryError>("@strata/engine/RunHistoryError")(
  "RunHistoryError",
  { reason: RunHistoryErrorReason }
) {
  override get message(): string {
    return this.reason.message
  }
}
