import { Buffer } from "node:buffer"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { CacheError } from "../../CacheError.ts"
import { Invalid, TooLarge } from "../../CacheError.ts"
import type { Answer } from "./exchange.ts"
import type { Received } from "./lookupTime.ts"
import { failWith } from "../refusing.ts"

/** What is read of a body that nobody wants, so that its connection can be kept: in bytes, and in milliseconds. */
const drained = { size: 65_536, ms: 250 }

/**
 * The whole of a body of at most `limit` bytes, which is never taken from what the server says. `received` is told of
 * each part of it.
 */
export const readAll = Effect.fnUntraced(function* (
  tier: string,
  answer: Answer,
  limit: number,
  received: Received = () => {}
): Effect.fn.Return<Uint8Array, CacheError> {
  const chunks: Array<Uint8Array> = []
  let size = 0
  yield* Stream.runForEach(answer.body, (chunk) => {
    size += chunk.length
    received(chunk.length)
    chunks.push(chunk)
    return size > limit ? failWith(new TooLarge({ tier, size, limit })) : Effect.void
  })
  return Buffer.concat(chunks, size)
})

/** Other encodings than the one asked for would have to be undone to find out the size. */
export const checkEncoding = (tier: string, answer: Answer): Effect.Effect<void, CacheError> => {
  const encoding = answer.headers["content-encoding"]
  return encoding === undefined || encoding === "identity"
    ? Effect.void
    : failWith(new Invalid({ tier, detail: "a content-encoding that was not asked for" }))
}

/** Takes what is left of a body, unless it is too much. */
export const drain = (answer: Answer): Effect.Effect<void> => {
  let size = 0
  return answer.body.pipe(
    Stream.takeWhile((chunk) => (size += chunk.length) <= drained.size),
    Stream.runDrain,
    Effect.timeoutOption(drained.ms),
    Effect.ignore
  )
}

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------
