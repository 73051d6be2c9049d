/**
 * Looks entries up in the step cache that machines share, and publishes to it. It never fails a caller: a tier that
 * errs, hangs or lies is a miss, or a refusal. Never run inside of a write: it talks to the network.
 *
 * @since 0.1.0
 */
import { sha256 } from "@strata/durable/Digest"
import { DurableWriter } from "@strata/durable/DurableWriter"
import { Journal } from "@strata/journal/Journal"
import type { StreamName } from "@strata/journal/StreamName"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import type { CacheEntry } from "./CacheEntry.ts"
import { CacheError, Unsupported } from "./CacheError.ts"
import * as CacheEvents from "./CacheEvents.ts"
import * as Service from "./internal/cacheSync.ts"
import * as Lookup from "./Lookup.ts"
import * as Refusal from "./Refusal.ts"
import type { Signing } from "./Signing.ts"
import type { StepCache } from "./StepCache.ts"
import { StepKey } from "./StepKey.ts"
import * as TierGuard from "./TierGuard.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * How entries are shared.
 *
 * @since 0.1.0
 * @category models
 */
export interface CacheSyncOptions {
  /**
   * Keeps apart what must not be shared although its key is the same, as the results of platforms or branches: an entry
   * is found only in the namespace it was published in. Default: none, and the tier's keys are the step keys.
   */
  readonly namespace?: string | undefined
  /** Serves only what a trusted key has signed, and signs what is published. Default: signatures are not looked at. */
  readonly signing?: Signing | undefined
  /** Only looks entries up. Default `false`, but `true` with a `signing` that cannot sign. */
  readonly readOnly?: boolean | undefined
  /** Where conflicts are journaled. Default `CacheEvents.stream`. */
  readonly stream?: StreamName | undefined
  /** Deadline, breaker and bounds of the calls of the tier. */
  readonly guard?: TierGuard.TierGuardOptions | undefined
}

// ---------------------------------------------------------------------------------------------------------------------
// service
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The synchronisation of entries.
 *
 * @since 0.1.0
 * @category services
 */
export class CacheSync extends Context.Service<
  CacheSync,
  {
    /** The name of the shared tier, with the namespace if there is one; absent when there is no shared tier. */
    readonly tier: string | undefined
    /** Whether nothing is published: `publishEntry` then refuses. */
    readonly readOnly: boolean
    /** How the tier is doing; absent when there is none. */
    readonly guard: TierGuard.TierGuard | undefined
    /** Looks a key up in the shared tier, with its signature checked. Artifacts are not fetched. */
    readonly lookup: (key: StepKey) => Effect.Effect<Lookup.Lookup>
    /**
     * Publishes an entry whose blobs are in the shared tier already. `None` when it is shared now, also when another
     * machine was first, with whichever result: that is journaled, and its entry stays.
     */
    readonly publishEntry: (entry: CacheEntry) => Effect.Effect<Option.Option<Refusal.Refusal>>
  }
>()("@strata/cache/CacheSync") {}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * No shared tier: every lookup is a miss, and there is nothing to publish to. A context without a `CacheSync` means the
 * same.
 *
 * @since 0.1.0
 * @category constructors
 */
export const local: CacheSync["Service"] = {
  tier: undefined,
  readOnly: true,
  guard: undefined,
  lookup: () => Effect.succeed(Lookup.absent),
  publishEntry: () => Effect.succeedSome(nowhere)
}

/**
 * Shares entries through a step cache that other machines use too: given as an effect, since it has the tag of the local
 * one. Its name should tell it from other tiers that this machine has used, as by its address: what is published is
 * remembered by it.
 *
 * - A lookup asks the tier each time: that there was no entry is never remembered.
 * - What the tier gives is an entry of the right key and namespace, with canonical JSON of the right digest, and signed if
 *   that is asked for; anything else is a miss.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = Effect.fnUntraced(function* <E, R>(
  remote: Effect.Effect<StepCache["Service"], E, R>,
  options: CacheSyncOptions = {}
): Effect.fn.Return<CacheSync["Service"], E, R | DurableWriter | Journal | Scope.Scope> {
  const { namespace, signing } = options
  const cache = yield* remote
  const tier = namespace === undefined ? cache.name : `${cache.name}#${namespace}`
  const readOnly = options.readOnly === true || (signing !== undefined && signing.sign === undefined)
  const guard = yield* TierGuard.make(cache.name, cache.get(probedKey), options.guard)
  const service = {
    remote: cache,
    tier,
    namespace,
    signing,
    readOnly,
    stream: options.stream ?? CacheEvents.stream,
    writer: yield* DurableWriter,
    journal: yield* Journal,
    guard: guard.run
  }
  return { tier, readOnly, guard, lookup: Service.lookup(service), publishEntry: Service.publishEntry(service) }
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
export const layerLocal: Layer.Layer<CacheSync> = Layer.succeed(CacheSync, local)

/**
 * Shares entries through `remote`, see {@link make}.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = <E, R>(
  remote: Effect.Effect<StepCache["Service"], E, R>,
  options?: CacheSyncOptions
): Layer.Layer<CacheSync, E, Exclude<R, Scope.Scope> | DurableWriter | Journal> =>
  Layer.effect(CacheSync, make(remote, options))

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/** A key that no step has. */
const probedKey = StepKey.make(sha256("strata-probe"))

const nowhere = Refusal.fromError(
  "entry",
  new CacheError({ reason: new Unsupported({ tier: "local", operation: "publish" }) })
)
