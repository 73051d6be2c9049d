import * as ArtifactStore from "@strata/cache/ArtifactStore"
import * as CacheError from "@strata/cache/CacheError"
import * as CacheEvents from "@strata/cache/CacheEvents"
import * as StepCache from "@strata/cache/StepCache"
import type { CacheEntry } from "@strata/cache/CacheEntry"
import { sha256, type Digest } from "@strata/durable/Digest"
import * as DurableWriter from "@strata/durable/DurableWriter"
import * as Journal from "@strata/journal/Journal"
import * as Lookup from "@strata/cache/Lookup"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"

const fakeStore = Layer.sync(ArtifactStore.ArtifactStore, () => {
  const blobs = new Map<Digest, Uint8Array>()
  return ArtifactStore.ArtifactStore.of({
    name: "memory",
    add: (content) =>
      Effect.map(Stream.runCollect(content), (chunks) => {
        const bytes = Buffer.concat(chunks)
        const digest = sha256(bytes)
        blobs.set(digest, bytes)
        return { digest, size: bytes.length }
      }),
    put: () => Effect.void,
    get: (blob) =>
      Stream.suspend(() => {
        const bytes = blobs.get(blob.digest)
        return bytes === undefined
          ? Stream.fail(
              new CacheError.CacheError({
                reason: new CacheError.ArtifactMissing({ tier: "memory", digests: [blob.digest] })
              })
            )
          : Stream.make(bytes)
      }),
    missing: (all) => Effect.sync(() => all.filter((blob) => !blobs.has(blob.digest))),
    remove: (digest) => Effect.sync(() => blobs.delete(digest)),
    list: Stream.empty
  })
})

const fakeCache = Layer.effect(
  StepCache.StepCache,
  Effect.gen(function* () {
    const journal = yield* Journal.Journal
    const writer = yield* DurableWriter.DurableWriter
    const store = yield* ArtifactStore.ArtifactStore
    const rows = new Map<string, CacheEntry>()
    const failed = (cause: unknown) =>
      new CacheError.CacheError({ reason: new CacheError.StorageFailed({ tier: "memory", cause }) })
    const append = (event: Parameters<typeof journal.append>[1][number]) => journal.append(CacheEvents.stream, [event])
    const evict = (key: string, recording: string | undefined) => {
      const row = rows.get(key)
      if (row === undefined || (recording !== undefined && row.metadata.recording !== recording)) return false
      return rows.delete(key)
    }
    return StepCache.StepCache.of({
      name: "memory",
      arbitration: "exact",
      get: (key) =>
        Effect.gen(function* () {
          const row = rows.get(key)
          if (row === undefined) return Lookup.absent
          const missing = yield* store.missing(row.artifacts)
          if (missing.length === 0) return Lookup.hit(row, "memory")
          rows.delete(key)
          return Lookup.miss({ _tag: "ArtifactMissing", digests: missing.map(({ digest }) => digest) })
        }),
      put: (entry) =>
        writer
          .write(
            Effect.gen(function* () {
              const row = rows.get(entry.key)
              if (row?.digest === entry.digest) return { _tag: "ExistingSame", entry: row } as const
              if (row !== undefined) {
                yield* append(
                  CacheEvents.Conflicted.make({
                    key: entry.key,
                    kept: row.metadata.recording,
                    keptDigest: row.digest,
                    recording: entry.metadata.recording,
                    digest: entry.digest
                  })
                )
                return { _tag: "Conflict", entry: row } as const
              }
              rows.set(entry.key, entry)
              yield* append(CacheEvents.Recorded.make({ ...entry }))
              return { _tag: "Inserted" } as const
            })
          )
          .pipe(Effect.mapError(failed)),
      evict: (key, options) =>
        writer
          .write(
            Effect.suspend(() => {
              const row = rows.get(key)
              return row !== undefined && evict(key, options?.recording)
                ? Effect.as(append(CacheEvents.Evicted.make({ key, recording: row.metadata.recording })), true)
                : Effect.succeed(false)
            })
          )
          .pipe(Effect.mapError(failed)),
      quarantine: (key, { reason, recording }) =>
        writer
          .write(
            Effect.suspend(() =>
              evict(key, recording)
                ? Effect.as(append(CacheEvents.Quarantined.make({ key, recording, reason })), true)
                : Effect.succeed(false)
            )
          )
          .pipe(Effect.mapError(failed))
    })
  })
)

export const memory = fakeCache.pipe(
  Layer.provideMerge(fakeStore),
  Layer.provideMerge(Journal.layerMemory()),
  Layer.provideMerge(DurableWriter.layerMemory())
)

export const all = { memory }
