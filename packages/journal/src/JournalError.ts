/**
 * How operations of the journal fail, apart from the store itself, whose failures stay `SqlError`. No error holds
 * payloads or states.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

const entry = { stream: Schema.String, seq: Schema.Int }

const quote = (text: string): string => JSON.stringify(text)

// ---------------------------------------------------------------------------------------------------------------------
// reasons of appending and reading
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Compaction has deleted entries that the read asked for. `resumeAt` is the first entry that can still be read: go on
 * from the state that its checkpoint holds, or read after `resumeAt - 1`.
 *
 * @since 0.1.0
 * @category reasons
 */
export class BelowFloor extends Schema.TaggedError<BelowFloor>("@strata/journal/JournalError/BelowFloor")(
  "BelowFloor",
  { stream: Schema.String, resumeAt: Schema.Int }
) {
  override get message(): string {
    return `Stream ${quote(this.stream)} begins at seq ${this.resumeAt}`
  }
}

/**
 * Compaction has deleted entries of some stream that a read over all streams asked for. `resumeAt` is the cursor behind
 * the last of them: the entries behind it are all there.
 *
 * @since 0.1.0
 * @category reasons
 */
export class BelowGlobalFloor extends Schema.TaggedError<BelowGlobalFloor>(
  "@strata/journal/JournalError/BelowGlobalFloor"
)("BelowGlobalFloor", { resumeAt: Schema.Struct({ transaction: Schema.Int, ordinal: Schema.Int }) }) {
  override get message(): string {
    return `The journal is complete behind ordinal ${this.resumeAt.ordinal}`
  }
}

/**
 * The identity belongs to an event with other content, at `seq`, or, when that is 0, in the same list of events.
 *
 * @since 0.1.0
 * @category reasons
 */
export class IdentityConflict extends Schema.TaggedError<IdentityConflict>(
  "@strata/journal/JournalError/IdentityConflict"
)("IdentityConflict", { ...entry, identity: Schema.String }) {
  override get message(): string {
    return `Identity ${quote(this.identity)} has other content at seq ${this.seq} of stream ${quote(this.stream)}`
  }
}

/**
 * The payload of an event does not encode by the event's Schema, or has no canonical JSON.
 *
 * @since 0.1.0
 * @category reasons
 */
export class EncodeFailed extends Schema.TaggedError<EncodeFailed>("@strata/journal/JournalError/EncodeFailed")(
  "EncodeFailed",
  { type: Schema.String, detail: Schema.String }
) {
  override get message(): string {
    return `The payload of an event ${quote(this.type)} does not encode: ${this.detail}`
  }
}

/**
 * An entry of a known type does not decode by the Schema of its event.
 *
 * @since 0.1.0
 * @category reasons
 */
export class DecodeFailed extends Schema.TaggedError<DecodeFailed>("@strata/journal/JournalError/DecodeFailed")(
  "DecodeFailed",
  { ...entry, type: Schema.String, detail: Schema.String }
) {
  override get message(): string {
    return `Entry ${this.seq} of stream ${quote(this.stream)}, type ${quote(this.type)}, does not decode: ${this.detail}`
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// reasons of folds, checkpoints and compaction
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The seq names no entry of the stream: it was never committed, or it was rewound or compacted.
 *
 * @since 0.1.0
 * @category reasons
 */
export class NoSuchEntry extends Schema.TaggedError<NoSuchEntry>("@strata/journal/JournalError/NoSuchEntry")(
  "NoSuchEntry",
  entry
) {
  override get message(): string {
    return `Stream ${quote(this.stream)} has no entry ${this.seq}`
  }
}

/**
 * Entries were compacted before the fold was there to put its state into the checkpoint; `stream` is absent for a fold
 * over all streams. `Checkpoints.adopt` says what the state was, where that is known.
 *
 * @since 0.1.0
 * @category reasons
 */
export class CheckpointMissing extends Schema.TaggedError<CheckpointMissing>(
  "@strata/journal/JournalError/CheckpointMissing"
)("CheckpointMissing", { fold: Schema.String, stream: Schema.UndefinedOr(Schema.String), floor: Schema.Int }) {
  override get message(): string {
    const where = this.stream === undefined ? "the journal" : `stream ${quote(this.stream)}`
    return `Fold ${quote(this.fold)} has no state in the checkpoint at the floor ${this.floor} of ${where}`
  }
}

/**
 * The state of a fold does not encode, or the one in a checkpoint does not decode.
 *
 * @since 0.1.0
 * @category reasons
 */
export class StateFailed extends Schema.TaggedError<StateFailed>("@strata/journal/JournalError/StateFailed")(
  "StateFailed",
  { fold: Schema.String, detail: Schema.String }
) {
  override get message(): string {
    return `The state of fold ${quote(this.fold)} is not that of its Schema: ${this.detail}`
  }
}

/**
 * The floor's checkpoint has states of folds that are not registered in this process, and that a compaction would lose.
 *
 * @since 0.1.0
 * @category reasons
 */
export class FoldsNotRegistered extends Schema.TaggedError<FoldsNotRegistered>(
  "@strata/journal/JournalError/FoldsNotRegistered"
)("FoldsNotRegistered", { folds: Schema.Array(Schema.String) }) {
  override get message(): string {
    return `Folds that take part in compaction are not registered: ${this.folds.map(quote).join(", ")}`
  }
}

/**
 * Another fold, or another projection, is registered under the name.
 *
 * @since 0.1.0
 * @category reasons
 */
export class DuplicateRegistration extends Schema.TaggedError<DuplicateRegistration>(
  "@strata/journal/JournalError/DuplicateRegistration"
)("DuplicateRegistration", { kind: Schema.Literals(["fold", "projection"]), name: Schema.String }) {
  override get message(): string {
    return `Two ${this.kind}s have the name ${quote(this.name)}`
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// reasons of rewinding
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The checkpoint of folds over all streams, which compaction of some stream made necessary, covers entries that were to
 * be rewound. They cannot be taken out of its states again.
 *
 * @since 0.1.0
 * @category reasons
 */
export class CheckpointedGlobally extends Schema.TaggedError<CheckpointedGlobally>(
  "@strata/journal/JournalError/CheckpointedGlobally"
)("CheckpointedGlobally", { ...entry, folds: Schema.Array(Schema.String) }) {
  override get message(): string {
    return `Entry ${this.seq} of stream ${quote(this.stream)} is in the checkpoint of ${this.folds.map(quote).join(", ")}`
  }
}

/**
 * A projection could not take back what the rewound entries explain.
 *
 * @since 0.1.0
 * @category reasons
 */
export class ProjectionFailed extends Schema.TaggedError<ProjectionFailed>(
  "@strata/journal/JournalError/ProjectionFailed"
)("ProjectionFailed", { projection: Schema.String, cause: Schema.Defect() }) {
  override get message(): string {
    return `Projection ${quote(this.projection)} could not be rewound`
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// error
// ---------------------------------------------------------------------------------------------------------------------

/**
 * An operation that the journal refused; nothing was changed.
 *
 * @since 0.1.0
 * @category errors
 */
export class JournalError extends Schema.TaggedError<JournalError>("@strata/journal/JournalError")("JournalError", {
  reason: Schema.Union([
    BelowFloor,
    BelowGlobalFloor,
    IdentityConflict,
    EncodeFailed,
    DecodeFailed,
    NoSuchEntry,
    CheckpointMissing,
    StateFailed,
    FoldsNotRegistered,
    DuplicateRegistration,
    CheckpointedGlobally,
    ProjectionFailed
  ])
}) {
  override get message(): string {
    return this.reason.message
  }
}
