/**
 * Looks entries up in the step cache that machines share, and publishes to it. It never fails a caller: a tier that
 * errs, hangs or lies is a miss, or a refusal. Never run inside of a write: it talks to the network.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import type { CacheEntry } from "./CacheEntry.ts"
import type { Lookup } from "./Lookup.ts"
import type { Refusal } from "./Refusal.ts"
import type { StepKey } from "./StepKey.ts"

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
    /** The name of the shared tier; absent when there is none. */
    readonly tier: string | undefined
    /** Looks a key up in the shared tier, with its signature checked. Artifacts are not fetched. */
    readonly lookup: (key: StepKey) => Effect.Effect<Lookup>
    /**
     * Publishes an entry whose blobs are in the shared tier already. `None` when it is shared now, also when another
     * machine was first, with whichever result: that is journaled, and its entry stays.
     */
    readonly publishEntry: (entry: CacheEntry) => Effect.Effect<Option.Option<Refusal>>
  }
>()("@strata/cache/CacheSync") {}
