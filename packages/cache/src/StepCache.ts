/**
 * The results of steps, by step key. One tag for local and shared tiers: the first result that is recorded under a key
 * stays, a lookup is verified before it is served, and each tier says how certain its answers are.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { CacheEntry, Recording } from "./CacheEntry.ts"
import type { CacheError } from "./CacheError.ts"
import type { Lookup, MissReason } from "./Lookup.ts"
import type { StepKey } from "./StepKey.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * What became of an entry that was put, decided by the digests of the results alone:
 *
 * - `Inserted`: it is in the cache now.
 * - `ExistingSame`: the same result was there, and its metadata stays.
 * - `Conflict`: another result was there, and stays.
 * - `Unarbitrated`: it was sent, but the tier cannot tell whether another was there.
 *
 * @since 0.1.0
 * @category models
 */
export type PutOutcome =
  | { readonly _tag: "Inserted" }
  | { readonly _tag: "ExistingSame"; readonly entry: CacheEntry }
  | { readonly _tag: "Conflict"; readonly entry: CacheEntry }
  | { readonly _tag: "Unarbitrated" }

/**
 * Whether a tier can tell who was first: `exact`, or `last-writer-wins`, where a put always answers `Unarbitrated`.
 *
 * @since 0.1.0
 * @category models
 */
export const Arbitration = Schema.Literals(["exact", "last-writer-wins"])

/**
 * @since 0.1.0
 * @category models
 */
export type Arbitration = typeof Arbitration.Type

// ---------------------------------------------------------------------------------------------------------------------
// service
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A step cache.
 *
 * @since 0.1.0
 * @category services
 */
export class StepCache extends Context.Service<
  StepCache,
  {
    /** Names the tier in lookups, errors, metrics and refusals. */
    readonly name: string
    readonly arbitration: Arbitration
    /**
     * Looks a key up. With `recording`, only an entry of that recording is a hit, another one is a miss by `Fenced`. A
     * local tier takes a poisoned entry out, see `quarantine`.
     */
    readonly get: (
      key: StepKey,
      options?: { readonly recording?: Recording | undefined }
    ) => Effect.Effect<Lookup, CacheError>
    /**
     * Records an entry, unless the key has one. Fails with `Invalid` when the entry contradicts itself and, on a local
     * tier, with `ArtifactMissing` when a blob it names is not in the artifact store. A local tier puts it into the
     * write that is under way, if there is one, else into one of its own.
     *
     * `from` names the tier that the entry was read from: it is then known to be there, and is not published again.
     */
    readonly put: (
      entry: CacheEntry,
      options?: { readonly from?: string | undefined }
    ) => Effect.Effect<PutOutcome, CacheError>
    /**
     * Takes an entry out, and tells whether there was one. With `recording`, only that recording: a fresher one stays.
     * Fails with `Unsupported` on a tier that cannot.
     */
    readonly evict: (
      key: StepKey,
      options?: { readonly recording?: Recording | undefined }
    ) => Effect.Effect<boolean, CacheError>
    /** Takes a recording out because it cannot be served, and tells whether it was still there. */
    readonly quarantine: (
      key: StepKey,
      options: { readonly recording: Recording; readonly reason: MissReason }
    ) => Effect.Effect<boolean, CacheError>
  }
>()("@strata/cache/StepCache") {}
