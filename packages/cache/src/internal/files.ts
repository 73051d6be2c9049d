/** The file system, with its failures as `StorageFailed`, and `undefined` for what is not there. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { Buffer } from "node:buffer"
import { createHash } from "node:crypto"
import type { Stats } from "node:fs"
import * as Fs from "node:fs/promises"
import { dirname } from "node:path"
import { CacheError, StorageFailed } from "../CacheError.ts"

// ---------------------------------------------------------------------------------------------------------------------
// folders
// ---------------------------------------------------------------------------------------------------------------------

/** Makes a folder, and what is above it, last. Does nothing when it is there. */
export const makeFolder = Effect.fnUntraced(function* (tier: string, path: string): Effect.fn.Return<void, CacheError> {
  const first = yield* attempt(tier, () => Fs.mkdir(path, { recursive: true }))
  if (first === undefined) return
  for (let made = path; made.length >= first.length; made = dirname(made)) {
    yield* syncFolder(tier, dirname(made))
  }
})

/** Makes the names in a folder last. */
export const syncFolder = (tier: string, path: string): Effect.Effect<void, CacheError> =>
  Effect.scoped(
    Effect.flatMap(
      acquire(tier, () => Fs.open(path, "r")),
      (folder) => attempt(tier, () => folder.sync())
    )
  )

/** The names in a folder, in no order; none when it is not there. */
export const names = (tier: string, path: string): Stream.Stream<string, CacheError> =>
  Stream.unwrap(
    Effect.map(
      found(tier, () => Fs.opendir(path)),
      (folder) =>
        folder === undefined
          ? Stream.empty
          : Stream.map(Stream.fromAsyncIterable(folder, failure(tier)), ({ name }) => name)
    )
  )

// ---------------------------------------------------------------------------------------------------------------------
// files
// ---------------------------------------------------------------------------------------------------------------------

export const stat = (tier: string, path: string): Effect.Effect<Stats | undefined, CacheError> =>
  found(tier, () => Fs.stat(path))

export const statOpen = (tier: string, file: Fs.FileHandle): Effect.Effect<Stats, CacheError> =>
  attempt(tier, () => file.stat())

/** Takes a file away, and tells whether there was one. */
export const unlink = (tier: string, path: string): Effect.Effect<boolean, CacheError> =>
  Effect.map(
    found(tier, () => Fs.unlink(path).then(() => true)),
    (removed) => removed === true
  )

export const rename = (tier: string, from: string, to: string): Effect.Effect<void, CacheError> =>
  attempt(tier, () => Fs.rename(from, to))

/** Sets the time of the last change, in milliseconds since the epoch, and tells whether there is such a file. */
export const setTime = (tier: string, path: string, time: number): Effect.Effect<boolean, CacheError> =>
  Effect.map(
    found(tier, () => Fs.utimes(path, time / 1000, time / 1000).then(() => true)),
    (changed) => changed === true
  )

export const open = (
  tier: string,
  path: string,
  flags: "r"
): Effect.Effect<Fs.FileHandle | undefined, CacheError, Scope.Scope> =>
  Effect.acquireRelease(
    found(tier, () => Fs.open(path, flags)),
    (file) => (file === undefined ? Effect.void : close(tier, file))
  )

/** A new file; fails when there is one. */
export const create = (tier: string, path: string): Effect.Effect<Fs.FileHandle, CacheError, Scope.Scope> =>
  acquire(tier, () => Fs.open(path, "wx", 0o644))

/** The content of a file from its beginning. `expected` is its likely size: no more memory is taken at a time. */
export const read = (
  tier: string,
  file: Fs.FileHandle,
  expected = Number.POSITIVE_INFINITY
): Stream.Stream<Uint8Array, CacheError> =>
  Stream.unfold(0, (position: number): Effect.Effect<readonly [Uint8Array, number] | undefined, CacheError> => {
    const length = Math.min(Math.max(expected - position, 1), chunkBytes)
    return Effect.map(
      attempt(tier, () => file.read(Buffer.allocUnsafe(length), 0, length, position)),
      ({ buffer, bytesRead }) => (bytesRead === 0 ? undefined : [buffer.subarray(0, bytesRead), position + bytesRead])
    )
  })

const chunkBytes = 262_144

export const digestOf = (tier: string, file: Fs.FileHandle): Effect.Effect<string, CacheError> =>
  Effect.suspend(() => {
    const hash = createHash("sha256")
    return Stream.runForEach(read(tier, file), (chunk) => Effect.sync(() => void hash.update(chunk))).pipe(
      Effect.map(() => hash.digest("hex"))
    )
  })

export const writeAll = (tier: string, file: Fs.FileHandle, chunk: Uint8Array): Effect.Effect<void, CacheError> =>
  attempt(tier, async () => {
    for (let offset = 0; offset < chunk.length;) {
      const { bytesWritten } = await file.write(chunk, offset)
      offset += bytesWritten
    }
  })

/** Makes the content of a file last, with the time of its last change. */
export const sync = (tier: string, file: Fs.FileHandle, time: number): Effect.Effect<void, CacheError> =>
  attempt(tier, async () => {
    await file.utimes(time / 1000, time / 1000)
    await file.sync()
  })

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const failure =
  (tier: string) =>
  (cause: unknown): CacheError =>
    new CacheError({ reason: new StorageFailed({ tier, cause }) })

const attempt = <A>(tier: string, call: () => Promise<A>): Effect.Effect<A, CacheError> =>
  Effect.tryPromise({ try: call, catch: failure(tier) })

const found = <A>(tier: string, call: () => Promise<A>): Effect.Effect<A | undefined, CacheError> =>
  attempt(tier, () => call().catch((cause: unknown) => (isGone(cause) ? undefined : Promise.reject(cause))))

const isGone = (cause: unknown): boolean =>
  cause instanceof Error && "code" in cause && (cause.code === "ENOENT" || cause.code === "ENOTDIR")

const close = (tier: string, file: Fs.FileHandle): Effect.Effect<void> =>
  Effect.ignore(
    attempt(tier, () => file.close()),
    { log: true }
  )

const acquire = (
  tier: string,
  call: () => Promise<Fs.FileHandle>
): Effect.Effect<Fs.FileHandle, CacheError, Scope.Scope> =>
  Effect.acquireRelease(attempt(tier, call), (file) => close(tier, file))
