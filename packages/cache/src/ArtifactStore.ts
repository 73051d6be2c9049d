/**
 * Blobs by the SHA-256 of their content. One tag for local and shared tiers. What a store gives is what was put: content
 * is hashed whenever it is read, and content of another digest is never given as a whole.
 *
 * @since 0.1.0
 */
import type { Digest } from "@strata/durable/Digest"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { Buffer } from "node:buffer"
import type { Blob } from "./CacheEntry.ts"
import type { CacheError } from "./CacheError.ts"
import * as Files from "./internal/artifactFiles.ts"
import * as Memory from "./internal/artifactMemory.ts"

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

/**
 * What every local store takes.
 *
 * @since 0.1.0
 * @category models
 */
export interface ArtifactStoreOptions {
  /** Names the tier. Default `local`. */
  readonly name?: string | undefined
  /** The largest blob that is stored, in bytes. Default 4 GiB on disk, 64 MiB in memory. */
  readonly maxBytes?: number | undefined
}

/**
 * @since 0.1.0
 * @category models
 */
export interface FileSystemOptions extends ArtifactStoreOptions {
  /** Where the blobs are; created when it is missing. Several processes may share it. */
  readonly directory: string
  /**
   * How old the file of a transfer that was killed has to be to be taken away, when the store is opened. Default 1 day.
   */
  readonly abandonedAfter?: Duration.Input | undefined
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

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Blobs in memory: for tests, and where nothing has to survive the process.
 *
 * @since 0.1.0
 * @category constructors
 */
export const makeMemory: (options?: ArtifactStoreOptions) => ArtifactStore["Service"] = Memory.make

/**
 * Blobs as files, named by their digest. A file is written under another name, made durable and then renamed, and so is
 * its folder, so that after a crash a blob is there whole or not at all. Memory does not grow with the blobs.
 *
 * @since 0.1.0
 * @category constructors
 */
export const makeFileSystem: (options: FileSystemOptions) => Effect.Effect<ArtifactStore["Service"], CacheError> =
  Files.make

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Blobs in memory, see {@link makeMemory}.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerMemory = (options?: ArtifactStoreOptions): Layer.Layer<ArtifactStore> =>
  Layer.sync(ArtifactStore, () => ArtifactStore.of(makeMemory(options)))

/**
 * Blobs as files, see {@link makeFileSystem}.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerFileSystem = (options: FileSystemOptions): Layer.Layer<ArtifactStore, CacheError> =>
  Layer.effect(ArtifactStore, makeFileSystem(options))

// ---------------------------------------------------------------------------------------------------------------------
// accessors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The whole content of a blob, verified. For blobs that fit into memory.
 *
 * @since 0.1.0
 * @category accessors
 */
export const bytes = (blob: Blob): Effect.Effect<Uint8Array, CacheError, ArtifactStore> =>
  ArtifactStore.use((store) => Effect.map(Stream.runCollect(store.get(blob)), (chunks) => Buffer.concat(chunks)))
