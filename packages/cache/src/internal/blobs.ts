import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { Buffer } from "node:buffer"
import type { Blob } from "../CacheEntry.ts"
import { CacheError, TooLarge } from "../CacheError.ts"

/** In order, without repetition. */
export const distinct = (blobs: ReadonlyArray<Blob>): ReadonlyArray<Blob> =>
  blobs.length < 2
    ? blobs.map(plain)
    : [...new Map(blobs.map((blob) => [`${blob.digest}/${blob.size}`, plain(blob)])).values()]

/** An artifact without its name. */
const plain = ({ digest, size }: Blob): Blob => ({ digest, size })

/** A tier, and how large a blob may be there. */
interface Bounds {
  readonly tier: string
  readonly maxBytes: number
}

export const checkSize = ({ maxBytes, tier }: Bounds, size: number): Effect.Effect<void, CacheError> =>
  size <= maxBytes
    ? Effect.void
    : Effect.fail(new CacheError({ reason: new TooLarge({ tier, size, limit: maxBytes }) }))

/** The content of a blob in memory. */
export const collect = <E, R>(
  bounds: Bounds,
  content: Stream.Stream<Uint8Array, E, R>
): Effect.Effect<Buffer, E | CacheError, R> =>
  Effect.suspend(() => {
    const chunks: Array<Uint8Array> = []
    let size = 0
    return Stream.runForEach(content, (chunk) => {
      size += chunk.length
      // A copy, as its maker may use the memory again.
      chunks.push(Uint8Array.from(chunk))
      return checkSize(bounds, size)
    }).pipe(Effect.map(() => Buffer.concat(chunks)))
  })
