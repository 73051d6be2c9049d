/**
 * Moves blobs between the local artifact store and the one that machines share. It never fails a caller: what cannot be
 * moved is told as a refusal. Never run inside of a write: it talks to the network.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import { ArtifactStore } from "./ArtifactStore.ts"
import type { Blob } from "./CacheEntry.ts"
import { CacheError, Unsupported } from "./CacheError.ts"
import { CacheSync } from "./CacheSync.ts"
import * as Service from "./internal/artifactSync.ts"
import * as Transfer from "./internal/transfer.ts"
import * as Refusal from "./Refusal.ts"
import * as TierGuard from "./TierGuard.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * How blobs are moved.
 *
 * @since 0.1.0
 * @category models
 */
export interface ArtifactSyncOptions {
  /** How many blobs are moved at a time. Default 4. */
  readonly concurrency?: number | undefined
  /** How many bytes are on their way at a time; a larger blob goes alone. Default 64 MiB. */
  readonly maxBytes?: number | undefined
  /**
   * The slowest transfer that is waited for, in bytes a second: a blob gets the deadline of the guard, and the time that
   * it takes at this speed. Default 256 KiB.
   */
  readonly slowest?: number | undefined
  /** Deadline, breaker and bounds of the calls of the tier, unless a `CacheSync` of the same tier has a guard already. */
  readonly guard?: TierGuard.TierGuardOptions | undefined
}

// ---------------------------------------------------------------------------------------------------------------------
// service
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The synchronisation of artifacts.
 *
 * @since 0.1.0
 * @category services
 */
export class ArtifactSync extends Context.Service<
  ArtifactSync,
  {
    /** The name of the shared tier; absent when there is none. */
    readonly tier: string | undefined
    /** Brings blobs that the local store lacks from the shared tier. `None` when all are here. */
    readonly fetch: (blobs: ReadonlyArray<Blob>) => Effect.Effect<Option.Option<Refusal.Refusal>>
    /**
     * Sends blobs that the shared tier lacks, then looks again. `None` when all are there. What is missing here and what
     * is missing there are two questions: each tier gets what it lacks itself.
     */
    readonly publish: (blobs: ReadonlyArray<Blob>) => Effect.Effect<Option.Option<Refusal.Refusal>>
  }
>()("@strata/cache/ArtifactSync") {}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * No shared tier: there is nowhere to get blobs from, or to send them to. A context without an `ArtifactSync` means the
 * same.
 *
 * @since 0.1.0
 * @category constructors
 */
export const local: ArtifactSync["Service"] = {
  tier: undefined,
  fetch: (blobs) => (blobs.length === 0 ? Effect.succeedNone : Effect.succeedSome(nowhere)),
  publish: (blobs) => (blobs.length === 0 ? Effect.succeedNone : Effect.succeedSome(nowhere))
}

/**
 * Shares blobs through an artifact store that other machines use too: given as an effect, since it has the tag of the
 * local one, which is in context. A blob that several ask for at a time is moved once.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = Effect.fnUntraced(function* <E, R>(
  remote: Effect.Effect<ArtifactStore["Service"], E, R>,
  options: ArtifactSyncOptions = {}
): Effect.fn.Return<ArtifactSync["Service"], E, R | ArtifactStore | Scope.Scope> {
  const here = yield* ArtifactStore
  const there = yield* remote
  const service = {
    here,
    there,
    guard: yield* guardOf(there, options.guard),
    transfer: yield* Transfer.make(options)
  }
  return { tier: there.name, fetch: Service.fetch(service), publish: Service.publish(service) }
})

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * No shared tier, see {@link local}.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerLocal: Layer.Layer<ArtifactSync> = Layer.succeed(ArtifactSync, local)

/**
 * Shares blobs through `remote`, see {@link make}.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = <E, R>(
  remote: Effect.Effect<ArtifactStore["Service"], E, R>,
  options?: ArtifactSyncOptions
): Layer.Layer<ArtifactSync, E, Exclude<R, Scope.Scope> | ArtifactStore> =>
  Layer.effect(ArtifactSync, make(remote, options))

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const nowhere = Refusal.fromError(
  "artifact",
  new CacheError({ reason: new Unsupported({ tier: "local", operation: "share artifacts" }) })
)

/** One breaker for one tier, also when it holds both entries and blobs. */
const guardOf = Effect.fnUntraced(function* (
  there: ArtifactStore["Service"],
  options: TierGuard.TierGuardOptions | undefined
) {
  const entries = yield* Effect.serviceOption(CacheSync)
  const guard = Option.getOrUndefined(entries)?.guard
  return guard?.tier === there.name
    ? guard
    : yield* TierGuard.make(there.name, there.missing([Service.probed]), options)
})
