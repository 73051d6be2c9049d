/**
 * Blobs by the SHA-256 of their content. One tag for local and shared tiers. What a store gives is what was put: content
 * is hashed whenever it is read, and content of another digest is never given as a whole.
 *
 * @since 0.1.0
 */
import type { Digest } from "@strata/durable/Digest"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type { Blob } from "./CacheEntry.ts"
import type { CacheError } from "./CacheError.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A blob as it is stored. `touchedAt`: when it was last put, also when it was there already; milliseconds since the
 * epoch. A collector spares what was touched lately, since the entry that will refer to it may not be committed yet.
 *
 * @since 0.1.0
 * @category models
 */
export interface StoredBlob extends Blob {
  readonly touchedAt: number
}

// ---------------------------------------------------------------------------------------------------------------------
// service
// ---------------------------------------------------------------------------------------------------------------------

/**
 * An artifact store.
 *
 * @since 0.1.0
 * @category services
 */
export class ArtifactStore extends Context.Service<
  ArtifactStore,
  {
    /** Names the tier in errors, metrics and refusals. */
    readonly name: string
    /** Stores content of which nothing is known yet, and gives its digest and size. Nothing is stored in part. */
    readonly add: <E, R>(content: Stream.Stream<Uint8Array, E, R>) => Effect.Effect<Blob, E | CacheError, R>
    /**
     * Stores a known blob. Its content is not asked for when it is there already, and may be run again when a transfer is
     * repeated. Fails with `ArtifactCorrupt`, and stores nothing, when the content is not that of the blob.
     */
    readonly put: <E, R>(blob: Blob, content: Stream.Stream<Uint8Array, E, R>) => Effect.Effect<void, E | CacheError, R>
    /**
     * The content of a blob. Fails with `ArtifactMissing`, or with `ArtifactCorrupt` before the last chunk when digest or
     * size are not those of the blob: only a stream that ends is the blob.
     */
    readonly get: (blob: Blob) => Stream.Stream<Uint8Array, CacheError>
    /** Those of the blobs that are not there in their size, in order, without repetition. Contents are not read. */
    readonly missing: (blobs: ReadonlyArray<Blob>) => Effect.Effect<ReadonlyArray<Blob>, CacheError>
    /** Takes a blob out, and tells whether it was there. Fails with `Unsupported` on a tier that cannot. */
    readonly remove: (digest: Digest) => Effect.Effect<boolean, CacheError>
    /** All blobs, in no order. Fails with `Unsupported` on a tier that cannot. */
    readonly list: Stream.Stream<StoredBlob, CacheError>
  }
>()("@strata/cache/ArtifactStore") {}
