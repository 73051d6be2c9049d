import type { Changelog, ChangelogError } from "@strata/dirty-queue/Changelog"
import { put as changed } from "@strata/dirty-queue/Changelog"
import { Path } from "@strata/dirty-queue/Path"
import type { DurableWriter, WriteTransaction } from "@strata/durable/DurableWriter"
import type { NewEvent } from "@strata/journal/Event"
import type { Journal } from "@strata/journal/Journal"
import type { JournalError } from "@strata/journal/JournalError"
import type { StreamName } from "@strata/journal/StreamName"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { SqlError } from "effect/sql/SqlError"
import * as Stream from "effect/Stream"
import type { ArtifactStore } from "../ArtifactStore.ts"
import type { CacheEntry, Recording } from "../CacheEntry.ts"
import { ArtifactMissing, CacheError, Invalid, StorageFailed } from "../CacheError.ts"
import * as Events from "../CacheEvents.ts"
import * as Lookup from "../Lookup.ts"
import type { PutOutcome, StepCache } from "../StepCache.ts"
import type { StepCacheStorage, StoredEntry } from "../StepCacheStorage.ts"
import type { StepKey } from "../StepKey.ts"
import { cacheScope as scope } from "./cacheScope.ts"
import * as Stored from "./storedEntry.ts"

/** How a lookup makes sure of artifacts. */
export type ArtifactCheck = "exists" | "verify" | "trust"

export interface Parts {
  readonly name: string
  readonly stream: StreamName
  readonly artifactCheck: ArtifactCheck
  /** How old, in milliseconds, the time of the last use may get before a hit writes it anew. */
  readonly useGrain: number
  readonly storage: StepCacheStorage["Service"]
  readonly writer: DurableWriter["Service"]
  readonly journal: Journal["Service"]
  readonly changelog: Changelog["Service"]
  readonly artifacts: ArtifactStore["Service"]
}

type Failure = CacheError | SqlError | JournalError | ChangelogError

export const make = (parts: Parts): StepCache["Service"] => ({
  name: parts.name,
  arbitration: "exact",
  get: get(parts),
  put: put(parts),
  evict: evict(parts),
  quarantine: quarantine(parts)
})

// ---------------------------------------------------------------------------------------------------------------------
// looking up
// ---------------------------------------------------------------------------------------------------------------------

/** Without a span of its own, which would cost as much as the rest of a hit; a miss that writes has one. */
const get = (parts: Parts): StepCache["Service"]["get"] => {
  const onFailure = (error: Failure) => Effect.fail(asCacheError(error))
  const asCacheError = failedIn(parts)
  const absent = Effect.succeed(Lookup.absent)
  const checksArtifacts = parts.artifactCheck !== "trust"
  return (key, options) =>
    Effect.matchEffect(parts.storage.find(key), {
      onFailure,
      onSuccess: (stored) => {
        if (stored === undefined) return absent
        if (options?.recording !== undefined && options.recording !== stored.recording)
          return Effect.succeed(Lookup.fenced)
        const entry = Stored.verify(key, stored)
        if (Result.isFailure(entry)) return poisoned(parts, key, stored, entry.failure)
        return checksArtifacts && entry.success.artifacts.length > 0
          ? withArtifacts(parts, stored, entry.success)
          : served(parts, stored, entry.success)
      }
    })
}

const withArtifacts = (parts: Parts, stored: StoredEntry, entry: CacheEntry) =>
  Effect.flatMap(unservable(parts, entry.artifacts), (digests) =>
    digests.length > 0
      ? poisoned(parts, entry.key, stored, { _tag: "ArtifactMissing", digests })
      : served(parts, stored, entry)
  )

const served = (parts: Parts, stored: StoredEntry, entry: CacheEntry): Effect.Effect<Lookup.Lookup> =>
  Effect.clockWith((clock) => {
    const hit = Lookup.hit(entry, parts.name)
    const now = clock.currentTimeMillisUnsafe()
    return now - stored.usedAt < parts.useGrain ? Effect.succeed(hit) : Effect.as(touch(parts, now, stored), hit)
  })

/** Those of the blobs that are not there, or are not what they should be. */
const unservable = (parts: Parts, blobs: CacheEntry["artifacts"]) =>
  parts.artifactCheck === "verify"
    ? Effect.map(
        Effect.forEach(blobs, (blob) =>
          Stream.runDrain(parts.artifacts.get(blob)).pipe(
            Effect.as([]),
            Effect.catchReasons("CacheError", {
              ArtifactMissing: () => Effect.succeed([blob.digest]),
              ArtifactCorrupt: () => Effect.succeed([blob.digest])
            })
          )
        ),
        (digests) => [...new Set(digests.flat())]
      )
    : Effect.map(parts.artifacts.missing(blobs), (missing) => missing.map(({ digest }) => digest))

const poisoned = (parts: Parts, key: StepKey, stored: StoredEntry, reason: Lookup.MissReason) =>
  quarantineRow(parts, key, stored.recording, reason).pipe(
    Effect.as(Lookup.miss(reason)),
    Effect.withSpan("StepCache.quarantine", { attributes: { key, reason: reason._tag } })
  )

/** A hit is one whether or not the time of its use could be written down. */
const touch = (parts: Parts, now: number, { key, ledger }: StoredEntry): Effect.Effect<void> =>
  parts.writer
    .write(parts.storage.touch(now, key, ledger), { isolation: "read committed" })
    .pipe(Effect.catch((error) => Effect.logDebug("The use of a cache entry was not written down", error)))

// ---------------------------------------------------------------------------------------------------------------------
// recording
// ---------------------------------------------------------------------------------------------------------------------

const put = (parts: Parts): StepCache["Service"]["put"] =>
  Effect.fn("StepCache.put")(function* (entry, options) {
    yield* Effect.annotateCurrentSpan({ key: entry.key })
    const detail = Stored.contradiction(entry)
    if (detail !== undefined) {
      return yield* new CacheError({ reason: new Invalid({ tier: parts.name, detail }) })
    }
    return yield* write(parts, putInWrite(parts, entry, options?.from))
  })

const putInWrite = Effect.fnUntraced(function* (
  parts: Parts,
  entry: CacheEntry,
  from: string | undefined
): Effect.fn.Return<PutOutcome, Failure, WriteTransaction> {
  const { artifacts, changelog, name, storage } = parts
  const existing = yield* storage.find(entry.key)
  if (existing !== undefined) {
    const kept = Stored.verify(entry.key, existing)
    if (Result.isSuccess(kept)) return yield* compare(parts, kept.success, entry)
    yield* takeOut(parts, entry.key, existing, kept.failure)
  }
  // In the write, so that no collector can take the blobs away before the ledger refers to them.
  const missing = entry.artifacts.length === 0 ? [] : yield* artifacts.missing(entry.artifacts)
  if (missing.length > 0) {
    const digests = missing.map(({ digest }) => digest)
    return yield* new CacheError({ reason: new ArtifactMissing({ tier: name, digests }) })
  }
  const ledger = yield* storage.insert(yield* Clock.currentTimeMillis, Stored.toStored(entry, from))
  const { digest, key, metadata } = entry
  yield* append(
    parts,
    Events.Recorded.make({
      ledger,
      key,
      digest,
      artifacts: entry.artifacts,
      metadata,
      ...(from === undefined ? {} : { from })
    })
  )
  if (from === undefined) {
    yield* changelog.record([changed({ scope, path: Path.make(key), cid: metadata.recording })])
  }
  return { _tag: "Inserted" }
})

/** The first stays. That another result came is written down, once for each recording of it. */
const compare = Effect.fnUntraced(function* (parts: Parts, kept: CacheEntry, entry: CacheEntry) {
  if (kept.digest === entry.digest) return { _tag: "ExistingSame", entry: kept } as const
  const { recording } = entry.metadata
  const event = {
    key: kept.key,
    kept: kept.metadata.recording,
    keptDigest: kept.digest,
    recording,
    digest: entry.digest
  }
  yield* append(parts, Events.Conflicted.make(event, { identity: `cache-conflict:${event.kept}:${recording}` }))
  return { _tag: "Conflict", entry: kept } as const
})

// ---------------------------------------------------------------------------------------------------------------------
// taking out
// ---------------------------------------------------------------------------------------------------------------------

const evict = (parts: Parts): StepCache["Service"]["evict"] =>
  Effect.fn("StepCache.evict")(function* (key, options) {
    yield* Effect.annotateCurrentSpan({ key })
    return yield* write(
      parts,
      takeOutIf(parts, key, options?.recording, (recording) => Events.Evicted.make({ key, recording }))
    )
  })

const quarantine = (parts: Parts): StepCache["Service"]["quarantine"] =>
  Effect.fn("StepCache.quarantine")(function* (key, { reason, recording }) {
    yield* Effect.annotateCurrentSpan({ key, reason: reason._tag })
    return yield* quarantineRow(parts, key, recording, reason)
  })

const quarantineRow = (parts: Parts, key: StepKey, recording: string, reason: Lookup.MissReason) =>
  write(
    parts,
    takeOutIf(parts, key, recording, (recording) => Events.Quarantined.make({ key, recording, reason }))
  )

/** Takes out the entry of a key if it is of this recording, or whichever it is. */
const takeOutIf = Effect.fnUntraced(function* (
  parts: Parts,
  key: StepKey,
  recording: string | undefined,
  event: (recording: Recording) => NewEvent
): Effect.fn.Return<boolean, Failure, WriteTransaction> {
  const stored = yield* parts.storage.find(key)
  if (stored === undefined || (recording !== undefined && stored.recording !== recording)) return false
  yield* parts.storage.remove(key, stored.ledger)
  yield* append(parts, event(Stored.toRecording(stored.recording)))
  return true
})

const takeOut = (parts: Parts, key: StepKey, stored: StoredEntry, reason: Lookup.MissReason) =>
  takeOutIf(parts, key, stored.recording, (recording) => Events.Quarantined.make({ key, recording, reason }))

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const append = ({ journal, stream }: Parts, event: NewEvent) => journal.append(stream, [event])

const write = <A>(parts: Parts, effect: Effect.Effect<A, Failure, WriteTransaction>): Effect.Effect<A, CacheError> =>
  Effect.mapError(parts.writer.write(Effect.andThen(parts.storage.lock, effect)), failedIn(parts))

const failedIn =
  ({ name }: Parts) =>
  (error: Failure): CacheError =>
    error._tag === "CacheError" ? error : new CacheError({ reason: new StorageFailed({ tier: name, cause: error }) })
