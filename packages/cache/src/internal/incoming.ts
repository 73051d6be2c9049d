import { Digest } from "@strata/durable/Digest"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { createHash, randomUUID } from "node:crypto"
import { join } from "node:path"
import type { Blob } from "../CacheEntry.ts"
import type { CacheError } from "../CacheError.ts"
import * as Blobs from "./blobs.ts"
import * as Files from "./files.ts"

/** Where content is received. */
export interface Target {
  readonly tier: string
  /** The largest blob, in bytes. */
  readonly maxBytes: number
  readonly incoming: string
}

/** Content that was received whole, and is durable, but has no name yet. */
export interface Received {
  readonly blob: Blob
  /** Gives it a name in a folder that is there, in place of what has that name. */
  readonly moveTo: (folder: string, name: string) => Effect.Effect<void, CacheError>
}

/** Receives content, for as long as `use` takes: what it does not move is taken away, as is what did not end. */
export const receive = <E, R, A>(
  target: Target,
  content: Stream.Stream<Uint8Array, E, R>,
  use: (received: Received) => Effect.Effect<A, CacheError>
): Effect.Effect<A, E | CacheError, R> =>
  Effect.acquireUseRelease(
    Effect.sync(() => ({ path: join(target.incoming, randomUUID()), isMoved: false })),
    (file) =>
      Effect.flatMap(write(target, file.path, content), (blob) =>
        use({
          blob,
          moveTo: (folder, name) =>
            Effect.andThen(
              Effect.tap(Files.rename(target.tier, file.path, join(folder, name)), () =>
                Effect.sync(() => void (file.isMoved = true))
              ),
              // Only then does the name last.
              Files.syncFolder(target.tier, folder)
            )
        })
      ),
    (file) => (file.isMoved ? Effect.void : Effect.ignore(Files.unlink(target.tier, file.path), { log: true }))
  )

/** Takes away what processes left behind that were killed: by its age, as others may be at work. */
export const removeAbandoned = Effect.fnUntraced(function* ({ incoming, tier }: Target, age: Duration.Duration) {
  const before = (yield* Clock.currentTimeMillis) - Duration.toMillis(age)
  yield* Stream.runForEach(
    Files.names(tier, incoming),
    Effect.fnUntraced(function* (name) {
      const path = join(incoming, name)
      const stat = yield* Files.stat(tier, path)
      if (stat?.isFile() === true && stat.mtimeMs < before) yield* Files.unlink(tier, path)
    })
  )
})

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const write = <E, R>(
  target: Target,
  path: string,
  content: Stream.Stream<Uint8Array, E, R>
): Effect.Effect<Blob, E | CacheError, R> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { tier } = target
      const file = yield* Files.create(tier, path)
      const hash = createHash("sha256")
      let size = 0
      yield* Stream.runForEach(content, (chunk) => {
        size += chunk.length
        hash.update(chunk)
        return Effect.andThen(Blobs.checkSize(target, size), Files.writeAll(tier, file, chunk))
      })
      yield* Files.sync(tier, file, yield* Clock.currentTimeMillis)
      return { digest: Digest.make(hash.digest("hex")), size }
    })
  )
