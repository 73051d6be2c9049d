/**
 * What a run can meet that is the fault of its workflow's code or of what is stored, each with the way out. Effect's
 * `WorkflowEngine` has no channel for errors of the engine, so these are the defects of a run, or of a call.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

// ---------------------------------------------------------------------------------------------------------------------
// reasons
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A run has used the name of an activity, with the same attempt, or that of a clock twice. A replay could not tell one
 * from the other.
 *
 * @since 0.1.0
 * @category reasons
 */
export class DuplicateName extends Schema.TaggedError<DuplicateName>("@strata/engine/WorkflowError/DuplicateName")(
  "DuplicateName",
  {
    kind: Schema.Literals(["activity", "clock"]),
    name: Schema.String,
    attempt: Schema.optional(Schema.Int)
  }
) {
  override get message(): string {
    const what =
      this.attempt === undefined ? `The clock "${this.name}"` : `Attempt ${this.attempt} of the activity "${this.name}"`
    const again = this.attempt === undefined ? "" : ", and retry it with Activity.retry, which counts attempts"
    return `${what} is used twice in one run. Give each ${this.kind} of a run a name of its own${again}`
  }
}

/**
 * What is stored of a run does not decode any more: its Schemas have changed.
 *
 * @since 0.1.0
 * @category reasons
 */
export class NotDecodable extends Schema.TaggedError<NotDecodable>("@strata/engine/WorkflowError/NotDecodable")(
  "NotDecodable",
  {
    what: Schema.Literals(["payload", "result"]),
    detail: Schema.String
  }
) {
  override get message(): string {
    return `The stored ${this.what} does not fit the workflow's Schema: ${this.detail}`
  }
}

/**
 * The result of a run does not fit the Schema of its workflow.
 *
 * @since 0.1.0
 * @category reasons
 */
export class NotEncodable extends Schema.TaggedError<NotEncodable>("@strata/engine/WorkflowError/NotEncodable")(
  "NotEncodable",
  {
    what: Schema.Literals(["payload", "result"]),
    detail: Schema.String
  }
) {
  override get message(): string {
    return `The ${this.what} does not fit the workflow's Schema: ${this.detail}`
  }
}

/**
 * The execution id belongs to a run of another workflow.
 *
 * @since 0.1.0
 * @category reasons
 */
export class OtherWorkflow extends Schema.TaggedError<OtherWorkflow>("@strata/engine/WorkflowError/OtherWorkflow")(
  "OtherWorkflow",
  {
    actual: Schema.String
  }
) {
  override get message(): string {
    return `The execution id belongs to a run of the workflow "${this.actual}"`
  }
}

/**
 * An id or a name that cannot be stored: empty, with NUL, or no well-formed Unicode.
 *
 * @since 0.1.0
 * @category reasons
 */
export class InvalidName extends Schema.TaggedError<InvalidName>("@strata/engine/WorkflowError/InvalidName")(
  "InvalidName",
  {
    name: Schema.String
  }
) {
  override get message(): string {
    return `${JSON.stringify(this.name)} is no name: it has to be well-formed Unicode without NUL, and not empty`
  }
}

/**
 * Something was done with an activity or a clock outside of a run.
 *
 * @since 0.1.0
 * @category reasons
 */
export class OutsideRun extends Schema.TaggedError<OutsideRun>("@strata/engine/WorkflowError/OutsideRun")(
  "OutsideRun",
  {}
) {
  override get message(): string {
    return "This runs only as a part of a workflow that this engine runs"
  }
}

/**
 * An activity is to be cached, and the engine has no step cache.
 *
 * @since 0.1.0
 * @category reasons
 */
export class NoStepCache extends Schema.TaggedError<NoStepCache>("@strata/engine/WorkflowError/NoStepCache")(
  "NoStepCache",
  { activity: Schema.String }
) {
  override get message(): string {
    return `The activity ${JSON.stringify(this.activity)} is to be cached, and there was no StepCache where the engine was built`
  }
}

/**
 * The storage failed.
 *
 * @since 0.1.0
 * @category reasons
 */
export class StorageFailed extends Schema.TaggedError<StorageFailed>("@strata/engine/WorkflowError/StorageFailed")(
  "StorageFailed",
  {
    operation: Schema.String,
    cause: Schema.Defect()
  }
) {
  override get message(): string {
    return `The storage failed in ${this.operation}`
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// errors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * @since 0.1.0
 * @category errors
 */
export const WorkflowErrorReason = Schema.Union([
  DuplicateName,
  NotDecodable,
  NotEncodable,
  OtherWorkflow,
  InvalidName,
  OutsideRun,
  NoStepCache,
  StorageFailed
])

/**
 * @since 0.1.0
 * @category errors
 */
export type WorkflowErrorReason = typeof WorkflowErrorReason.Type

/**
 * Why a workflow cannot go on.
 *
 * @since 0.1.0
 * @category errors
 */
export class WorkflowError extends Schema.TaggedError<WorkflowError>("@strata/engine/WorkflowError")("WorkflowError", {
  workflow: Schema.String,
  executionId: Schema.String,
  reason: WorkflowErrorReason
}) {
  override get message(): string {
    return `Workflow "${this.workflow}", run ${this.executionId}: ${this.reason.message}`
  }
}
