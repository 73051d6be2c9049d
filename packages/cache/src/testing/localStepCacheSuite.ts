/**
 * The contracts of a local step cache: 37, 38 and 41 as the journal, the changelog and the write under way show them.
 *
 * @since 0.1.0
 */
import { assert, describe, it } from "@effect/vitest"
import { Changelog } from "@strata/dirty-queue/Changelog"
import { DurableWriter } from "@strata/durable/DurableWriter"
import { sha256 } from "@strata/durable/Digest"
import { type Entry, Journal } from "@strata/journal/Journal"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import * as TestClock from "effect/testing/TestClock"
import type { ArtifactStore } from "../ArtifactStore.ts"
import * as CacheEvents from "../CacheEvents.ts"
import type { MissReason } from "../Lookup.ts"
import { StepCache, layer as layerOf } from "../StepCache.ts"
import { StepCacheStorage, type StoredEntry } from "../StepCacheStorage.ts"
import * as Entries from "./entries.ts"
import * as Event from "@strata/journal/Event"

// ---------------------------------------------------------------------------------------------------------------------
// tiers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * What a local tier is made of.
 *
 * @since 0.1.0
 * @category models
 */
export type LocalServices = StepCacheStorage | DurableWriter | Journal | Changelog | ArtifactStore

/**
 * A tier to test.
 *
 * @since 0.1.0
 * @category models
 */
export interface LocalStepCacheTier<E> {
  /** An empty store, and what a step cache over it works with. */
  readonly layer: Layer.Layer<LocalServices, E>
}

// ---------------------------------------------------------------------------------------------------------------------
// suite
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Runs the contracts on one tier. Each test builds its layer anew.
 *
 * @since 0.1.0
 * @category suites
 */
export const localStepCacheSuite = <E>(name: string, tier: LocalStepCacheTier<E>): void => {
  const test = (title: string, body: () => Effect.Effect<void, unknown, LocalServices | StepCache>): void =>
    it.effect(title, () => Effect.provide(body(), layerOf().pipe(Layer.provideMerge(tier.layer))))

  describe(`StepCache, local (${name})`, () => {
    test("every change is journaled with what it changed", () =>
      Effect.gen(function* () {
        const cache = yield* StepCache
        const first = yield* Entries.entryOf(keyA, 1, { by: "first", artifacts: [yield* Entries.artifactOf("a", "a")] })
        yield* cache.put(first)
        yield* cache.put(first)
        yield* cache.put(yield* Entries.entryOf(keyA, 2, { by: "second" }))
        yield* cache.evict(keyA)
        yield* cache.evict(keyA)
        yield* cache.put(yield* Entries.entryOf(keyA, 2, { by: "second" }), { from: "shared" })
        yield* cache.quarantine(keyA, { recording: Entries.recordingOf("second"), reason: { _tag: "WrongKey" } })
        const events = yield* journaled
        assert.deepStrictEqual(
          events.map(({ type }) => type),
          ["cache-recorded", "cache-conflict", "cache-evicted", "cache-recorded", "cache-quarantined"]
        )
        const [recorded, conflict, evicted, writtenBack, quarantined] = events
        assert.deepStrictEqual(recorded!.payload, {
          ledger: 1,
          key: keyA,
          digest: first.digest,
          artifacts: first.artifacts,
          metadata: first.metadata
        })
        assert.deepStrictEqual(conflict!.payload, {
          key: keyA,
          kept: first.metadata.recording,
          keptDigest: first.digest,
          recording: Entries.recordingOf("second"),
          digest: sha256("2")
        })
        assert.deepStrictEqual(evicted!.payload, { key: keyA, recording: first.metadata.recording })
        assert.deepInclude(writtenBack!.payload, { ledger: 2, from: "shared" })
        assert.deepStrictEqual(quarantined!.payload, {
          key: keyA,
          recording: Entries.recordingOf("second"),
          reason: { _tag: "WrongKey" }
        })
      }))

    test("the journal does not hold results", () =>
      Effect.gen(function* () {
        yield* StepCache.use((cache) => Effect.flatMap(Entries.entryOf(keyA, "a-secret-result"), cache.put))
        const entries = yield* Journal.use((journal) => journal.readAll())
        assert.notInclude(JSON.stringify(entries), "a-secret-result")
      }))

    test("a conflict is journaled once for each recording, however often it is put", () =>
      Effect.gen(function* () {
        const cache = yield* StepCache
        yield* cache.put(yield* Entries.entryOf(keyA, 1, { by: "first" }))
        for (const by of ["second", "second", "third"]) yield* cache.put(yield* Entries.entryOf(keyA, 2, { by }))
        assert.strictEqual((yield* journaled).filter(({ type }) => type === "cache-conflict").length, 2)
      }))

    test("what was recorded here is a change to be published, what was read elsewhere is not", () =>
      Effect.gen(function* () {
        const cache = yield* StepCache
        yield* cache.put(yield* Entries.entryOf(keyA, 1, { by: "first" }))
        yield* cache.put(yield* Entries.entryOf(Entries.keyOf("b"), 1), { from: "shared" })
        yield* cache.put(yield* Entries.entryOf(keyA, 1, { by: "second" }))
        yield* cache.evict(keyA)
        const changes = yield* Changelog.use((changelog) => changelog.read())
        assert.deepStrictEqual(
          changes.map(({ cid, op, path, scope }) => ({ cid, op, path: String(path), scope: String(scope) })),
          [{ cid: String(Entries.recordingOf("first")), op: "put", path: String(keyA), scope: "~cache" }]
        )
      }))

    test("joins the write under way, and goes with it", () =>
      Effect.gen(function* () {
        const cache = yield* StepCache
        const writer = yield* DurableWriter
        const entry = yield* Entries.entryOf(keyA, 1)
        const write = writer.write(
          Effect.gen(function* () {
            yield* cache.put(entry)
            assert.strictEqual((yield* cache.get(keyA))._tag, "Hit")
            return yield* Effect.fail("changed my mind" as const)
          })
        )
        assert.strictEqual(yield* Effect.flip(write), "changed my mind")
        assert.strictEqual((yield* cache.get(keyA))._tag, "Miss")
        assert.deepStrictEqual(yield* journaled, [])
        assert.deepStrictEqual(yield* Changelog.use((changelog) => changelog.read()), [])
        yield* writer.write(cache.put(entry))
        assert.strictEqual((yield* cache.get(keyA))._tag, "Hit")
      }))

    test("an eviction that is rolled back has not happened", () =>
      Effect.gen(function* () {
        const cache = yield* StepCache
        const entry = yield* Entries.entryOf(keyA, 1)
        yield* cache.put(entry)
        const writer = yield* DurableWriter
        yield* Effect.exit(writer.write(Effect.andThen(cache.evict(keyA), Effect.die("no"))))
        const found = yield* cache.get(keyA)
        assert.deepStrictEqual(found._tag === "Hit" && found.entry, entry)
      }))

    const damages: ReadonlyArray<readonly [MissReason["_tag"], (stored: StoredEntry) => StoredEntry]> = [
      ["DigestMismatch", (stored) => ({ ...stored, value: `${stored.value} ` })],
      ["DigestMismatch", (stored) => ({ ...stored, digest: sha256("another") })],
      ["WrongKey", (stored) => ({ ...stored, key: Entries.keyOf("another") })],
      ["Undecodable", (stored) => ({ ...stored, artifacts: '[{"name":"a"}]' })],
      ["Undecodable", (stored) => ({ ...stored, artifacts: "[" })],
      ["Undecodable", (stored) => ({ ...stored, recording: "?" })]
    ]
    for (const [reason, damage] of damages) {
      test(`a row that is damaged is quarantined and not served: ${reason}`, () =>
        Effect.gen(function* () {
          const cache = yield* damaged(damage)
          const entry = yield* Entries.entryOf(keyA, { a: 1 })
          yield* StepCache.use((sound) => sound.put(entry))
          const found = yield* cache.get(keyA)
          assert.strictEqual(found._tag === "Miss" && found.reason._tag, reason)
          assert.strictEqual((yield* StepCache.use((sound) => sound.get(keyA)))._tag, "Miss")
          assert.deepStrictEqual(
            (yield* journaled).map(({ type }) => type),
            ["cache-recorded", "cache-quarantined"]
          )
        }))

      test(`a row that is damaged does not keep a sound one out: ${reason}`, () =>
        Effect.gen(function* () {
          const cache = yield* damaged(damage)
          const entry = yield* Entries.entryOf(keyA, { a: 1 })
          yield* StepCache.use((sound) => sound.put(entry))
          assert.strictEqual((yield* cache.put(entry))._tag, "Inserted")
          assert.strictEqual((yield* StepCache.use((sound) => sound.get(keyA)))._tag, "Hit")
        }))
    }

    test("a lookup writes when an entry was used no more often than it was told", () =>
      Effect.gen(function* () {
        const writes = yield* Ref.make(0)
        const writer = yield* DurableWriter
        const cache = yield* StepCache
        yield* cache.put(yield* Entries.entryOf(keyA, 1))
        const counted = DurableWriter.of({
          write: (effect) =>
            Effect.andThen(
              Ref.update(writes, (n) => n + 1),
              writer.write(effect)
            )
        })
        const counting = yield* Effect.provide(
          StepCache,
          Layer.fresh(layerOf()).pipe(Layer.provide(Layer.succeed(DurableWriter, counted)))
        )
        for (let i = 0; i < 3; i++) {
          yield* counting.get(keyA)
          yield* counting.get(Entries.keyOf("absent"))
        }
        assert.strictEqual(yield* Ref.get(writes), 0)
        yield* TestClock.adjust("1 hour")
        for (let i = 0; i < 3; i++) yield* counting.get(keyA)
        assert.strictEqual(yield* Ref.get(writes), 1)
        const [head] = yield* StepCacheStorage.use((storage) => storage.heads("", 10))
        assert.strictEqual(head?.usedAt, 3_600_000)
      }))

    test("heads come by key, in pages", () =>
      Effect.gen(function* () {
        const cache = yield* StepCache
        const keys = ["a", "b", "c", "d", "e"].map(Entries.keyOf)
        for (const key of keys) yield* cache.put(yield* Entries.entryOf(key, 1))
        const storage = yield* StepCacheStorage
        const first = yield* storage.heads("", 3)
        const rest = yield* storage.heads(first.at(-1)?.key ?? "", 3)
        assert.deepStrictEqual(
          [...first, ...rest].map(({ key }) => key),
          keys.map(String).toSorted()
        )
      }))
  })
}

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const keyA = Entries.keyOf("a")

const decode = Event.decoder([
  CacheEvents.Recorded,
  CacheEvents.Conflicted,
  CacheEvents.Quarantined,
  CacheEvents.Evicted
])

/** Every entry of the cache's stream, each of them of a known type that decodes. */
const journaled = Effect.gen(function* () {
  const entries = yield* Journal.use((journal) => journal.read({ stream: CacheEvents.stream }))
  for (const entry of entries) assert.isTrue(Option.isSome(yield* decode(entry)), entry.type)
  return entries satisfies ReadonlyArray<Entry>
})

/** A step cache over the same store, in which every row is damaged when it is read. */
const damaged = (damage: (stored: StoredEntry) => StoredEntry) =>
  Effect.flatMap(StepCacheStorage, (storage) =>
    Effect.provide(
      StepCache,
      Layer.fresh(layerOf()).pipe(
        Layer.provide(
          Layer.succeed(StepCacheStorage, {
            ...storage,
            find: (key) => Effect.map(storage.find(key), (stored) => stored && damage(stored))
          })
        )
      )
    )
  )
