/**
 * What the cache keeps of a step that has run: its result as canonical JSON, the artifacts it made, and who recorded it.
 *
 * @since 0.1.0
 */
import { Digest } from "@strata/durable/Digest"
import * as Schema from "effect/Schema"
import { StepKey } from "./StepKey.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A blob by its content: its SHA-256 and its size in bytes.
 *
 * @since 0.1.0
 * @category models
 */
export const Blob = Schema.Struct({
  digest: Digest,
  size: Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
})

/**
 * @since 0.1.0
 * @category models
 */
export type Blob = typeof Blob.Type

/**
 * A blob that belongs to a result, under the name that the step gave it. Names are unique within an entry.
 *
 * @since 0.1.0
 * @category models
 */
export const Artifact = Schema.Struct({
  name: Schema.NonEmptyString,
  ...Blob.fields
})

/**
 * @since 0.1.0
 * @category models
 */
export type Artifact = typeof Artifact.Type

/**
 * Names one recording of one result: 32 lower-case hexadecimal digits, drawn at random by whoever ran the step, and
 * never changed when the entry travels between tiers. It is the fence of `StepCache.get` and `StepCache.evict`.
 *
 * @since 0.1.0
 * @category models
 */
export const Recording = Schema.String.check(Schema.isPattern(/^[0-9a-f]{32}$/)).pipe(
  Schema.brand("@strata/cache/Recording")
)

/**
 * @since 0.1.0
 * @category models
 */
export type Recording = typeof Recording.Type

/**
 * Who recorded a result, and how. The first writer's metadata stays. It is no part of the comparison of results.
 *
 * @since 0.1.0
 * @category models
 */
export const Metadata = Schema.Struct({
  recording: Recording,
  /** The machine or process, as the app names it. */
  recordedBy: Schema.NonEmptyString,
  /** Milliseconds since the epoch. */
  recordedAt: Schema.Int,
  /** Name and version of the action. */
  action: Schema.NonEmptyString,
  version: Schema.NonEmptyString,
  /** How long the step ran, in milliseconds. */
  durationMs: Schema.Finite
})

/**
 * @since 0.1.0
 * @category models
 */
export type Metadata = typeof Metadata.Type

/**
 * Proof that a holder of a key vouches for an entry, see `Signing`.
 *
 * @since 0.1.0
 * @category models
 */
export const Signature = Schema.Struct({
  keyId: Schema.NonEmptyString,
  /** Base64. */
  value: Schema.NonEmptyString
})

/**
 * @since 0.1.0
 * @category models
 */
export type Signature = typeof Signature.Type

/**
 * An entry of the cache.
 *
 * @since 0.1.0
 * @category models
 */
export interface CacheEntry {
  readonly key: StepKey
  /** Canonical JSON (RFC 8785). */
  readonly result: string
  /** Of `result` in UTF-8: what decides whether two results are the same. */
  readonly digest: Digest
  /** In the byte order of their names. */
  readonly artifacts: ReadonlyArray<Artifact>
  readonly metadata: Metadata
  /** Absent on local tiers. */
  readonly signature?: Signature | undefined
}

/**
 * The Schema of {@link CacheEntry}.
 *
 * @since 0.1.0
 * @category models
 */
export const CacheEntry: Schema.Codec<CacheEntry, unknown> = Schema.Struct({
  key: StepKey,
  result: Schema.NonEmptyString,
  digest: Digest,
  artifacts: Schema.Array(Artifact),
  metadata: Metadata,
  signature: Schema.optional(Schema.UndefinedOr(Signature))
})
