import { Digest } from "@strata/durable/Digest"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { createHash } from "node:crypto"
import { createReadStream } from "node:fs"
import { type FileHandle, mkdtemp, open, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Blob } from "../CacheEntry.ts"
import { CacheError, StorageFailed, TooLarge } from "../CacheError.ts"

/** Content in a temporary file, until the scope closes. */
export interface Spooled {
  readonly blob: Blob
  readonly content: Stream.Stream<Uint8Array, CacheError>
}

/**
 * Takes content of which nothing is known to a temporary file, since its digest has to be known before it can be sent.
 */
export const spool = Effect.fnUntraced(function* <E, R>(
  tier: string,
  content: Stream.Stream<Uint8Array, E, R>,
  limit: number
): Effect.fn.Return<Spooled, E | CacheError, R | Scope.Scope> {
  const folder = yield* Effect.acquireRelease(
    attempt(tier, () => mkdtemp(join(tmpdir(), "strata-upload-"))),
    (folder) => Effect.ignore(attempt(tier, () => rm(folder, { recursive: true, force: true })))
  )
  const path = join(folder, "blob")
  const hash = createHash("sha256")
  let size = 0
  yield* Effect.acquireUseRelease(
    attempt(tier, () => open(path, "wx", 0o600)),
    (file) =>
      Stream.runForEach(content, (chunk) => {
        size += chunk.length
        if (size > limit) return Effect.fail(new CacheError({ reason: new TooLarge({ tier, size, limit }) }))
        hash.update(chunk)
        return attempt(tier, () => writeAll(file, chunk))
      }),
    (file) => Effect.ignore(attempt(tier, () => file.close()))
  )
  return {
    blob: { digest: Digest.make(hash.digest("hex")), size },
    content: Stream.fromAsyncIterable<Uint8Array, CacheError>(createReadStreamOnce(path), (cause) =>
      failure(tier, cause)
    )
  }
})

/** A new reading for each run of the stream. */
const createReadStreamOnce = (path: string): AsyncIterable<Uint8Array> => ({
  [Symbol.asyncIterator]: () => createReadStream(path, { highWaterMark: 262_144 })[Symbol.asyncIterator]()
})

const writeAll = async (file: FileHandle, chunk: Uint8Array): Promise<void> => {
  for (let offset = 0; offset < chunk.length;) {
    const { bytesWritten } = await file.write(chunk, offset)
    offset += bytesWritten
  }
}

const attempt = <A>(tier: string, f: () => Promise<A>): Effect.Effect<A, CacheError> =>
  Effect.tryPromise({ try: f, catch: (cause) => failure(tier, cause) })

const failure = (tier: string, cause: unknown): CacheError =>
  new CacheError({ reason: new StorageFailed({ tier, cause }) })
