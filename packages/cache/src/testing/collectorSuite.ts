/**
 * Contract 47: the collector keeps to its limits, never takes what is referred to, and converges after a crash.
 *
 * @since 0.1.0
 */
import { assert, describe, it } from "@effect/vitest"
import { DurableWriter } from "@strata/durable/DurableWriter"
import { Journal } from "@strata/journal/Journal"
import type { JournalStorage } from "@strata/journal/JournalStorage"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { ArtifactStore } from "../ArtifactStore.ts"
import * as CacheEvents from "../CacheEvents.ts"
import * as CacheTable from "../CacheTable.ts"
import * as Collector from "../Collector.ts"
import { StepCache, layer as layerOf } from "../StepCache.ts"
import { StepCacheStorage } from "../StepCacheStorage.ts"
import * as Entries from "./entries.ts"
import type { LocalServices } from "./localStepCacheSuite.ts"

/**
 * A tier to test: an empty store, and what a step cache over it works with.
 *
 * @since 0.1.0
 * @category models
 */
export interface CollectorTier<E> {
  readonly layer: Layer.Layer<LocalServices | JournalStorage, E>
}

/**
 * Runs the contracts on one tier. Each test builds its layer anew.
 *
 * @since 0.1.0
 * @category suites
 */
export const collectorSuite = <E>(name: string, tier: CollectorTier<E>): void => {
  const test = (title: string, body: () => Effect.Effect<void, unknown, LocalServices | JournalStorage | StepCache>) =>
    it.effect(title, () => Effect.provide(body(), layerOf().pipe(Layer.provideMerge(tier.layer))))

  describe(`Collector (${name})`, () => {
    test("takes nothing without limits", () =>
      Effect.gen(function* () {
        yield* record(["a", "b"])
        yield* TestClock.adjust("2 hours")
        assert.deepStrictEqual(yield* Collector.collect(), nothing)
        assert.deepStrictEqual(yield* present(["a", "b"]), ["a", "b"])
      }))

    for (const [limit, options] of [
      ["age", { maxAge: "90 minutes" }],
      ["number", { maxEntries: 1 }],
      ["bytes", { maxBytes: 20 }]
    ] as const) {
      test(`keeps to a limit of ${limit}: what was used least lately goes, with its results and artifacts`, () =>
        Effect.gen(function* () {
          yield* record(["a", "b"])
          yield* TestClock.adjust("1 hour")
          yield* StepCache.use((cache) => cache.get(Entries.keyOf("a")))
          yield* TestClock.adjust("1 hour")
          const counted = yield* Collector.collect({ ...options, dryRun: true })
          assert.deepStrictEqual(yield* present(["a", "b"]), ["a", "b"])
          yield* TestClock.adjust(0)
          const collected = yield* Collector.collect(options)
          assert.deepStrictEqual(collected, {
            entries: 1,
            ledger: 1,
            results: 1,
            resultBytes: 5,
            artifacts: 1,
            artifactBytes: 13
          })
          assert.deepStrictEqual(counted, collected)
          assert.deepStrictEqual(yield* present(["a", "b"]), ["a"])
          assert.deepStrictEqual(yield* Collector.collect(options), nothing)
          assert.deepStrictEqual(yield* CacheTable.verify(), sound)
        }))
    }

    test("the ledger keeps what is no entry any more for a while, and its artifacts", () =>
      Effect.gen(function* () {
        yield* record(["a"])
        yield* StepCache.use((cache) => cache.evict(Entries.keyOf("a")))
        yield* TestClock.adjust("2 hours")
        assert.deepStrictEqual(yield* Collector.collect({ keepLedger: "3 hours" }), nothing)
        const collected = yield* Collector.collect({ keepLedger: "1 hour" })
        assert.deepInclude(collected, { entries: 0, ledger: 1, results: 1, artifacts: 1 })
        assert.deepStrictEqual(yield* CacheTable.verify(), sound)
      }))

    test("spares an artifact whose entry may not be there yet, and one that another entry names", () =>
      Effect.gen(function* () {
        yield* TestClock.adjust("1 hour")
        const shared = yield* Entries.artifactOf("out", "shared")
        const cache = yield* StepCache
        yield* cache.put(yield* Entries.entryOf(Entries.keyOf("a"), "a", { artifacts: [shared] }))
        yield* cache.put(yield* Entries.entryOf(Entries.keyOf("b"), "b", { artifacts: [shared] }))
        yield* TestClock.adjust("2 hours")
        const young = yield* Entries.artifactOf("out", "young")
        const collected = yield* Collector.collect({ maxEntries: 1 })
        assert.deepInclude(collected, { entries: 1, artifacts: 0 })
        const missing = yield* ArtifactStore.use((store) => store.missing([shared, young]))
        assert.deepStrictEqual(missing, [])
      }))

    test("spares an entry that is used after it was found to be beyond the limits", () =>
      Effect.gen(function* () {
        yield* record(["a", "b"])
        yield* TestClock.adjust("2 hours")
        const storage = yield* StepCacheStorage
        const cache = yield* StepCache
        const use = cache.get(Entries.keyOf("a"))
        const lookedAt = StepCacheStorage.of({
          ...storage,
          beyond: (cutoff, after, limit) =>
            Effect.tap(storage.beyond(cutoff, after, limit), () => Effect.ignore(use, { log: true }))
        })
        const collected = yield* Effect.provideService(
          Collector.collect({ maxAge: "1 hour" }),
          StepCacheStorage,
          lookedAt
        )
        assert.deepInclude(collected, { entries: 1, ledger: 1 })
        assert.deepStrictEqual(yield* present(["a", "b"]), ["a"])
        assert.deepStrictEqual(yield* CacheTable.verify(), sound)
      }))

    test("takes much in several writes, and tells all of it", () =>
      Effect.gen(function* () {
        yield* DurableWriter.use((writer) => writer.write(recordMany(1001)))
        const before = yield* collectedEvents
        const collected = yield* Collector.collect({ maxEntries: 0 })
        assert.deepInclude(collected, { entries: 1001, ledger: 1001, results: 1001 })
        // Two for the entries with their rows of the ledger, and two for the results.
        assert.strictEqual((yield* collectedEvents) - before, 4)
        assert.deepStrictEqual(yield* CacheTable.verify(), sound)
        assert.deepStrictEqual(yield* Collector.collect({ maxEntries: 0 }), nothing)
      }))

    test("what a crash left is taken by the next run", () =>
      Effect.gen(function* () {
        yield* record(["a", "b", "c"])
        yield* TestClock.adjust("2 hours")
        const store = yield* ArtifactStore
        let removals = 0
        const dying = ArtifactStore.of({
          ...store,
          remove: (digest) => (removals++ === 1 ? Effect.die("crash") : store.remove(digest))
        })
        const crashed = yield* Effect.exit(
          Effect.provideService(Collector.collect({ maxEntries: 0 }), ArtifactStore, dying)
        )
        assert.isTrue(Exit.isFailure(crashed))
        assert.deepStrictEqual(yield* CacheTable.verify(), sound)
        yield* Collector.collect({ maxEntries: 0 })
        assert.deepStrictEqual(yield* Stream.runCollect(store.list), [])
        const stats = yield* StepCacheStorage.use((storage) => storage.stats)
        assert.deepInclude(stats, { entries: 0, ledger: 0, results: 0, artifacts: 0 })
        assert.deepStrictEqual(yield* CacheTable.verify(), sound)
      }))

    test("counts what there is, by where it came from", () =>
      Effect.gen(function* () {
        yield* record(["a", "b"])
        const entry = yield* Entries.entryOf(Entries.keyOf("c"), "of a")
        yield* StepCache.use((cache) => cache.put(entry, { from: "shared" }))
        assert.deepStrictEqual(yield* StepCacheStorage.use((storage) => storage.stats), {
          entries: 3,
          origins: [
            { from: null, entries: 2 },
            { from: "shared", entries: 1 }
          ],
          ledger: 3,
          results: 3,
          resultBytes: 16,
          artifacts: 2,
          artifactBytes: 26
        })
      }))
  })
}

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const nothing: Collector.Collected = {
  entries: 0,
  ledger: 0,
  results: 0,
  resultBytes: 0,
  artifacts: 0,
  artifactBytes: 0
}

const sound: CacheTable.Verification = { missing: [], unexplained: [], unjoined: [], corrupt: [] }

/** Each has a result of 5 bytes and an artifact of 13. */
const record = (names: ReadonlyArray<string>) =>
  Effect.forEach(names, (name) =>
    Effect.gen(function* () {
      const artifacts = [yield* Entries.artifactOf("out", `artifact of ${name}`.slice(-13))]
      yield* StepCache.use((cache) =>
        Effect.flatMap(Entries.entryOf(Entries.keyOf(name), `of${name}`, { artifacts }), (entry) => cache.put(entry))
      )
    })
  )

const recordMany = (count: number) =>
  StepCache.use((cache) =>
    Effect.forEach(
      Array.from({ length: count }, (_, i) => `${i}`),
      (name) => Effect.flatMap(Entries.entryOf(Entries.keyOf(name), name), (entry) => cache.put(entry))
    )
  )

/** How often a collection was journaled. */
const collectedEvents = Journal.use((journal) =>
  Effect.map(
    journal.read({ stream: CacheEvents.stream, types: [CacheEvents.Collected.type] }),
    (events) => events.length
  )
)

const present = (names: ReadonlyArray<string>) =>
  Effect.filter(names, (name) =>
    Effect.map(
      StepCacheStorage.use((storage) => storage.find(Entries.keyOf(name))),
      (found) => found !== undefined
    )
  )
