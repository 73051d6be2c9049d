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
import * as Option from "effect/Option"
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
 * Collects, in many small writes, so that recordings wait for none of them. What may go is found outside of a write and
 * looked at again in the one that takes it out: an entry that was used meanwhile stays. An artifact is deleted in a write
 * that has seen that nothing refers to it, which no put can overlap: a put makes sure of its artifacts in its own write.
 *
 * @since 0.1.0
 * @category collecting
 */
export const collect = Effect.fn("Collector.collect")(function* (
  options?: CollectOptions
): Effect.fn.Return<Collected, Failure, Services> {
  const plan = yield* planOf(options)
  if (options?.dryRun === true) return yield* withoutTrace(plan)
  const store = yield* ArtifactStore
  const collected = yield* collectAll(plan, (digest) => store.remove(digest))
  yield* pruneChanges(plan)
  return collected
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

const none: Collected = { entries: 0, ledger: 0, results: 0, resultBytes: 0, artifacts: 0, artifactBytes: 0 }

const add = (a: Collected, b: Partial<Collected>): Collected => ({
  entries: a.entries + (b.entries ?? 0),
  ledger: a.ledger + (b.ledger ?? 0),
  results: a.results + (b.results ?? 0),
  resultBytes: a.resultBytes + (b.resultBytes ?? 0),
  artifacts: a.artifacts + (b.artifacts ?? 0),
  artifactBytes: a.artifactBytes + (b.artifactBytes ?? 0)
})

/** How much one write takes out. */
const rowsAtOnce = 1000

const blobsAtOnce = 100

/** Some of it, in writes of their own. */
type Step = Stream.Stream<Partial<Collected>, Failure, Services>

type Remove = (digest: Digest) => Effect.Effect<unknown, CacheError>

/** In this order, as each leaves what the next one takes. */
const collectAll = (plan: Plan, remove: Remove): Effect.Effect<Collected, Failure, Services> =>
  Stream.fromIterable([
    collectEntries(plan),
    collectLedger(plan),
    collectResults(plan),
    collectArtifacts(plan, remove)
  ]).pipe(
    Stream.flatMap((step) => step),
    Stream.runFold(() => none, add)
  )

const collectEntries = ({ limits, stream }: Plan): Step =>
  Stream.unwrap(
    Effect.gen(function* () {
      const storage = yield* StepCacheStorage
      const cutoff = yield* storage.cutoff(limits)
      if (cutoff === undefined) return Stream.empty
      return pages(
        "",
        (after) => storage.beyond(cutoff, after, rowsAtOnce),
        ({ key }) => key
      ).pipe(Stream.mapEffect((heads) => inWrite(removeEntries(stream, heads))))
    })
  )

const removeEntries = Effect.fnUntraced(function* (stream: StreamName, heads: ReadonlyArray<StoredHead>) {
  const storage = yield* StepCacheStorage
  const removed = yield* Effect.filter(heads, ({ key, ledger, usedAt }) => storage.remove(key, ledger, usedAt))
  const ledger = yield* storage.deleteLedger(removed.map((head) => head.ledger))
  if (removed.length > 0) yield* journaled(stream, { entries: removed.map(nameOf), ledger })
  return { entries: removed.length, ledger: ledger.length }
})

const collectLedger = ({ ledgerBefore, stream }: Plan): Step =>
  Stream.unwrap(
    StepCacheStorage.useSync((storage) =>
      pages(
        0,
        (after) => storage.outdated(ledgerBefore, after, rowsAtOnce),
        (id) => id
      ).pipe(Stream.mapEffect((ids) => inWrite(removeLedger(stream, ids))))
    )
  )

const removeLedger = Effect.fnUntraced(function* (stream: StreamName, ids: ReadonlyArray<number>) {
  const ledger = yield* StepCacheStorage.use((storage) => storage.deleteLedger(ids))
  if (ledger.length > 0) yield* journaled(stream, { ledger })
  return { ledger: ledger.length }
})

const collectResults = ({ stream }: Plan): Step =>
  Stream.unwrap(
    StepCacheStorage.useSync((storage) =>
      pages(
        "",
        (after) => storage.unused(after, rowsAtOnce),
        (digest) => digest
      ).pipe(Stream.mapEffect((digests) => inWrite(removeResults(stream, digests))))
    )
  )

const removeResults = Effect.fnUntraced(function* (stream: StreamName, digests: ReadonlyArray<string>) {
  const results = yield* StepCacheStorage.use((storage) => storage.deleteResults(digests))
  if (results.length > 0) {
    yield* journaled(stream, { results: results.map(({ digest }) => Digest.make(digest)) })
  }
  return { results: results.length, resultBytes: results.reduce((total, { bytes }) => total + bytes, 0) }
})

/** Pages of what is found behind a place, each from behind the last one. Ends at a page that is empty. */
const pages = <A, K, E, R>(
  first: K,
  find: (after: K) => Effect.Effect<ReadonlyArray<A>, E, R>,
  placeOf: (item: A) => K
): Stream.Stream<ReadonlyArray<A>, E, R> =>
  Stream.paginate(first, (after) =>
    Effect.map(find(after), (page) => {
      const last = page.at(-1)
      return last === undefined ? [[], Option.none()] : [[page], Option.some(placeOf(last))]
    })
  )

/** A write that nothing which records or collects overlaps. */
const inWrite = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  DurableWriter.use((writer) =>
    writer.write(
      Effect.andThen(
        StepCacheStorage.use((storage) => storage.lock),
        effect
      )
    )
  )

const nameOf = ({ key, recording }: StoredHead) => ({
  key: StepKey.make(key),
  recording: Stored.toRecording(recording)
})

const journaled = (stream: StreamName, payload: Partial<typeof CacheEvents.Collected.schema.Type>) =>
  Journal.use((journal) =>
    journal.append(stream, [
      CacheEvents.Collected.make({ entries: [], ledger: [], results: [], artifacts: [], ...payload })
    ])
  )

/** Blobs outside of the grace. */
const collectArtifacts = ({ blobsBefore, stream }: Plan, remove: Remove): Step =>
  Stream.unwrap(ArtifactStore.useSync((store) => store.list)).pipe(
    Stream.filter(({ touchedAt }) => touchedAt < blobsBefore),
    Stream.grouped(blobsAtOnce),
    Stream.mapEffect((blobs) => inWrite(removeBlobs(stream, blobs, remove)))
  )

const removeBlobs = Effect.fnUntraced(function* (stream: StreamName, blobs: ReadonlyArray<StoredBlob>, remove: Remove) {
  const storage = yield* StepCacheStorage
  const unreferenced = new Set(yield* storage.unreferenced(blobs.map(({ digest }) => digest)))
  const gone = blobs.filter(({ digest }) => unreferenced.has(digest))
  for (const { digest } of gone) yield* remove(digest)
  if (gone.length > 0) yield* journaled(stream, { artifacts: gone.map(({ digest }) => digest) })
  return { artifacts: gone.length, artifactBytes: gone.reduce((total, { size }) => total + size, 0) }
})

/** Does everything in one write, but deletes no blob, and rolls it back: what it counts is what would be done. */
const withoutTrace = Effect.fnUntraced(function* (plan: Plan): Effect.fn.Return<Collected, Failure, Services> {
  const writer = yield* DurableWriter
  const rolledBack = yield* writer
    .write(
      Effect.flatMap(
        collectAll(plan, () => Effect.void),
        (collected) => Effect.fail({ _tag: "Counted", collected } as const)
      )
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
