import type { DurableWriter } from "@strata/durable/DurableWriter"
import type { Journal, JournalError } from "@strata/journal/Journal"
import type { StreamName } from "@strata/journal/StreamName"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Semaphore from "effect/Semaphore"
import type { SqlError } from "effect/sql/SqlError"
import type { ArtifactSync } from "../ArtifactSync.ts"
import type { Blob, CacheEntry } from "../CacheEntry.ts"
import { CacheError, Unsupported } from "../CacheError.ts"
import * as CacheEvents from "../CacheEvents.ts"
import type { CacheSync } from "../CacheSync.ts"
import * as Metrics from "../PublicationMetrics.ts"
import type { PublicationStorage } from "../PublicationStorage.ts"
import * as Refusal from "../Refusal.ts"

export interface Options {
  readonly tier: string
  readonly cache: CacheSync["Service"]
  readonly artifacts: ArtifactSync["Service"] | undefined
  readonly storage: PublicationStorage["Service"]
  readonly writer: DurableWriter["Service"]
  readonly journal: Journal["Service"]
  readonly stream: StreamName
  /** What is sent at a time, in bytes. */
  readonly maxBytes: number
}

/** Sends one entry: `None` when it is shared now. */
export type Send = (entry: CacheEntry) => Effect.Effect<Option.Option<Refusal.Refusal>>

// ---------------------------------------------------------------------------------------------------------------------
// sending
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Blobs first, then the entry, so that nobody finds an entry whose blobs are not there. Entries on their way at the same
 * time have no more than `maxBytes` together, except that a larger one goes alone.
 */
export const makeSend = (options: Options): Effect.Effect<Send> =>
  Effect.map(Semaphore.make(inUnits(options.maxBytes)), (room): Send => {
    const { cache } = options
    const sendBlobs = blobSender(options)
    return (entry) =>
      Effect.gen(function* () {
        const refused = yield* sendBlobs(blobsOf(entry))
        return Option.isSome(refused) ? refused : yield* cache.publishEntry(entry)
      }).pipe(
        room.withPermits(Math.min(inUnits(sizeOf(entry)), inUnits(options.maxBytes))),
        Effect.tap((outcome) => Metrics.count(options.tier, outcome))
      )
  })

/** Permits stand for 4 KiB, at least one. */
const inUnits = (bytes: number): number => Math.max(Math.ceil(bytes / 4096), 1)

const sizeOf = (entry: CacheEntry): number => entry.artifacts.reduce((sum, { size }) => sum + size, entry.result.length)

const blobsOf = (entry: CacheEntry): ReadonlyArray<Blob> => [
  ...new Map(entry.artifacts.map(({ digest, size }) => [digest, { digest, size }])).values()
]

const blobSender = ({ artifacts, tier }: Options) => {
  const nowhere = Refusal.fromError(
    "artifact",
    new CacheError({ reason: new Unsupported({ tier, operation: "store artifacts" }) })
  )
  return (blobs: ReadonlyArray<Blob>): Effect.Effect<Option.Option<Refusal.Refusal>> => {
    if (blobs.length === 0) return Effect.succeedNone
    return artifacts?.tier === undefined ? Effect.succeedSome(nowhere) : artifacts.publish(blobs)
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// refusals
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Journals a refusal, once for each recording, stage and kind. That the breaker is open says nothing about the entry,
 * which was not offered, so it is not told.
 */
export const journalRefusal =
  ({ journal, storage, stream, tier, writer }: Options) =>
  (entry: CacheEntry, refusal: Refusal.Refusal): Effect.Effect<void, SqlError | JournalError> => {
    const { key } = entry
    const { recording } = entry.metadata
    const name = { recording, stage: refusal.stage, kind: refusal.kind }
    const append = Effect.gen(function* () {
      const refusedAt = yield* Clock.currentTimeMillis
      const stored = { ...name, key, refusal: JSON.stringify(refusal), refusedAt }
      if (!(yield* storage.refuse(tier, stored))) return
      const event = CacheEvents.Refused.make({ key, recording, tier, refusal })
      yield* journal.append(stream, [event])
    })
    return refusal.kind === "BreakerOpen"
      ? Effect.void
      : Effect.flatMap(storage.isRefused(tier, name), (known) => (known ? Effect.void : writer.write(append)))
  }
