/**
 * What a lookup found. A lookup is verified: the entry is that of the key, its result is canonical JSON of its digest, and
 * its artifacts are there. Anything else is a miss that says why; it is never served, and never an error of the step.
 *
 * @since 0.1.0
 */
import { Digest } from "@strata/durable/Digest"
import * as Schema from "effect/Schema"
import type { CacheEntry } from "./CacheEntry.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Why there is nothing to serve:
 *
 * - `Absent`: no entry.
 * - `Fenced`: an entry of another recording than the one that was asked for.
 * - `WrongKey`: the tier answered with the entry of another key.
 * - `Undecodable`: no entry can be made of what is stored, or its result does not decode by the Schema of the action.
 * - `DigestMismatch`: the result is not the one that was recorded.
 * - `ArtifactMissing`: blobs of the entry are gone or corrupt, and cannot be had from another tier.
 * - `BadSignature`: the entry is not vouched for by a key that is trusted.
 * - `Unavailable`: the tier failed; `error` is the tag of the reason.
 *
 * @since 0.1.0
 * @category models
 */
export const MissReason = Schema.TaggedUnion({
  Absent: {},
  Fenced: {},
  WrongKey: {},
  Undecodable: { detail: Schema.String },
  DigestMismatch: {},
  ArtifactMissing: { digests: Schema.Array(Digest) },
  BadSignature: {},
  Unavailable: { error: Schema.String }
})

/**
 * @since 0.1.0
 * @category models
 */
export type MissReason = typeof MissReason.Type

/**
 * @since 0.1.0
 * @category models
 */
export interface Hit {
  readonly _tag: "Hit"
  readonly entry: CacheEntry
  /** The name of the tier that had it. */
  readonly tier: string
}

/**
 * @since 0.1.0
 * @category models
 */
export interface Miss {
  readonly _tag: "Miss"
  readonly reason: MissReason
}

/**
 * @since 0.1.0
 * @category models
 */
export type Lookup = Hit | Miss

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * @since 0.1.0
 * @category constructors
 */
export const hit = (entry: CacheEntry, tier: string): Lookup => ({ _tag: "Hit", entry, tier })

/**
 * @since 0.1.0
 * @category constructors
 */
export const miss = (reason: MissReason): Lookup => ({ _tag: "Miss", reason })

/**
 * @since 0.1.0
 * @category constructors
 */
export const absent: Lookup = miss({ _tag: "Absent" })

/**
 * @since 0.1.0
 * @category constructors
 */
export const fenced: Lookup = miss({ _tag: "Fenced" })
