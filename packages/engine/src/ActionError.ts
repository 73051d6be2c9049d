/**
 * How running an action fails beside the errors of its body. No error, and no message of one, holds any part of an
 * input or of a result but keys of objects.
 *
 * @since 0.1.0
 */
import { Recording } from "@strata/cache/CacheEntry"
import { Digest } from "@strata/durable/Digest"
import * as Schema from "effect/Schema"

// ---------------------------------------------------------------------------------------------------------------------
// reasons
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The input has no key: its Schema does not encode it, or what comes out has no canonical JSON. Or it has one, and does
 * not come back from its encoding, so that the body cannot run on it. `paths` lead to what is wrong, as JSON pointers;
 * empty where that is not known.
 *
 * @since 0.1.0
 * @category reasons
 */
export class InputInvalid extends Schema.TaggedError<InputInvalid>("@strata/engine/ActionError/InputInvalid")(
  "InputInvalid",
  { paths: Schema.Array(Schema.String) }
) {
  override get message(): string {
    return `the input cannot be encoded and decoded again${at(this.paths)}`
  }
}

/**
 * The body's result is not of the Schema for it, or does not come back as it was stored. Nothing is cached.
 *
 * @since 0.1.0
 * @category reasons
 */
export class SuccessInvalid extends Schema.TaggedError<SuccessInvalid>("@strata/engine/ActionError/SuccessInvalid")(
  "SuccessInvalid",
  { paths: Schema.Array(Schema.String) }
) {
  override get message(): string {
    return `the result cannot be encoded${at(this.paths)}`
  }
}

/**
 * The cache has another result under the same key, recorded by another process or machine in the meantime. It stays.
 * The action is not as deterministic as it says, or its key does not cover all that its result depends on.
 *
 * @since 0.1.0
 * @category reasons
 */
export class Conflict extends Schema.TaggedError<Conflict>("@strata/engine/ActionError/Conflict")("Conflict", {
  /** What is in the cache. */
  kept: Recording,
  keptDigest: Digest,
  /** Of the result that was not taken. */
  digest: Digest
}) {
  override get message(): string {
    return `the result differs from the one that ${this.kept} recorded`
  }
}

/**
 * An action was run inside of a write. Its body could then wait for a network, or for the very database, while every
 * other writer waits for it; and its outcome would be lost with that write.
 *
 * @since 0.1.0
 * @category reasons
 */
export class InsideWrite extends Schema.TaggedError<InsideWrite>("@strata/engine/ActionError/InsideWrite")(
  "InsideWrite",
  {}
) {
  override get message(): string {
    return "actions do not run inside of a write: run it before, and use its result in the write"
  }
}

/**
 * The action waits for itself: its body runs it with the same input, itself or through others.
 *
 * @since 0.1.0
 * @category reasons
 */
export class Recursive extends Schema.TaggedError<Recursive>("@strata/engine/ActionError/Recursive")("Recursive", {}) {
  override get message(): string {
    return "it waits for its own result"
  }
}

/**
 * The name of an artifact is taken by another one of the same result, is empty, or is no text that can be stored.
 *
 * @since 0.1.0
 * @category reasons
 */
export class ArtifactNameInvalid extends Schema.TaggedError<ArtifactNameInvalid>(
  "@strata/engine/ActionError/ArtifactNameInvalid"
)("ArtifactNameInvalid", { name: Schema.String }) {
  override get message(): string {
    return `an artifact cannot have the name ${JSON.stringify(this.name)}, or there is one already`
  }
}

/**
 * The artifact store did not take an artifact.
 *
 * @since 0.1.0
 * @category reasons
 */
export class ArtifactFailed extends Schema.TaggedError<ArtifactFailed>("@strata/engine/ActionError/ArtifactFailed")(
  "ArtifactFailed",
  { name: Schema.String, cause: Schema.Defect() }
) {
  override get message(): string {
    return `the artifact ${JSON.stringify(this.name)} was not stored`
  }
}

/**
 * The cache, or the journal, failed: when the key was looked up, so that the body did not run, or when the outcome of
 * the body was to be committed, so that there is no trace of it.
 *
 * @since 0.1.0
 * @category reasons
 */
export class CacheFailed extends Schema.TaggedError<CacheFailed>("@strata/engine/ActionError/CacheFailed")(
  "CacheFailed",
  { stage: Schema.Literals(["lookup", "commit"]), cause: Schema.Defect() }
) {
  override get message(): string {
    return this.stage === "lookup" ? "the cache cannot be read" : "the outcome was not committed"
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// errors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Every reason.
 *
 * @since 0.1.0
 * @category reasons
 */
export const ActionErrorReason = Schema.Union([
  InputInvalid,
  SuccessInvalid,
  Conflict,
  InsideWrite,
  Recursive,
  ArtifactNameInvalid,
  ArtifactFailed,
  CacheFailed
])

/**
 * @since 0.1.0
 * @category reasons
 */
export type ActionErrorReason = typeof ActionErrorReason.Type

/**
 * An action could not be run, or not be recorded.
 *
 * @since 0.1.0
 * @category errors
 */
export class ActionError extends Schema.TaggedError<ActionError>("@strata/engine/ActionError")("ActionError", {
  /** The name of the action. */
  action: Schema.String,
  reason: ActionErrorReason
}) {
  override get message(): string {
    return `Action ${this.action}: ${this.reason.message}`
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const at = (paths: ReadonlyArray<string>): string => (paths.length === 0 ? "" : ` at ${paths.join(", ")}`)
