/** The combined step cache over any local tier: contract 40, with shared tiers in memory that the tests break. */
import { assert, describe, it } from "@effect/vitest"
import * as DurableWriter from "@strata/durable/DurableWriter"
import * as Journal from "@strata/journal/Journal"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { ArtifactStore } from "../../src/ArtifactStore.ts"
import type { Artifact, CacheEntry } from "../../src/CacheEntry.ts"
import { Unexpected } from "../../src/CacheError.ts"
import * as CacheEvents from "../../src/CacheEvents.ts"
import { Publication } from "../../src/Publication.ts"
import { StepCache } from "../../src/StepCache.ts"
import { keyOf, makeEntry, storeArtifact } from "./entries.ts"
import { remoteOf, type Services, type Shared, shared } from "./publicationSuite.ts"
import { failing, well } from "./tiers.ts"
import { until } from "./until.ts"
import type * as Cache from "../../src/Cache.ts"
import { sha256 } from "@strata/durable/Digest"

const key = keyOf("a")

const get = StepCache.use((cache) => cache.get(key))

const put = (entry: CacheEntry) => StepCache.use((cache) => cache.put(entry))

const published = Effect.map(
  Publication.use((publication) => publication.status),
  (status) => status.published === 1 && status.pending === 0
)

const recorded = Effect.gen(function* () {
  const journal = yield* Journal.Journal
  const entries = yield* journal.read({ stream: CacheEvents.stream, types: ["cache-recorded"] })
  return yield* Effect.forEach(entries, (entry) => Effect.fromResult(CacheEvents.Recorded.decodePayload(entry.payload)))
})

const read = (artifact: Artifact) =>
  ArtifactStore.use((store) => store.get(artifact).pipe(Stream.decodeText, Stream.mkString))

/** What another machine has shared: an entry, and its blobs. */
const shareElsewhere = (tier: Shared, texts: ReadonlyArray<string> = []) =>
  Effect.gen(function* () {
    const artifacts = texts.map((text): Artifact => {
      const bytes = new TextEncoder().encode(text)
      const digest = sha256(bytes)
      tier.blobs.blobs.set(digest, bytes)
      return { name: text, digest, size: bytes.length }
    })
    const entry = yield* makeEntry({ key, value: { from: "elsewhere" }, artifacts, by: "elsewhere" })
    tier.steps.entries.set(key, entry)
    return entry
  })

/** `layer` makes an empty machine, with the remote tiers if they are given. */
export const combinedSuite = <E>(
  name: string,
  layer: (remote: Cache.Remote | undefined) => Layer.Layer<Services, E>
): void => {
  const test = (title: string, body: (tier: Shared) => Effect.Effect<void, unknown, Services>) =>
    it.effect(title, () =>
      Effect.suspend(() => {
        const tier = shared()
        return Effect.provide(body(tier), layer(remoteOf(tier)))
      })
    )

  describe(`CombinedStepCache (${name})`, () => {
    test("a local hit makes no request", (tier) =>
      Effect.gen(function* () {
        const entry = yield* makeEntry({ key, value: 1, artifacts: [yield* storeArtifact("a", "a")] })
        yield* put(entry)
        yield* until("published", published)
        tier.steps.calls.length = 0
        tier.blobs.calls.length = 0
        assert.deepInclude(yield* get, { _tag: "Hit", entry })
        assert.deepStrictEqual([tier.steps.calls, tier.blobs.calls], [[], []])
      }))

    test("a shared hit is brought here with its artifacts, recorded with its tier, and not sent back", (tier) =>
      Effect.gen(function* () {
        const entry = yield* shareElsewhere(
          tier,
          ["one", "two", ""].filter((text) => text !== "")
        )
        assert.deepStrictEqual(yield* get, { _tag: "Hit", entry, tier: "shared" })
        for (const artifact of entry.artifacts) {
          assert.strictEqual(yield* read(artifact), artifact.name)
        }
        assert.deepStrictEqual(
          (yield* recorded).map(({ from, metadata }) => [from, metadata.recordedBy]),
          [["shared", "elsewhere"]]
        )
        tier.steps.calls.length = 0
        const again = yield* get
        assert.deepInclude(again, { _tag: "Hit", entry })
        yield* TestClock.adjust("10 seconds")
        assert.deepStrictEqual(tier.steps.calls, [])
        assert.strictEqual(tier.blobs.calls.filter((call) => call === "put").length, 0)
      }))

    test("brings only those blobs that are not here (C11)", (tier) =>
      Effect.gen(function* () {
        yield* storeArtifact("here", "here")
        const entry = yield* shareElsewhere(tier, ["here", "there"])
        // The tier lost the one that is here.
        tier.blobs.blobs.delete(entry.artifacts[0]!.digest)
        assert.strictEqual((yield* get)._tag, "Hit")
        assert.strictEqual(yield* read(entry.artifacts[0]!), "here")
        assert.strictEqual(yield* read(entry.artifacts[1]!), "there")
      }))

    test("who loses the write-back serves the local winner", (tier) =>
      Effect.gen(function* () {
        yield* shareElsewhere(tier)
        const winner = yield* makeEntry({ key, value: { from: "here" } })
        const cache = yield* StepCache
        let first = true
        tier.steps.mood = Effect.suspend(() => {
          if (!first) return well
          first = false
          return Effect.asVoid(cache.put(winner))
        })
        const found = yield* cache.get(key)
        assert.deepInclude(found, { _tag: "Hit", entry: winner })
        assert.notDeepInclude(found, { tier: "shared" })
        assert.deepInclude(yield* cache.get(key), { _tag: "Hit", entry: winner })
      }))

    test("a fenced lookup finds only its recording", (tier) =>
      Effect.gen(function* () {
        const cache = yield* StepCache
        const entry = yield* shareElsewhere(tier)
        const other = yield* makeEntry({ key, value: 1 })
        const recording = other.metadata.recording
        assert.deepStrictEqual(yield* cache.get(key, { recording }), { _tag: "Miss", reason: { _tag: "Fenced" } })
        assert.deepStrictEqual(yield* recorded, [])
        const found = yield* cache.get(key, { recording: entry.metadata.recording })
        assert.deepInclude(found, { _tag: "Hit", entry })
        tier.steps.calls.length = 0
        assert.deepStrictEqual(yield* cache.get(key, { recording }), { _tag: "Miss", reason: { _tag: "Fenced" } })
        assert.deepStrictEqual(tier.steps.calls, [])
      }))

    test("inside of a write only the local tier is asked", (tier) =>
      Effect.gen(function* () {
        yield* shareElsewhere(tier)
        assert.strictEqual((yield* DurableWriter.write(get))._tag, "Miss")
        assert.deepStrictEqual(tier.steps.calls, [])
        assert.strictEqual((yield* get)._tag, "Hit")
      }))

    test("eviction is local: what is evicted here comes back from there", (tier) =>
      Effect.gen(function* () {
        const cache = yield* StepCache
        const entry = yield* makeEntry({ key, value: 1 })
        yield* put(entry)
        yield* until("published", published)
        assert.isTrue(yield* cache.evict(key, { recording: entry.metadata.recording }))
        assert.isTrue(tier.steps.entries.has(key))
        assert.deepStrictEqual(yield* get, { _tag: "Hit", entry, tier: "shared" })
      }))

    test("that there was no entry is not remembered (C8)", (tier) =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* get, { _tag: "Miss", reason: { _tag: "Absent" } })
        yield* shareElsewhere(tier)
        assert.strictEqual((yield* get)._tag, "Hit")
      }))

    test("a shared tier that fails is a miss", (tier) =>
      Effect.gen(function* () {
        yield* shareElsewhere(tier)
        tier.steps.mood = failing(new Unexpected({ tier: "shared", detail: "500" }))
        assert.deepStrictEqual(yield* get, { _tag: "Miss", reason: { _tag: "Unavailable", error: "Unexpected" } })
        tier.steps.mood = well
        assert.strictEqual((yield* get)._tag, "Hit")
      }))

    test("an entry whose blobs are not there is a miss, and is not recorded (C1)", (tier) =>
      Effect.gen(function* () {
        const entry = yield* shareElsewhere(tier, ["gone"])
        tier.blobs.blobs.clear()
        assert.deepStrictEqual(yield* get, {
          _tag: "Miss",
          reason: { _tag: "ArtifactMissing", digests: [entry.artifacts[0]!.digest] }
        })
        assert.deepStrictEqual(yield* recorded, [])
      }))

    test("a blob that was deleted here is had from there, and a miss when it is nowhere (C1)", (tier) =>
      Effect.gen(function* () {
        const store = yield* ArtifactStore
        const artifact = yield* storeArtifact("a", "text")
        const entry = yield* makeEntry({ key, value: 1, artifacts: [artifact] })
        yield* put(entry)
        yield* until("published", published)
        assert.isTrue(yield* store.remove(artifact.digest))
        assert.deepInclude(yield* get, { _tag: "Hit", entry })
        assert.strictEqual(yield* read(artifact), "text")

        yield* store.remove(artifact.digest)
        tier.blobs.blobs.clear()
        assert.deepStrictEqual(yield* get, {
          _tag: "Miss",
          reason: { _tag: "ArtifactMissing", digests: [artifact.digest] }
        })
        // The action runs again, and its result is recorded and shared anew.
        const again = yield* makeEntry({ key, value: 1, artifacts: [yield* storeArtifact("a", "text")] })
        assert.strictEqual((yield* put(again))._tag, "Inserted")
        yield* until(
          "published again",
          Effect.sync(() => tier.blobs.blobs.has(artifact.digest))
        )
      }))

    it.effect("without a shared tier it is the local cache", () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* get, { _tag: "Miss", reason: { _tag: "Absent" } })
        const entry = yield* makeEntry({ key, value: 1 })
        yield* put(entry)
        assert.deepInclude(yield* get, { _tag: "Hit", entry })
      }).pipe(Effect.provide(layer(undefined)))
    )
  })
}
