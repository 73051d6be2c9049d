import * as Effect from "effect/Effect"
import type { Blob } from "../CacheEntry.ts"
import { CacheError, TooLarge } from "../CacheError.ts"

/** In order, without repetition. */
export const distinct = (blobs: ReadonlyArray<Blob>): ReadonlyArray<Blob> =>
  blobs.length < 2
    ? blobs.map(plain)
    : [...new Map(blobs.map((blob) => [`${blob.digest}/${blob.size}`, plain(blob)])).values()]

/** An artifact without its name. */
const plain = ({ digest, size }: Blob): Blob => ({ digest, size })

export const checkSize = (
  { maxBytes, tier }: { readonly tier: string; readonly maxBytes: number },
  size: number
): Effect.Effect<void, CacheError> =>
  size <= maxBytes
    ? Effect.void
    : Effect.fail(new CacheError({ reason: new TooLarge({ tier, size, limit: maxBytes }) }))
