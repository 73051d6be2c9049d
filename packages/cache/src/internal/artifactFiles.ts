import { Digest } from "@strata/durable/Digest"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { FileHandle } from "node:fs/promises"
import { join } from "node:path"
import type { ArtifactStore, FileSystemOptions, StoredBlob } from "../ArtifactStore.ts"
import type { Blob } from "../CacheEntry.ts"
import { ArtifactMissing, CacheError } from "../CacheError.ts"
import * as Blobs from "./blobs.ts"
import { checked } from "./checked.ts"
import * as Files from "./files.ts"
import * as Incoming from "./incoming.ts"

type Service = ArtifactStore["Service"]

/**
 * A folder of a store. Blobs lie in `blobs`, in a folder for the first two digits of their digest, so that no folder has
 * too many; what is being written lies in `incoming`, on the same file system, or a rename could not be atomic.
 */
interface Store extends Incoming.Target {
  readonly blobs: string
  /** The folders in it that are known to last. */
  readonly durable: Set<string>
}

export const make = Effect.fnUntraced(function* (options: FileSystemOptions): Effect.fn.Return<Service, CacheError> {
  const tier = options.name ?? "local"
  const store: Store = {
    tier,
    maxBytes: options.maxBytes ?? 4 * 1024 * 1024 * 1024,
    blobs: join(options.directory, "blobs"),
    incoming: join(options.directory, "incoming"),
    durable: new Set()
  }
  yield* Files.makeFolder(tier, store.blobs)
  yield* Files.makeFolder(tier, store.incoming)
  yield* Incoming.removeAbandoned(store, Duration.fromInputUnsafe(options.abandonedAfter ?? "1 day"))
  return {
    name: tier,
    add: add(store),
    put: put(store),
    get: get(store),
    missing: missing(store),
    remove: (digest) => Effect.suspend(() => Files.unlink(tier, pathOf(store, digest))),
    list: list(store)
  }
})

// ---------------------------------------------------------------------------------------------------------------------
// operations
// ---------------------------------------------------------------------------------------------------------------------

const add = (store: Store): Service["add"] =>
  Effect.fn("ArtifactStore.add")(function* (content) {
    yield* Effect.annotateCurrentSpan({ tier: store.tier })
    // Also into the place of a blob that is there: it may be corrupt, and this one is not.
    return yield* Incoming.receive(store, content, (received) => Effect.as(keep(store, received), received.blob))
  })

const put = (store: Store): Service["put"] =>
  Effect.fn("ArtifactStore.put")(function* (blob, content) {
    yield* Effect.annotateCurrentSpan({ tier: store.tier, digest: blob.digest, size: blob.size })
    if (yield* touch(store, blob)) return
    yield* Blobs.checkSize(store, blob.size)
    yield* Incoming.receive(store, checked(store.tier, blob, content), (received) => keep(store, received))
  })

const get =
  (store: Store): Service["get"] =>
  (blob) =>
    Stream.unwrap(
      Effect.gen(function* () {
        const file = yield* Files.open(store.tier, pathOf(store, blob.digest), "r")
        if (file === undefined) {
          return yield* new CacheError({ reason: new ArtifactMissing({ tier: store.tier, digests: [blob.digest] }) })
        }
        return checked(store.tier, blob, Files.read(store.tier, file, blob.size)).pipe(
          Stream.tapError((error) =>
            error.reason._tag === "ArtifactCorrupt" ? discard(store, blob, file) : Effect.void
          )
        )
      })
    )

const missing = (store: Store): Service["missing"] =>
  Effect.fn("ArtifactStore.missing")(function* (blobs) {
    yield* Effect.annotateCurrentSpan({ tier: store.tier, blobs: blobs.length })
    return yield* Effect.filter(Blobs.distinct(blobs), (blob) => Effect.map(has(store, blob), (there) => !there), {
      concurrency: 16
    })
  })

const list = (store: Store): Service["list"] =>
  Files.names(store.tier, store.blobs).pipe(
    Stream.filter((name) => isFolder.test(name)),
    Stream.flatMap((name) => Files.names(store.tier, join(store.blobs, name))),
    Stream.mapEffect((name) => (isDigest.test(name) ? stored(store, Digest.make(name)) : Effect.succeed([])), {
      concurrency: 16
    }),
    Stream.flattenIterable
  )

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const isFolder = /^[0-9a-f]{2}$/
const isDigest = /^[0-9a-f]{64}$/

const folderOf = ({ blobs }: Store, digest: Digest): string => join(blobs, digest.slice(0, 2))

/** Dies for what is no digest, whatever its type says: no path leads out of the store. */
const pathOf = (store: Store, digest: Digest): string => {
  if (!isDigest.test(digest)) throw new TypeError("Not a digest")
  return join(folderOf(store, digest), digest)
}

/**
 * Gives content its name. Another process may have made the folder and not come to make it last, so that is done by each
 * one, once.
 */
const keep = Effect.fnUntraced(function* (store: Store, received: Incoming.Received) {
  const { digest } = received.blob
  const folder = folderOf(store, digest)
  yield* Files.makeFolder(store.tier, folder)
  if (!store.durable.has(folder)) {
    yield* Files.syncFolder(store.tier, store.blobs)
    store.durable.add(folder)
  }
  yield* received.moveTo(folder, digest)
})

const has = (store: Store, { digest, size }: Blob): Effect.Effect<boolean, CacheError> =>
  Effect.suspend(() => Effect.map(Files.stat(store.tier, pathOf(store, digest)), (stat) => stat?.size === size))

/** Says that a blob is wanted, and whether it is there to be had. */
const touch = Effect.fnUntraced(function* (store: Store, blob: Blob) {
  if (!(yield* has(store, blob))) return false
  return yield* Files.setTime(store.tier, pathOf(store, blob.digest), yield* Clock.currentTimeMillis)
})

/**
 * Takes corrupt content away, unless other content has taken its place, or it is not the content that is wrong but the
 * size that was asked for.
 */
const discard = Effect.fnUntraced(function* (store: Store, { digest }: Blob, file: FileHandle) {
  const { tier } = store
  if ((yield* Files.digestOf(tier, file)) === digest) return
  const path = pathOf(store, digest)
  const [opened, present] = yield* Effect.all([Files.statOpen(tier, file), Files.stat(tier, path)])
  if (opened.ino === present?.ino) yield* Files.unlink(tier, path)
})

/** What is taken away meanwhile is not there. */
const stored = (store: Store, digest: Digest): Effect.Effect<ReadonlyArray<StoredBlob>, CacheError> =>
  Effect.map(Files.stat(store.tier, pathOf(store, digest)), (stat) =>
    stat === undefined ? [] : [{ digest, size: stat.size, touchedAt: Math.trunc(stat.mtimeMs) }]
  )
