/**
 * Takes out of the local cache what is too old or too much: entries with their rows of the ledger, then results and
 * artifacts that no row of the ledger refers to. What it does is journaled in the writes that do it. A crash leaves
 * things that nothing refers to, which the next run takes.
 *
 * @since 0.1.0
 */
import { Changelog } from "@strata/dirty-queue/Changelog"
import { DurableWriter } from "@strata/durable/DurableWriter"
import { Digest } from "@strata/durable/Digest"
import { Journal } from "@strata/journal/Journal"
import type { JournalError } from "@strata/journal/JournalError"
import type { StreamName } from "@strata/journal/StreamName"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { SqlError } from "effect/sql/SqlError"
import * as Stream from "effect/Stream"
import { ArtifactStore, type StoredBlob } from "./ArtifactStore.ts"
import type { CacheError } from "./CacheError.ts"
import * as CacheEvents from "./CacheEvents.ts"
import { cacheScope } from "./internal/cacheScope.ts"
import * as Stored from "./internal/storedEntry.ts"
import { StepCacheStorage, type StoredHead } from "./StepCacheStorage.ts"
import { StepKey } from "./StepKey.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * What may stay, and how it is collected.
 *
 * @since 0.1.0
 * @category models
 */
export interface CollectOptions {
  /** How long an entry may go unused. Default: for ever. */
  readonly maxAge?: Duration.Input | undefined
  /** How many entries may stay: those that were used last. Default: all. */
  readonly maxEntries?: number | undefined
  /**
   * How many bytes the results and artifacts of entries may have; what entries share counts for each. Those that were
   * used last stay. Default: any number.
   */
  readonly maxBytes?: number | undefined
  /** How long the ledger keeps what is no entry any more. Default 30 days. */
  readonly keepLedger?: Duration.Input | undefined
  /** Artifacts that were put more lately than this stay: their entry may not be there yet. Default 1 hour. */
  readonly grace?: Duration.Input | undefined
  /** Counts what would be done, and does nothing. Default false. */
  readonly dryRun?: boolean | undefined
  /** The stream in which the cache journals. Default `CacheEvents.stream`. */
  readonly stream?: StreamName | undefined
}

/**
 * What was taken out, or would be. Sizes are in bytes.
 *
 * @since 0.1.0
 * @category models
 */
export interface Collected {
  readonly entries: number
  readonly ledger: number
  readonly results: number
  readonly resultBytes: number
  readonly artifacts: number
  readonly artifactBytes: number
}

type Services = StepCacheStorage | ArtifactStore | Journal | Changelog | DurableWriter

type Failure = SqlError | JournalError | CacheError

// ---------------------------------------------------------------------------------------------------------------------
// collecting
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Collects. An artifact is deleted in a write that has seen that nothing refers to it, which no put can overlap: a put
 * makes sure of its artifacts in its own write.
 *
 * @since 0.1.0
 * @category collecting
 */
export const collect = Effect.fn("Collector.collect")(function* (
  options?: CollectOptions
): Effect.fn.Return<Collected, Failure, Services> {
  const plan = yield* planOf(options)
  if (options?.dryRun === true) return yield* withoutTrace(plan)
  const writer = yield* DurableWriter
  const rows = yield* writer.write(collectRows(plan))
  const store = yield* ArtifactStore
  const blobs = yield* oldBlobs(plan).pipe(
    Stream.mapEffect((chunk) => writer.write(collectBlobs(plan, chunk, (digest) => store.remove(digest)))),
    Stream.runFold(() => none, add)
  )
  yield* pruneChanges(plan)
  return { ...rows, ...blobs }
})

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

interface Plan {
  readonly now: number
  readonly stream: StreamName
  readonly limits: { readonly usedBefore: number; readonly maxEntries: number; readonly maxBytes: number }
  readonly ledgerBefore: number
  readonly blobsBefore: number
}

const planOf = Effect.fnUntraced(function* (options: CollectOptions | undefined) {
  const now = yield* Clock.currentTimeMillis
  const plan: Plan = {
    now,
    stream: options?.stream ?? CacheEvents.stream,
    limits: {
      usedBefore: options?.maxAge === undefined ? Number.MIN_SAFE_INTEGER : now - Duration.toMillis(options.maxAge),
      maxEntries: options?.maxEntries ?? Number.MAX_SAFE_INTEGER,
      maxBytes: options?.maxBytes ?? Number.MAX_SAFE_INTEGER
    },
    ledgerBefore: now - Duration.toMillis(options?.keepLedger ?? "30 days"),
    blobsBefore: now - Duration.toMillis(options?.grace ?? "1 hour")
  }
  return plan
})

interface Rows {
  readonly entries: number
  readonly ledger: number
  readonly results: number
  readonly resultBytes: number
}

interface Blobs {
  readonly artifacts: number
  readonly artifactBytes: number
}

const none: Blobs = { artifacts: 0, artifactBytes: 0 }

const add = (a: Blobs, b: Blobs): Blobs => ({
  artifacts: a.artifacts + b.artifacts,
  artifactBytes: a.artifactBytes + b.artifactBytes
})

const collectRows = Effect.fnUntraced(function* ({ ledgerBefore, limits, stream }: Plan) {
  const storage = yield* StepCacheStorage
  yield* storage.lock
  const heads = yield* storage.beyond(limits)
  for (const { key, ledger } of heads) yield* storage.remove(key, ledger)
  const ledger = yield* storage.deleteLedger(
    ledgerBefore,
    heads.map((head) => head.ledger)
  )
  const results = yield* storage.deleteResults
  if (heads.length + ledger.length + results.length > 0) {
    yield* journaled(stream, {
      entries: heads.map(nameOf),
      ledger,
      results: results.map(({ digest }) => Digest.make(digest)),
      artifacts: []
    })
  }
  const collected: Rows = {
    entries: heads.length,
    ledger: ledger.length,
    results: results.length,
    resultBytes: results.reduce((total, { bytes }) => total + bytes, 0)
  }
  return collected
})

const nameOf = ({ key, recording }: StoredHead) => ({
  key: StepKey.make(key),
  recording: Stored.toRecording(recording)
})

const journaled = (stream: StreamName, payload: typeof CacheEvents.Collected.schema.Type) =>
  Journal.use((journal) => journal.append(stream, [CacheEvents.Collected.make(payload)]))

/** Blobs outside of the grace, some at a time. */
const oldBlobs = ({ blobsBefore }: Plan) =>
  Stream.unwrap(ArtifactStore.useSync((store) => store.list)).pipe(
    Stream.filter(({ touchedAt }) => touchedAt < blobsBefore),
    Stream.grouped(blobsAtOnce)
  )

const blobsAtOnce = 100

const collectBlobs = Effect.fnUntraced(function* <E, R>(
  { stream }: Plan,
  blobs: ReadonlyArray<StoredBlob>,
  remove: (digest: Digest) => Effect.Effect<unknown, E, R>
) {
  const storage = yield* StepCacheStorage
  yield* storage.lock
  const unreferenced = new Set(yield* storage.unreferenced(blobs.map(({ digest }) => digest)))
  const gone = blobs.filter(({ digest }) => unreferenced.has(digest))
  for (const { digest } of gone) yield* remove(digest)
  if (gone.length > 0) {
    const artifacts = gone.map(({ digest }) => digest)
    yield* journaled(stream, { entries: [], ledger: [], results: [], artifacts })
  }
  const collected: Blobs = {
    artifacts: gone.length,
    artifactBytes: gone.reduce((total, { size }) => total + size, 0)
  }
  return collected
})

/** Does everything in one write, but deletes no blob, and rolls it back: what it counts is what would be done. */
const withoutTrace = Effect.fnUntraced(function* (plan: Plan): Effect.fn.Return<Collected, Failure, Services> {
  const writer = yield* DurableWriter
  const rolledBack = yield* writer
    .write(
      Effect.gen(function* () {
        const rows = yield* collectRows(plan)
        const blobs = yield* oldBlobs(plan).pipe(
          Stream.mapEffect((chunk) => collectBlobs(plan, chunk, () => Effect.void)),
          Stream.runFold(() => none, add)
        )
        return yield* Effect.fail({ _tag: "Counted", collected: { ...rows, ...blobs } } as const)
      })
    )
    .pipe(Effect.result)
  if (Result.isSuccess(rolledBack)) return rolledBack.success
  const { failure } = rolledBack
  return failure._tag === "Counted" ? failure.collected : yield* failure
})

/** What is to be published is in the dirty queue: the changes themselves are of no use any more. */
const pruneChanges = Effect.fnUntraced(function* ({ now }: Plan) {
  const changelog = yield* Changelog
  while ((yield* changelog.prune({ before: { time: now }, scope: cacheScope, limit: 10_000 })) === 10_000);
})
