import { type Digest, sha256 } from "@strata/durable/Digest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { ArtifactStore, ArtifactStoreOptions } from "../ArtifactStore.ts"
import type { Blob } from "../CacheEntry.ts"
import { ArtifactMissing, CacheError } from "../CacheError.ts"
import * as Blobs from "./blobs.ts"
import { checked } from "./checked.ts"

type Service = ArtifactStore["Service"]

interface Stored {
  readonly content: Uint8Array
  touchedAt: number
}

interface Store {
  readonly tier: string
  readonly maxBytes: number
  readonly blobs: Map<Digest, Stored>
}

export const make = (options: ArtifactStoreOptions = {}): Service => {
  const store: Store = {
    tier: options.name ?? "local",
    maxBytes: options.maxBytes ?? 64 * 1024 * 1024,
    blobs: new Map()
  }
  return {
    name: store.tier,
    add: add(store),
    put: put(store),
    get: get(store),
    missing: (blobs) => Effect.sync(() => Blobs.distinct(blobs).filter((blob) => !has(store, blob))),
    remove: (digest) => Effect.sync(() => store.blobs.delete(digest)),
    list: Stream.suspend(() =>
      Stream.fromIterable(
        Array.from(store.blobs, ([digest, { content, touchedAt }]) => ({ digest, size: content.length, touchedAt }))
      )
    )
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// operations
// ---------------------------------------------------------------------------------------------------------------------

const add = (store: Store): Service["add"] =>
  Effect.fn("ArtifactStore.add")(function* (content) {
    yield* Effect.annotateCurrentSpan({ tier: store.tier })
    const bytes = yield* Blobs.collect(store, content)
    const digest = sha256(bytes)
    yield* keep(store, digest, bytes)
    return { digest, size: bytes.length }
  })

const put = (store: Store): Service["put"] =>
  Effect.fn("ArtifactStore.put")(function* (blob, content) {
    yield* Effect.annotateCurrentSpan({ tier: store.tier, digest: blob.digest, size: blob.size })
    if (has(store, blob)) return yield* touch(store, blob)
    yield* Blobs.checkSize(store, blob.size)
    yield* keep(store, blob.digest, yield* Blobs.collect(store, checked(store.tier, blob, content)))
  })

const get =
  (store: Store): Service["get"] =>
  (blob) =>
    Stream.suspend(() => {
      const stored = store.blobs.get(blob.digest)
      if (stored !== undefined) return checked(store.tier, blob, Stream.make(stored.content))
      return Stream.fail(new CacheError({ reason: new ArtifactMissing({ tier: store.tier, digests: [blob.digest] }) }))
    })

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const has = ({ blobs }: Store, { digest, size }: Blob): boolean => blobs.get(digest)?.content.length === size

const keep = (store: Store, digest: Digest, content: Uint8Array): Effect.Effect<void> =>
  Effect.map(Clock.currentTimeMillis, (touchedAt) => void store.blobs.set(digest, { content, touchedAt }))

const touch = (store: Store, { digest }: Blob): Effect.Effect<void> =>
  Effect.map(Clock.currentTimeMillis, (now) => {
    const stored = store.blobs.get(digest)
    if (stored !== undefined) stored.touchedAt = now
  })
