/**
 * Moves blobs between the local artifact store and the one that machines share. It never fails a caller: what cannot be
 * moved is told as a refusal. Never run inside of a write: it talks to the network.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import type { Blob } from "./CacheEntry.ts"
import type { Refusal } from "./Refusal.ts"

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
    readonly fetch: (blobs: ReadonlyArray<Blob>) => Effect.Effect<Option.Option<Refusal>>
    /**
     * Sends blobs that the shared tier lacks, then looks again. `None` when all are there. What is missing here and what
     * is missing there are two questions: each tier gets what it lacks itself.
     */
    readonly publish: (blobs: ReadonlyArray<Blob>) => Effect.Effect<Option.Option<Refusal>>
  }
>()("@strata/cache/ArtifactSync") {}
