/**
 * Contract 13: following.
 *
 * @since 0.1.0
 */
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import * as Compaction from "../Compaction.ts"
import * as Event from "../Event.ts"
import type { Entry } from "../Journal.ts"
import { Journal } from "../Journal.ts"
import type { JournalStorage } from "../JournalStorage.ts"
import * as Harness from "./harness.ts"

/**
 * @since 0.1.0
 * @category suites
 */
export const following = <E>(tier: Harness.Tier<E>): void => {
  const { Counted, append, count, other, refusal, stream } = Harness
  const layer = (options?: Harness.ServiceOptions) => Harness.services(options).pipe(Layer.provide(tier.layer))
  const amounts = (entries: ReadonlyArray<Entry>) => entries.map(({ payload }) => payload)

  it.effect("13: replays, then follows, each entry once", () =>
    Effect.gen(function* () {
      const journal = yield* Journal
      yield* count(stream, 1, 2, 3)
      const seen = yield* Queue.unbounded<Entry>()
      yield* journal.follow({ stream, after: 1 }).pipe(
        Stream.runForEach((entry) => Queue.offer(seen, entry)),
        Effect.forkChild
      )
      const next = (n: number) => Effect.map(Queue.takeN(seen, n), amounts)
      assert.deepStrictEqual(yield* next(2), [{ amount: 2 }, { amount: 3 }])
      yield* count(other, 8)
      yield* count(stream, 4)
      yield* count(stream, 5, 6)
      assert.deepStrictEqual(yield* next(3), [{ amount: 4 }, { amount: 5 }, { amount: 6 }])
      assert.strictEqual(yield* Queue.size(seen), 0)
    }).pipe(Effect.provide(layer({ pageSize: 2 })))
  )

  it.effect("13: follows all streams, and types alone", () =>
    Effect.gen(function* () {
      const journal = yield* Journal
      yield* count(stream, 1)
      const fiber = yield* journal
        .followAll({ types: ["note"] })
        .pipe(Stream.take(3), Stream.runCollect, Effect.forkChild)
      for (const name of [stream, other, stream]) {
        yield* append(name, Counted.make({ amount: 1 }), Event.json("note", name))
        yield* Effect.yieldNow
      }
      assert.deepStrictEqual(amounts(yield* Fiber.join(fiber)), [stream, other, stream])
    }).pipe(Effect.provide(layer()))
  )

  it.effect("13: reads no more of the backlog than is asked for", () => {
    let reads = 0
    const counted = (storage: JournalStorage["Service"]): JournalStorage["Service"] => ({
      ...storage,
      read: (options) => Effect.tap(storage.read(options), () => Effect.sync(() => reads++))
    })
    return Effect.gen(function* () {
      const journal = yield* Journal
      yield* count(stream, ...Array.from({ length: 500 }, (_, i) => i))
      const some = yield* journal.follow({ stream }).pipe(Stream.take(15), Stream.runCollect)
      assert.strictEqual(some.length, 15)
      assert.strictEqual(reads, 2)
    }).pipe(Effect.provide(layer({ pageSize: 10, intercept: counted })))
  })

  it.effect("13: fails when compaction overtakes it, with the seq to resume at", () =>
    Effect.gen(function* () {
      const journal = yield* Journal
      yield* count(stream, 1, 2, 3, 4)
      yield* Compaction.Compaction.use((compaction) => compaction.compact({ stream, seq: 3 }))
      const late = journal.follow({ stream, after: 1 }).pipe(Stream.take(1), Stream.runCollect)
      assert.deepInclude(yield* refusal(late), { _tag: "BelowFloor", stream, resumeAt: 3 })
      const resumed = yield* journal.follow({ stream, after: 2 }).pipe(Stream.take(2), Stream.runCollect)
      assert.deepStrictEqual(amounts(resumed), [{ amount: 3 }, { amount: 4 }])

      const global = journal.followAll().pipe(Stream.take(1), Stream.runCollect)
      const reason = yield* refusal(global)
      assert.strictEqual(reason._tag, "BelowGlobalFloor")
      const rest = yield* journal.followAll({ compacted: "skip" }).pipe(Stream.take(2), Stream.runCollect)
      assert.deepStrictEqual(amounts(rest), [{ amount: 3 }, { amount: 4 }])
    }).pipe(Effect.provide(layer()))
  )

  if (tier.twoConnections !== undefined) {
    const twoConnections = tier.twoConnections

    it.live("13: loses and repeats nothing while two connections append", () =>
      Effect.gen(function* () {
        const options = { pageSize: 7, pollInterval: "5 millis" } as const
        const contexts = yield* Effect.forEach(yield* twoConnections(), (context) =>
          Layer.build(Harness.services(options).pipe(Layer.provide(Layer.succeedContext(context))))
        )
        const writes = 60
        const followers = yield* Effect.forEach(contexts, (context) =>
          Journal.use((journal) =>
            journal.followAll().pipe(
              Stream.take(2 * writes * 2),
              Stream.map(({ ordinal, payload }) => [ordinal, JSON.stringify(payload)] as const),
              Stream.runCollect
            )
          ).pipe(Effect.provideContext(context), Effect.timeout("20 seconds"), Effect.forkChild)
        )
        yield* Effect.forEach(
          contexts,
          (context, i) =>
            Effect.forEach(
              Array.from({ length: writes }, (_, n) => n),
              (n) =>
                append(stream, Event.json("note", [i, n, 0]), Event.json("note", [i, n, 1])).pipe(
                  Effect.andThen(Effect.yieldNow)
                ),
              { discard: true }
            ).pipe(Effect.provideContext(context)),
          { concurrency: "unbounded", discard: true }
        )
        const [one, two] = yield* Effect.forEach(followers, (fiber) => Fiber.join(fiber))
        assert.deepStrictEqual(one, two)
        const ordinals = one!.map(([ordinal]) => ordinal)
        assert.deepStrictEqual(
          ordinals,
          ordinals.toSorted((a, b) => a - b)
        )
        assert.strictEqual(new Set(one!.map(([, payload]) => payload)).size, 2 * writes * 2)
      })
    )
  }
}
