import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Pull from "effect/Pull"
import * as Stream from "effect/Stream"
import { createHash } from "node:crypto"
import type { Blob } from "../CacheEntry.ts"
import { ArtifactCorrupt, CacheError } from "../CacheError.ts"

/**
 * Content that has to be that of a blob, checked while it passes. It fails before the last chunk: only content that ends
 * is right. No more than the size of the blob is taken.
 */
export const checked = <E, R>(
  tier: string,
  blob: Blob,
  content: Stream.Stream<Uint8Array, E, R>
): Stream.Stream<Uint8Array, E | CacheError, R> =>
  Stream.transformPull(content, (pull) => Effect.sync(() => checkedPull(tier, blob, pull)))

type Chunks = Arr.NonEmptyReadonlyArray<Uint8Array>

const checkedPull = <E>(tier: string, blob: Blob, pull: Pull.Pull<Chunks, E>): Pull.Pull<Chunks, E | CacheError> => {
  const hash = createHash("sha256")
  let size = 0
  let held: Uint8Array | undefined
  let isFinished = false
  const corrupt = Effect.suspend(() =>
    Effect.fail(new CacheError({ reason: new ArtifactCorrupt({ tier, digest: blob.digest }) }))
  )

  const take = (chunks: Chunks): Pull.Pull<Chunks, E | CacheError> => {
    const ready: Array<Uint8Array> = []
    for (const chunk of chunks) {
      if (chunk.length === 0) continue
      size += chunk.length
      if (size > blob.size) return corrupt
      hash.update(chunk)
      if (held !== undefined) ready.push(held)
      held = chunk
    }
    return Arr.isArrayNonEmpty(ready) ? Effect.succeed(ready) : next
  }

  const finish = (): Pull.Pull<Chunks, CacheError> => {
    // Chunks that were all empty have pulled again, and been finished there.
    if (isFinished) return Cause.done()
    isFinished = true
    if (size !== blob.size || hash.digest("hex") !== blob.digest) return corrupt
    return held === undefined ? Cause.done() : Effect.succeed([held])
  }

  const next: Pull.Pull<Chunks, E | CacheError> = Effect.suspend(() =>
    isFinished ? Cause.done() : Pull.catchDone(Effect.flatMap(pull, take), finish)
  )
  return next
}
