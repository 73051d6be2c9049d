/**
 * Contract 37, the part about the journal: random histories of the cache are folded back from it, row for row.
 *
 * @since 0.1.0
 */
import { assert, describe, it } from "@effect/vitest"
import { sha256 } from "@strata/durable/Digest"
import { DurableWriter } from "@strata/durable/DurableWriter"
import * as Compaction from "@strata/journal/Compaction"
import * as Folds from "@strata/journal/Folds"
import { Journal } from "@strata/journal/Journal"
import { JournalStorage } from "@strata/journal/JournalStorage"
import * as Projections from "@strata/journal/Projections"
import * as Rewind from "@strata/journal/Rewind"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
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
export interface CacheTableTier<E> {
  readonly layer: Layer.Layer<LocalServices | JournalStorage, E>
  /** How many random histories there are. Default 60. */
  readonly runs?: number | undefined
}

/**
 * Runs the contracts on one tier. Each test builds its layer anew.
 *
 * @since 0.1.0
 * @category suites
 */
export const cacheTableSuite = <E>(name: string, tier: CacheTableTier<E>): void => {
  const layer = Layer.mergeAll(
    layerOf(),
    Compaction.layer,
    Rewind.layer,
    CacheTable.layerFold,
    CacheTable.layerProjection()
  ).pipe(Layer.provideMerge(Layer.mergeAll(Folds.layer, Projections.layer)), Layer.provideMerge(tier.layer))

  describe(`CacheTable (${name})`, () => {
    it.effect.prop(
      "the tables are folded back from the journal, whatever has happened",
      { steps: Schema.Array(Step).check(Schema.isMaxLength(40)) },
      ({ steps }) =>
        Effect.gen(function* () {
          for (const step of steps) {
            yield* perform(step)
            assert.deepStrictEqual(yield* CacheTable.verify(), sound)
          }
          const before = yield* rows
          yield* forget
          assert.deepStrictEqual(yield* rows, [])
          yield* CacheTable.rebuild()
          assert.deepStrictEqual(yield* rows, before)
          assert.deepStrictEqual(yield* CacheTable.verify(), sound)
        }).pipe(Effect.provide(layer)),
      { arbitrary: { runs: tier.runs ?? 60, seed: 37 }, timeout: 120_000 }
    )

    it.effect("a result that is missing fails the rebuild, which changes nothing", () =>
      Effect.gen(function* () {
        const cache = yield* StepCache
        yield* cache.put(yield* Entries.entryOf(Entries.keyOf("a"), 1))
        const before = yield* rows
        const writer = yield* DurableWriter
        const lost = (yield* Entries.entryOf(Entries.keyOf("b"), "lost")).digest
        const recorded = yield* Entries.entryOf(Entries.keyOf("b"), "lost")
        yield* writer.write(
          Journal.use((journal) =>
            journal.append(CacheEvents.stream, [
              CacheEvents.Recorded.make({
                ledger: 99,
                key: recorded.key,
                digest: recorded.digest,
                artifacts: [],
                metadata: recorded.metadata
              })
            ])
          )
        )
        const error = yield* Effect.flip(CacheTable.rebuild())
        assert.deepStrictEqual(
          error._tag === "CacheTableError" && error.reason._tag === "FoldIncomplete" && error.reason.references,
          [{ key: recorded.key, digest: lost }]
        )
        assert.deepStrictEqual(yield* rows, before)
        const found = yield* CacheTable.verify()
        assert.deepStrictEqual(found.missing, [recorded.key])
        assert.deepStrictEqual(found.unjoined, [recorded.key])
      }).pipe(Effect.provide(layer))
    )

    it.effect("a row without its entry, and an entry without its row, are found", () =>
      Effect.gen(function* () {
        const cache = yield* StepCache
        const storage = yield* StepCacheStorage
        const writer = yield* DurableWriter
        yield* cache.put(yield* Entries.entryOf(Entries.keyOf("a"), 1))
        yield* writer.write(storage.remove(Entries.keyOf("a"), 1))
        assert.deepStrictEqual((yield* CacheTable.verify()).missing, [Entries.keyOf("a")])
        yield* CacheTable.rebuild()
        assert.deepStrictEqual(yield* CacheTable.verify(), sound)
        const [head] = yield* storage.heads("", 1)
        yield* writer.write(storage.insert(0, { ...head!, key: Entries.keyOf("b"), value: "1" }))
        assert.deepStrictEqual((yield* CacheTable.verify()).unexplained, [Entries.keyOf("b")])
      }).pipe(Effect.provide(layer))
    )

    it.effect("an event that does not decode fails the rebuild, and names its place", () =>
      Effect.gen(function* () {
        const writer = yield* DurableWriter
        const bad = {
          type: "cache-recorded",
          identity: undefined,
          encode: Effect.succeed({ key: "no key" })
        }
        yield* writer.write(Journal.use((journal) => journal.append(CacheEvents.stream, [bad])))
        const error = yield* Effect.flip(CacheTable.rebuild())
        assert.deepInclude(error.reason, { _tag: "DecodeFailed", stream: "cache", seq: 1 })
      }).pipe(Effect.provide(layer))
    )

    it.effect("a row of the ledger that comes too late fails the rebuild, and names its place", () =>
      Effect.gen(function* () {
        const cache = yield* StepCache
        const writer = yield* DurableWriter
        const { artifacts, digest, key, metadata } = yield* Entries.entryOf(Entries.keyOf("a"), 1)
        yield* cache.put(yield* Entries.entryOf(Entries.keyOf("b"), 1))
        yield* writer.write(
          Journal.use((journal) =>
            journal.append(CacheEvents.stream, [
              CacheEvents.Recorded.make({ ledger: 1, key, digest, artifacts, metadata })
            ])
          )
        )
        const error = yield* Effect.flip(CacheTable.rebuild())
        assert.deepInclude(error.reason, { _tag: "DecodeFailed", stream: "cache", seq: 2 })
      }).pipe(Effect.provide(layer))
    )

    it.effect("results are joined by their digests, in whichever order they are stored", () =>
      Effect.gen(function* () {
        const cache = yield* StepCache
        const evens = Array.from({ length: 60 }, (_, i) => i * 2)
        for (const i of evens) yield* cache.put(yield* Entries.entryOf(Entries.keyOf(`${i}`), i))
        for (const i of evens.toReversed()) {
          yield* cache.put(yield* Entries.entryOf(Entries.keyOf(`${i + 1}`), i % 4 === 0 ? i : i + 1))
        }
        const before = yield* rows
        yield* forget
        yield* CacheTable.rebuild()
        assert.deepStrictEqual(yield* rows, before)
        assert.deepStrictEqual(yield* CacheTable.verify(), sound)
      }).pipe(Effect.provide(layer))
    )

    it.effect("what is rewound takes back what it explains", () =>
      Effect.gen(function* () {
        const cache = yield* StepCache
        yield* cache.put(yield* Entries.entryOf(Entries.keyOf("a"), 1))
        const seq = yield* Journal.use((journal) => journal.head(CacheEvents.stream))
        yield* cache.evict(Entries.keyOf("a"))
        yield* cache.put(yield* Entries.entryOf(Entries.keyOf("b"), 2))
        yield* Rewind.Rewind.use((rewind) => rewind.rewind({ stream: CacheEvents.stream, after: seq }))
        assert.strictEqual((yield* cache.get(Entries.keyOf("a")))._tag, "Hit")
        assert.strictEqual((yield* cache.get(Entries.keyOf("b")))._tag, "Miss")
        assert.deepStrictEqual(yield* CacheTable.verify(), sound)
      }).pipe(Effect.provide(layer))
    )
  })
}

// ---------------------------------------------------------------------------------------------------------------------
// histories
// ---------------------------------------------------------------------------------------------------------------------

const Key = Schema.Literals(["a", "b", "c"])

const Step = Schema.TaggedUnion({
  Put: { key: Key, value: Schema.Literals([1, 2]), from: Schema.Boolean },
  Evict: { key: Key },
  Quarantine: { key: Key },
  Collect: { maxEntries: Schema.Literals([0, 1, 3]) },
  Compact: {}
})

const perform = Effect.fnUntraced(function* (step: typeof Step.Type) {
  const cache = yield* StepCache
  switch (step._tag) {
    case "Put": {
      const by = sha256(JSON.stringify(step))
      const artifacts = step.value === 1 ? [] : [yield* Entries.artifactOf("out", step.key)]
      const entry = yield* Entries.entryOf(Entries.keyOf(step.key), step.value, { by, artifacts })
      return yield* Effect.asVoid(cache.put(entry, step.from ? { from: "shared" } : {}))
    }
    case "Evict":
      return yield* Effect.asVoid(cache.evict(Entries.keyOf(step.key)))
    case "Quarantine": {
      const found = yield* cache.get(Entries.keyOf(step.key))
      if (found._tag === "Miss") return
      const { recording } = found.entry.metadata
      return yield* Effect.asVoid(
        cache.quarantine(Entries.keyOf(step.key), { recording, reason: { _tag: "DigestMismatch" } })
      )
    }
    case "Collect": {
      yield* TestClock.adjust("1 second")
      return yield* Effect.asVoid(Collector.collect({ maxEntries: step.maxEntries, keepLedger: 0, grace: 0 }))
    }
    case "Compact": {
      const storage = yield* JournalStorage
      const head = yield* storage.lastUpTo(CacheEvents.stream, Number.MAX_SAFE_INTEGER)
      if (head === undefined) return
      yield* Compaction.Compaction.use((compaction) =>
        compaction.compact({ stream: CacheEvents.stream, seq: head.seq })
      )
    }
  }
})

const sound: CacheTable.Verification = { missing: [], unexplained: [], unjoined: [], corrupt: [] }

/** Heads with their rows of the ledger, as they are stored. */
const rows = Effect.map(
  StepCacheStorage.use((storage) => storage.heads("", 1000)),
  (heads) => heads.map((head) => ({ ...head, usedAt: 0 }))
)

/** Empties ledger and heads; the results stay. */
const forget = Effect.gen(function* () {
  const storage = yield* StepCacheStorage
  const writer = yield* DurableWriter
  yield* writer.write(storage.withRestoring(({ heads }) => heads(0)))
})
