/**
 * What the fold of clocks and deferreds could not join: the journal refers to something that is not there, or is not what
 * it was.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

// ---------------------------------------------------------------------------------------------------------------------
// references
// ---------------------------------------------------------------------------------------------------------------------

const run = { executionId: Schema.String }

/**
 * A deferred is completed, as the journal says, and has no row.
 *
 * @since 0.1.0
 * @category references
 */
export const RowMissing = Schema.Struct({ kind: Schema.Literal("row_missing"), ...run, deferred: Schema.String })

/**
 * The exit of a deferred, or its metadata, is not the one that the journal has the digest of.
 *
 * @since 0.1.0
 * @category references
 */
export const DigestMismatch = Schema.Struct({
  kind: Schema.Literal("digest_mismatch"),
  ...run,
  deferred: Schema.String,
  part: Schema.Literals(["exit", "metadata"])
})

/**
 * The journal has the stream of a run that has no row.
 *
 * @since 0.1.0
 * @category references
 */
export const RunMissing = Schema.Struct({ kind: Schema.Literal("run_missing"), ...run })

/**
 * The stream of a run was compacted when the fold was not registered: the checkpoint at its floor lacks the state.
 *
 * @since 0.1.0
 * @category references
 */
export const CheckpointMissing = Schema.Struct({
  kind: Schema.Literal("checkpoint_missing"),
  ...run,
  floor: Schema.Int
})

/**
 * A reference that could not be joined.
 *
 * @since 0.1.0
 * @category references
 */
export const Unjoined = Schema.Union([RowMissing, DigestMismatch, RunMissing, CheckpointMissing])

/**
 * @since 0.1.0
 * @category references
 */
export type Unjoined = typeof Unjoined.Type

// ---------------------------------------------------------------------------------------------------------------------
// error
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Some references could not be joined, all of which are listed; nothing was written.
 *
 * @since 0.1.0
 * @category errors
 */
export class FoldIncomplete extends Schema.TaggedError<FoldIncomplete>("@strata/engine/FoldIncomplete")(
  "FoldIncomplete",
  { unjoined: Schema.Array(Unjoined) }
) {
  override get message(): string {
    const { length } = this.unjoined
    const shown = this.unjoined.slice(0, 5).map(describe).join(", ")
    return `The journal cannot be joined to clocks and deferreds: ${shown}${length > 5 ? ` and ${length - 5} more` : ""}`
  }
}

const describe = (reference: Unjoined): string =>
  `${reference.kind} of run ${JSON.stringify(reference.executionId)}` +
  ("deferred" in reference ? `, deferred ${JSON.stringify(reference.deferred)}` : "")
