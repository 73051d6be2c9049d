/** Shared tiers in memory, which tests can break: each tier is a value, so that several machines can share it. */
import { type Digest, sha256 } from "@strata/durable/Digest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { ArtifactStore } from "../../src/ArtifactStore.ts"
import type { Blob, CacheEntry } from "../../src/CacheEntry.ts"
import {
  ArtifactCorrupt,
  ArtifactMissing,
  CacheError,
  type CacheErrorReason,
  Unsupported
} from "../../src/CacheError.ts"
import * as Lookup from "../../src/Lookup.ts"
import type { Arbitration, StepCache } from "../../src/StepCache.ts"

/** What every call of a tier does before it does its work. */
export type Mood = Effect.Effect<void, CacheError>

export const well: Mood = Effect.void

export const failing = (reason: CacheErrorReason): Mood => Effect.fail(new CacheError({ reason }))

/** Accepts, and never answers. */
export const hanging: Mood = Effect.never

/** A step cache of several machines, with a record of what it was asked. */
export interface SharedSteps {
  readonly service: StepCache["Service"]
  readonly entries: Map<string, CacheEntry>
  readonly calls: Array<string>
  mood: Mood
}

export const sharedSteps = (options?: { readonly name?: string; readonly arbitration?: Arbitration }): SharedSteps => {
  const name = options?.name ?? "shared"
  const arbitration = options?.arbitration ?? "exact"
  const entries = new Map<string, CacheEntry>()
  const unsupported = (operation: string) =>
    Effect.fail(new CacheError({ reason: new Unsupported({ tier: name, operation }) }))
  const asked = <A>(call: string, answer: () => A) =>
    Effect.suspend(() => {
      tier.calls.push(call)
      return Effect.andThen(tier.mood, Effect.sync(answer))
    })
  const tier: SharedSteps = {
    entries,
    calls: [],
    mood: well,
    service: {
      name,
      arbitration,
      get: (key) =>
        asked("get", () => {
          const entry = entries.get(key)
          return entry === undefined ? Lookup.absent : Lookup.hit(entry, name)
        }),
      put: (entry) =>
        asked("put", () => {
          const there = entries.get(entry.key)
          if (arbitration === "last-writer-wins" || there === undefined) entries.set(entry.key, entry)
          if (arbitration === "last-writer-wins") return { _tag: "Unarbitrated" }
          if (there === undefined) return { _tag: "Inserted" }
          return { _tag: there.digest === entry.digest ? "ExistingSame" : "Conflict", entry: there }
        }),
      evict: () => unsupported("evict"),
      quarantine: () => unsupported("quarantine")
    }
  }
  return tier
}

/** An artifact store, with a record of what it was asked. */
export interface SharedBlobs {
  readonly service: ArtifactStore["Service"]
  readonly blobs: Map<Digest, Uint8Array>
  readonly calls: Array<string>
  mood: Mood
}

export const sharedBlobs = (name = "shared"): SharedBlobs => {
  const blobs = new Map<Digest, Uint8Array>()
  const asked = (call: string) =>
    Effect.suspend(() => {
      store.calls.push(call)
      return store.mood
    })
  const fail = (reason: CacheErrorReason) => Effect.fail(new CacheError({ reason }))
  const put: ArtifactStore["Service"]["put"] = Effect.fnUntraced(function* (blob, content) {
    yield* asked("put")
    const bytes = concat(yield* Stream.runCollect(content))
    if (sha256(bytes) !== blob.digest) {
      return yield* fail(new ArtifactCorrupt({ tier: name, digest: blob.digest }))
    }
    blobs.set(blob.digest, bytes)
  })
  const store: SharedBlobs = {
    blobs,
    calls: [],
    mood: well,
    service: {
      name,
      put,
      add: Effect.fnUntraced(function* (content) {
        const bytes = concat(yield* Stream.runCollect(content))
        const blob = { digest: sha256(bytes), size: bytes.length }
        yield* put(blob, Stream.make(bytes))
        return blob
      }),
      get: (blob) =>
        Stream.unwrap(
          Effect.map(asked("get"), () => {
            const bytes = blobs.get(blob.digest)
            if (bytes === undefined) {
              return Stream.fromEffect(fail(new ArtifactMissing({ tier: name, digests: [blob.digest] })))
            }
            return sha256(bytes) === blob.digest
              ? Stream.make(bytes)
              : Stream.fromEffect(fail(new ArtifactCorrupt({ tier: name, digest: blob.digest })))
          })
        ),
      missing: (wanted) =>
        Effect.map(asked("missing"), () => distinct(wanted).filter((blob) => !blobs.has(blob.digest))),
      remove: (digest) => Effect.map(asked("remove"), () => blobs.delete(digest)),
      list: Stream.unwrap(
        Effect.map(Clock.currentTimeMillis, (touchedAt) =>
          Stream.fromIterable([...blobs].map(([digest, bytes]) => ({ digest, size: bytes.length, touchedAt })))
        )
      )
    }
  }
  return store
}

const distinct = (blobs: ReadonlyArray<Blob>): ReadonlyArray<Blob> => [
  ...new Map(blobs.map((blob) => [blob.digest, blob])).values()
]

const concat = (chunks: ReadonlyArray<Uint8Array>): Uint8Array => {
  const bytes = new Uint8Array(chunks.reduce((sum, chunk) => sum + chunk.length, 0))
  let at = 0
  for (const chunk of chunks) {
    bytes.set(chunk, at)
    at += chunk.length
  }
  return bytes
}
