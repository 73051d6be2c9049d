/**
 * The local artifact store with the shared one behind it, under the same tag. What is here is read here; a blob that is
 * missing or corrupt here is brought from the shared tier first, and so healed. Everything else is local: blobs reach the
 * shared tier by `Publication`, with the entry that names them.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { ArtifactStore } from "./ArtifactStore.ts"
import { ArtifactSync } from "./ArtifactSync.ts"
import type { Blob } from "./CacheEntry.ts"
import type { CacheError } from "./CacheError.ts"

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Combines a local artifact store with the `ArtifactSync` in context; without one that has a tier it is the local one.
 *
 * A blob is verified before its first chunk is given, so that corrupt content can still be replaced: blobs up to 1 MiB
 * are held in memory for that, larger ones are read twice.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = Effect.fnUntraced(function* (
  local: ArtifactStore["Service"]
): Effect.fn.Return<ArtifactStore["Service"]> {
  const sync = yield* Effect.serviceOption(ArtifactSync)
  if (Option.isNone(sync) || sync.value.tier === undefined) return local
  return { ...local, get: healing(local, sync.value) }
})

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Puts the combined artifact store into the place of the local one that is in context.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<ArtifactStore, never, ArtifactStore> = Layer.effect(
  ArtifactStore,
  ArtifactStore.use(make)
)

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

type Content = Stream.Stream<Uint8Array, CacheError>

const healing =
  (local: ArtifactStore["Service"], sync: ArtifactSync["Service"]) =>
  (blob: Blob): Content =>
    Stream.unwrap(
      verified(local, blob).pipe(
        Effect.catch((error) => {
          const { _tag } = error.reason
          return _tag === "ArtifactMissing" || _tag === "ArtifactCorrupt"
            ? Effect.map(sync.fetch([blob]), (refusal) =>
                Option.isNone(refusal) ? local.get(blob) : Stream.fail(error)
              )
            : Effect.fail(error)
        })
      )
    )

/** Reads a blob to its end. */
const verified = (local: ArtifactStore["Service"], blob: Blob): Effect.Effect<Content, CacheError> =>
  blob.size <= heldBytes
    ? Effect.map(Stream.runCollect(local.get(blob)), (chunks) => Stream.fromIterable(chunks))
    : Effect.as(Stream.runDrain(local.get(blob)), local.get(blob))

const heldBytes = 1024 * 1024
