/** An artifact store in a map, for tests that need one and test something else. */
import { type Digest, sha256 } from "@strata/durable/Digest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { Buffer } from "node:buffer"
import { ArtifactStore } from "../../src/ArtifactStore.ts"
import { ArtifactCorrupt, ArtifactMissing, CacheError } from "../../src/CacheError.ts"

const fail = (reason: ArtifactMissing | ArtifactCorrupt) => Effect.fail(new CacheError({ reason }))

export const layer = Layer.sync(ArtifactStore, () => {
  const blobs = new Map<Digest, { readonly bytes: Uint8Array; readonly touchedAt: number }>()
  const tier = "blobs"
  const store = Effect.fnUntraced(function* <E, R>(content: Stream.Stream<Uint8Array, E, R>, expected?: Digest) {
    const bytes = Buffer.concat(yield* Stream.runCollect(content))
    const digest = sha256(bytes)
    if (expected !== undefined && expected !== digest) {
      return yield* fail(new ArtifactCorrupt({ tier, digest: expected }))
    }
    blobs.set(digest, { bytes, touchedAt: yield* Clock.currentTimeMillis })
    return { digest, size: bytes.length }
  })
  return ArtifactStore.of({
    name: tier,
    add: (content) => store(content),
    put: (blob, content) => Effect.asVoid(store(content, blob.digest)),
    get: ({ digest }) =>
      Stream.suspend(() => {
        const blob = blobs.get(digest)
        return blob === undefined
          ? Stream.fromEffect(fail(new ArtifactMissing({ tier, digests: [digest] })))
          : Stream.make(blob.bytes)
      }),
    missing: (wanted) =>
      Effect.sync(() =>
        [...new Map(wanted.map((blob) => [blob.digest, blob])).values()].filter(({ digest }) => !blobs.has(digest))
      ),
    remove: (digest) => Effect.sync(() => blobs.delete(digest)),
    list: Stream.suspend(() =>
      Stream.fromIterable(
        Array.from(blobs, ([digest, { bytes, touchedAt }]) => ({ digest, size: bytes.length, touchedAt }))
      )
    )
  })
})
