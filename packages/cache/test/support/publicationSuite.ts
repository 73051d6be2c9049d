/** Publication on any local tier: contracts 40 to 43, with shared tiers in memory that the tests break. */
import { assert, describe, it } from "@effect/vitest"
import * as DirtyQueue from "@strata/dirty-queue/DirtyQueue"
import * as DurableWriter from "@strata/durable/DurableWriter"
import * as Journal from "@strata/journal/Journal"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Layer from "effect/Layer"
import * as TestClock from "effect/testing/TestClock"
import type { ArtifactStore } from "../../src/ArtifactStore.ts"
import type * as Cache from "../../src/Cache.ts"
import type { CacheEntry } from "../../src/CacheEntry.ts"
import { Forbidden, TooLarge, Unexpected, Unreachable } from "../../src/CacheError.ts"
import * as CacheEvents from "../../src/CacheEvents.ts"
import { Publication } from "../../src/Publication.ts"
import { StepCache } from "../../src/StepCache.ts"
import { keyOf, makeEntry, storeArtifact } from "./entries.ts"
import { failing, hanging, type SharedBlobs, sharedBlobs, type SharedSteps, sharedSteps, well } from "./tiers.ts"
import { until } from "./until.ts"

export type Services =
  | StepCache
  | ArtifactStore
  | Publication
  | Journal.Journal
  | DurableWriter.DurableWriter
  | DirtyQueue.DirtyQueue

export interface Shared {
  readonly steps: SharedSteps
  readonly blobs: SharedBlobs
}

export const shared = (): Shared => ({ steps: sharedSteps(), blobs: sharedBlobs() })

export const remoteOf = ({ blobs, steps }: Shared): Cache.Remote => ({
  steps: Effect.succeed(steps.service),
  artifacts: Effect.succeed(blobs.service)
})

const put = (entry: CacheEntry) => StepCache.use((cache) => cache.put(entry))

const status = Publication.use((publication) => publication.status)

const published = (count: number) => Effect.map(status, (status) => status.published === count && status.pending === 0)

const refusals = Effect.gen(function* () {
  const journal = yield* Journal.Journal
  const entries = yield* journal.read({ stream: CacheEvents.stream, types: ["cache-publication-refused"] })
  return yield* Effect.forEach(entries, (entry) => Effect.fromResult(CacheEvents.Refused.decodePayload(entry.payload)))
})

/** Time goes by meanwhile, as a drain waits for what the follower has claimed. */
const drained = Effect.gen(function* () {
  const publication = yield* Publication
  const draining = yield* Effect.forkChild(publication.drain({ timeout: "1 hour" }))
  const isOver = Effect.map(status, () => draining.pollUnsafe() !== undefined)
  yield* until("drained", isOver, { limitMs: 3_600_000 })
  return yield* Fiber.join(draining)
})

const key = keyOf("a")

/** `layer` makes an empty machine, with the remote tiers if they are given. An outage lasts `hours`. */
export const publicationSuite = <E>(
  name: string,
  options: {
    readonly layer: (remote: Cache.Remote | undefined) => Layer.Layer<Services, E>
    readonly hours: number
  }
): void => {
  const { hours, layer } = options
  const test = (title: string, body: (tier: Shared) => Effect.Effect<void, unknown, Services>) =>
    it.effect(title, () =>
      Effect.suspend(() => {
        const tier = shared()
        return Effect.provide(body(tier), layer(remoteOf(tier)))
      })
    )

  describe(`Publication (${name})`, () => {
    test("publishes what was recorded after its commit: blobs first, the entry last", (tier) =>
      Effect.gen(function* () {
        const order: Array<string> = []
        tier.blobs.mood = Effect.sync(() => void order.push(`blob ${tier.blobs.calls.at(-1)}`))
        tier.steps.mood = Effect.sync(() => void order.push(`entry ${tier.steps.calls.at(-1)}`))
        const artifacts = [yield* storeArtifact("a.txt", "a"), yield* storeArtifact("b.txt", "b")]
        const entry = yield* makeEntry({ key, value: { answer: 42 }, artifacts })
        assert.strictEqual((yield* put(entry))._tag, "Inserted")
        yield* until("published", published(1))
        assert.deepStrictEqual(tier.steps.entries.get(key), entry)
        assert.sameMembers(
          [...tier.blobs.blobs.keys()],
          artifacts.map((artifact) => artifact.digest)
        )
        const lastBlob = order.findLastIndex((call) => call.startsWith("blob"))
        assert.strictEqual(order[lastBlob], "blob missing", "the blobs are looked for again after they were sent")
        assert.isAbove(order.indexOf("entry put"), lastBlob)
      }))

    test("a result that refers to the empty blob is published (C2)", (tier) =>
      Effect.gen(function* () {
        const artifacts = [yield* storeArtifact("empty", "")]
        yield* put(yield* makeEntry({ key, value: 1, artifacts }))
        yield* until("published", published(1))
        assert.strictEqual(tier.blobs.blobs.get(artifacts[0]!.digest)?.length, 0)
      }))

    test("a commit does not wait for a tier that never answers", (tier) =>
      Effect.gen(function* () {
        tier.steps.mood = hanging
        tier.blobs.mood = hanging
        for (let i = 0; i < 20; i++) {
          const entry = yield* makeEntry({ key: keyOf(`${i}`), value: i })
          assert.strictEqual((yield* put(entry))._tag, "Inserted")
        }
        tier.steps.mood = well
        tier.blobs.mood = well
        yield* until("published", published(20), { stepMs: 1000, limitMs: 600_000 })
        assert.strictEqual(tier.steps.entries.size, 20)
      }))

    test("nothing is asked of the tier inside of a write", (tier) =>
      Effect.gen(function* () {
        const cache = yield* StepCache
        const inside = yield* Deferred.make<void>()
        const leave = yield* Deferred.make<void>()
        const entry = yield* makeEntry({ key, value: 1 })
        const write = DurableWriter.write(
          Effect.gen(function* () {
            yield* cache.put(entry)
            assert.strictEqual((yield* cache.get(keyOf("other")))._tag, "Miss")
            yield* Deferred.succeed(inside, undefined)
            yield* Deferred.await(leave)
          })
        )
        const fiber = yield* Effect.forkChild(write)
        yield* Deferred.await(inside)
        yield* Effect.yieldNow
        assert.deepStrictEqual([tier.steps.calls, tier.blobs.calls], [[], []])
        yield* Deferred.succeed(leave, undefined)
        yield* Fiber.join(fiber)
        yield* until("published", published(1))
      }))

    test("what a write undid is not published", (tier) =>
      Effect.gen(function* () {
        const entry = yield* makeEntry({ key, value: 1 })
        yield* Effect.ignore(DurableWriter.write(Effect.andThen(put(entry), Effect.fail("undone"))))
        yield* TestClock.adjust("10 seconds")
        assert.deepStrictEqual(tier.steps.calls, [])
        assert.deepInclude(yield* status, { published: 0, pending: 0 })
      }))

    test("a result that conflicts with the local one is not published", (tier) =>
      Effect.gen(function* () {
        const first = yield* makeEntry({ key, value: 1 })
        yield* put(first)
        assert.strictEqual((yield* put(yield* makeEntry({ key, value: 2 })))._tag, "Conflict")
        yield* until("published", published(1))
        yield* TestClock.adjust("10 seconds")
        assert.deepStrictEqual([...tier.steps.entries.values()], [first])
        assert.strictEqual(tier.steps.calls.filter((call) => call === "put").length, 1)
      }))

    test("a conflict in the shared tier is journaled, and done with", (tier) =>
      Effect.gen(function* () {
        const theirs = yield* makeEntry({ key, value: "theirs" })
        tier.steps.entries.set(key, theirs)
        const ours = yield* makeEntry({ key, value: "ours" })
        yield* put(ours)
        yield* until("published", published(1))
        assert.strictEqual(tier.steps.entries.get(key), theirs)
        const journal = yield* Journal.Journal
        const conflicts = yield* journal.read({ stream: CacheEvents.stream, types: ["cache-conflict"] })
        assert.lengthOf(conflicts, 1)
        assert.deepInclude(conflicts[0]!.payload, { tier: "shared", recording: ours.metadata.recording })
        const found = yield* (yield* StepCache).get(key)
        assert.deepInclude(found, { _tag: "Hit", entry: ours })
        assert.deepStrictEqual(yield* refusals, [])
      }))

    test("a tier that errs is tried again later, and the refusal is journaled once (C4)", (tier) =>
      Effect.gen(function* () {
        tier.steps.mood = failing(new Unexpected({ tier: "shared", detail: "a status of 500", status: 500 }))
        const entry = yield* makeEntry({ key, value: 1 })
        yield* put(entry)
        yield* until(
          "a second attempt",
          Effect.sync(() => tier.steps.calls.length >= 2)
        )
        assert.deepInclude(yield* status, { published: 0, pending: 1, dead: 0 })
        const [refused, ...others] = yield* refusals
        assert.deepStrictEqual(others, [])
        assert.deepInclude(refused, { key, recording: entry.metadata.recording, tier: "shared" })
        assert.deepInclude(refused?.refusal, { stage: "entry", kind: "Unexpected", status: 500, outlook: "later" })
        assert.deepStrictEqual((yield* status).refusals[0]?.refusal, refused?.refusal)
        tier.steps.mood = well
        yield* until("published", published(1), { stepMs: 1000, limitMs: 600_000 })
        assert.deepStrictEqual((yield* status).refusals, [])
        assert.lengthOf(yield* refusals, 1)
      }))

    test(`a tier that is away for ${hours} h costs no attempts`, (tier) =>
      Effect.gen(function* () {
        const away = failing(new Unreachable({ tier: "shared", detail: "refused", status: 502 }))
        tier.steps.mood = away
        tier.blobs.mood = away
        for (let i = 0; i < 4; i++) {
          yield* put(yield* makeEntry({ key: keyOf(`${i}`), value: i }))
        }
        for (let hour = 0; hour < hours; hour++) {
          yield* TestClock.adjust("1 hour")
        }
        assert.deepInclude(yield* status, { published: 0, pending: 4, failing: 0, dead: 0 })
        yield* until(
          "a refusal",
          Effect.map(refusals, (told) => told.length > 0),
          { stepMs: 1000, limitMs: 600_000 }
        )
        const told = (yield* refusals).map(({ recording, refusal }) => `${recording} ${refusal.kind}`)
        assert.strictEqual(new Set(told).size, told.length)
        assert.notInclude(told.join(), "BreakerOpen")
        tier.steps.mood = well
        tier.blobs.mood = well
        yield* until("published", published(4), { stepMs: 1000, limitMs: 600_000 })
        assert.strictEqual(tier.steps.entries.size, 4)
        assert.deepStrictEqual((yield* status).refusals, [])
      }))

    test("what can never be published is a dead letter, until it is revived", (tier) =>
      Effect.gen(function* () {
        tier.steps.mood = failing(new TooLarge({ tier: "shared", size: 100, limit: 10 }))
        yield* put(yield* makeEntry({ key, value: 1 }))
        yield* until(
          "dead",
          Effect.map(status, ({ dead }) => dead === 1)
        )
        assert.deepInclude((yield* refusals)[0]?.refusal, { kind: "TooLarge", size: 100, limit: 10 })
        const calls = tier.steps.calls.length
        yield* TestClock.adjust("1 hour")
        assert.strictEqual(tier.steps.calls.length, calls)
        tier.steps.mood = well
        assert.strictEqual(yield* (yield* Publication).revive, 1)
        yield* until("published", published(1))
        assert.deepInclude(yield* status, { dead: 0 })
      }))

    test("a tier that forbids is left alone, and what it forbade is found in the status (C7)", (tier) =>
      Effect.gen(function* () {
        tier.steps.mood = failing(new Forbidden({ tier: "shared", status: 403 }))
        for (let i = 0; i < 30; i++) {
          yield* put(yield* makeEntry({ key: keyOf(`${i}`), value: i }))
        }
        yield* until(
          "dead",
          Effect.map(status, ({ dead }) => dead > 0)
        )
        yield* TestClock.adjust("1 second")
        assert.isBelow(tier.steps.calls.length, 10)
        assert.deepInclude((yield* status).refusals[0]?.refusal, { kind: "Forbidden", status: 403 })
      }))

    test("publishNow publishes what it is asked for and tells what became of it", (tier) =>
      Effect.gen(function* () {
        const publication = yield* Publication
        tier.steps.mood = failing(new TooLarge({ tier: "shared", size: 100 }))
        const entry = yield* makeEntry({ key, value: 1 })
        yield* put(entry)
        yield* until(
          "dead",
          Effect.map(status, ({ dead }) => dead === 1)
        )
        const refused = yield* publication.publishNow([key, keyOf("absent")])
        assert.deepStrictEqual([refused.published, refused.absent], [[], [keyOf("absent")]])
        assert.deepInclude(refused.refused[0], { key, recording: entry.metadata.recording })
        tier.steps.mood = well
        assert.deepStrictEqual(yield* publication.publishNow(), { published: [key], refused: [], absent: [] })
        assert.isTrue(tier.steps.entries.has(key))
        yield* until("acknowledged", published(1))
        assert.deepInclude(yield* status, { dead: 0, refusals: [] })
      }))

    test("what was evicted and recorded anew is published anew", (tier) =>
      Effect.gen(function* () {
        const cache = yield* StepCache
        yield* put(yield* makeEntry({ key, value: 1 }))
        yield* until("published", published(1))
        assert.isTrue(yield* cache.evict(key))
        assert.isTrue(tier.steps.entries.has(key), "eviction is local")
        tier.steps.entries.clear()
        const again = yield* makeEntry({ key, value: 2 })
        yield* put(again)
        yield* until(
          "published again",
          Effect.sync(() => tier.steps.entries.get(key)?.digest === again.digest)
        )
      }))

    test("sends only those blobs that the tier lacks (C11)", (tier) =>
      Effect.gen(function* () {
        const there = yield* storeArtifact("there", "there")
        const lacking = yield* storeArtifact("lacking", "lacking")
        tier.blobs.blobs.set(there.digest, new TextEncoder().encode("there"))
        yield* put(yield* makeEntry({ key, value: 1, artifacts: [lacking, there] }))
        yield* until("published", published(1))
        assert.strictEqual(tier.blobs.calls.filter((call) => call === "put").length, 1)
        assert.isTrue(tier.blobs.blobs.has(lacking.digest))
      }))

    test("drain ends with what is published, and does not wait for a tier that is away", (tier) =>
      Effect.gen(function* () {
        yield* put(yield* makeEntry({ key, value: 1 }))
        assert.strictEqual(yield* drained, 0)
        assert.isTrue(tier.steps.entries.has(key))
        tier.steps.mood = failing(new Unreachable({ tier: "shared", detail: "refused" }))
        yield* put(yield* makeEntry({ key: keyOf("b"), value: 1 }))
        assert.strictEqual(yield* drained, 1)
      }))

    it.effect("without a shared tier nothing is enqueued", () =>
      Effect.gen(function* () {
        yield* put(yield* makeEntry({ key, value: 1 }))
        assert.deepStrictEqual(yield* (yield* DirtyQueue.DirtyQueue).registrations(), [])
        assert.deepInclude(yield* status, { tier: undefined, published: 0, pending: 0 })
        assert.strictEqual(yield* (yield* Publication).drain(), 0)
      }).pipe(Effect.provide(layer(undefined)))
    )
  })
}
