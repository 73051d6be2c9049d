/**
 * Contracts 52 to 54 of `ClockStore`: a clock keeps its first schedule, fires once, in one transaction, and never once it
 * was completed early.
 *
 * @since 0.1.0
 */
import { assert, describe, it } from "@effect/vitest"
import { write } from "@strata/durable/DurableWriter"
import { Journal } from "@strata/journal/Journal"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as TestClock from "effect/testing/TestClock"
import * as ClockStore from "../ClockStore.ts"
import { DeferredStore } from "../DeferredStore.ts"
import * as RunStream from "../RunStream.ts"
import { StateError } from "../StateError.ts"
import type { Services, Tier } from "./harness.ts"
import * as Harness from "./harness.ts"

/**
 * Runs the contracts on one tier. Each test builds its layer anew.
 *
 * @since 0.1.0
 * @category suites
 */
export const clockStoreSuite = <E>(name: string, tier: Tier<E>): void => {
  const test = (title: string, body: () => Effect.Effect<void, unknown, Services>) =>
    it.effect(title, () => Effect.provide(body(), Layer.provideMerge(Harness.services(), tier.layer)))
  const cancel = (executionId: string, ...names: ReadonlyArray<string>) =>
    Effect.map(
      write(ClockStore.ClockStore.use((store) => store.cancel(names.map((name) => ({ executionId, name }))))),
      (clocks) => clocks.map(({ name }) => name)
    )
  const settle = (...executionIds: ReadonlyArray<string>) =>
    Effect.map(write(ClockStore.ClockStore.use((store) => store.settle(executionIds))), (clocks) =>
      clocks.map(({ name }) => name).toSorted()
    )
  const get = (executionId: string, name: string) =>
    Effect.map(
      ClockStore.ClockStore.use((store) => store.get({ executionId, name })),
      Option.getOrUndefined
    )
  const exitOf = (executionId: string, name: string) =>
    Effect.map(
      DeferredStore.use((store) => store.get({ executionId, name: Harness.deferredOf(name) })),
      Option.getOrUndefined
    )
  const next = ClockStore.ClockStore.use((store) => Effect.map(store.next, Option.getOrUndefined))

  describe(`ClockStore (${name})`, () => {
    test("E9: the first schedule wins, whatever has become of the clock", () =>
      Effect.gen(function* () {
        yield* TestClock.adjust(1000)
        const kept = {
          executionId: "r",
          name: "c",
          deferred: "clock/c",
          deadline: 1500,
          scheduledAt: 1000,
          completedAt: undefined,
          outcome: undefined
        }
        assert.deepStrictEqual(yield* Harness.schedule("r", "c", 500), { ...kept, first: true })
        yield* TestClock.adjust(100)
        assert.deepStrictEqual(yield* Harness.schedule("r", "c", 1), { ...kept, first: false })
        yield* TestClock.adjust(400)
        assert.deepStrictEqual(yield* Harness.fire(), ["c"])
        const fired = { ...kept, completedAt: 1500, outcome: "fired", first: false } as const
        assert.deepStrictEqual(yield* Harness.schedule("r", "c", 9999), fired)
        assert.deepStrictEqual(yield* Harness.fire(), [])
        assert.deepStrictEqual(yield* Harness.story("r"), [
          "clock-scheduled c",
          "deferred-completed clock/c",
          "clock-completed c"
        ])
      }))

    test("E5: a fraction of a millisecond is rounded up", () =>
      Effect.gen(function* () {
        assert.strictEqual((yield* Harness.schedule("r", "c", 10_000.5)).deadline, 10_001)
        yield* TestClock.adjust(10_000)
        assert.deepStrictEqual(yield* Harness.fire(), [])
        assert.deepStrictEqual(yield* next, { deadline: 10_001, left: 1 })
        yield* TestClock.adjust(1)
        assert.deepStrictEqual(yield* Harness.fire(), ["c"])
      }))

    test("takes any duration: none, for ever", () =>
      Effect.gen(function* () {
        const clocks = yield* write(
          ClockStore.ClockStore.use((store) =>
            store.schedule(
              ([Duration.zero, Duration.infinity, "1 day", Duration.nanos(1n)] as const).map((duration, i) => ({
                executionId: "r",
                name: `c${i}`,
                deferred: "d",
                duration
              }))
            )
          )
        )
        assert.deepStrictEqual(
          clocks.map(({ deadline }) => deadline),
          [0, Number.MAX_SAFE_INTEGER, 86_400_000, 1]
        )
        assert.deepStrictEqual(yield* Harness.fire(), ["c0"])
        assert.deepStrictEqual((yield* get("r", "c1"))?.deadline, Number.MAX_SAFE_INTEGER)
      }))

    test("journals clocks with all that is in their rows", () =>
      Effect.gen(function* () {
        yield* TestClock.adjust(1)
        yield* Harness.schedule("r", "c", 9)
        yield* Harness.schedule("r", "d", 9)
        yield* TestClock.adjust(1)
        yield* cancel("r", "d")
        const entries = yield* Journal.use((journal) => journal.read({ stream: RunStream.of("r") }))
        assert.deepStrictEqual(
          entries.map(({ payload, type }) => [type, payload]),
          [
            ["clock-scheduled", { name: "c", deferred: "clock/c", deadline: 10, at: 1 }],
            ["clock-scheduled", { name: "d", deferred: "clock/d", deadline: 10, at: 1 }],
            ["clock-completed", { name: "d", outcome: "cancelled", at: 2 }]
          ]
        )
      }))

    test("fires in one transaction: a write that fails leaves clock, deferred and journal as they were", () =>
      Effect.gen(function* () {
        yield* Harness.schedule("r", "c", 5)
        yield* TestClock.adjust(5)
        const before = yield* Harness.rows("r")
        const failing = Effect.andThen(Harness.fire(), Effect.fail("no"))
        assert.deepStrictEqual(yield* Effect.exit(write(failing)), Exit.fail("no"))
        assert.deepStrictEqual(yield* Harness.rows("r"), before)
        assert.deepStrictEqual(yield* Harness.story("r"), ["clock-scheduled c"])

        // The last of the four fails.
        const refusing = Layer.effect(
          Journal,
          Journal.useSync((journal) => ({
            ...journal,
            appendAll: (appends) =>
              appends.some(({ events }) => events.some(({ type }) => type === "clock-completed"))
                ? Effect.die("full")
                : journal.appendAll(appends)
          }))
        )
        const fired = yield* Effect.exit(
          Effect.provide(Harness.fire(), Layer.provide(Layer.fresh(ClockStore.layer), refusing))
        )
        assert.isTrue(Exit.hasDies(fired))
        assert.deepStrictEqual(yield* Harness.rows("r"), before)
        assert.deepStrictEqual(yield* Harness.fire(), ["c"])
        assert.deepInclude(yield* get("r", "c"), { completedAt: 5, outcome: "fired" })
        assert.deepStrictEqual((yield* exitOf("r", "c"))?.exit, { _tag: "Success", value: null })
      }))

    test("a clock that was completed early never fires, and its deferred stays open", () =>
      Effect.gen(function* () {
        for (const clock of ["a", "b", "c"]) yield* Harness.schedule("r", clock, 5)
        yield* Harness.schedule("s", "a", 5)
        yield* Harness.schedule("t", "a", 5)
        assert.deepStrictEqual(yield* cancel("r", "a", "none", "a"), ["a"])
        assert.deepStrictEqual(yield* settle("r", "s", "none", "r"), ["a", "b", "c"])
        assert.deepStrictEqual(yield* cancel("r", "b"), [])
        yield* TestClock.adjust(10)
        assert.deepStrictEqual(yield* write(ClockStore.ClockStore.use((store) => store.fire())), {
          fired: [(yield* get("t", "a"))!],
          more: false
        })
        assert.deepInclude(yield* get("r", "a"), { completedAt: 0, outcome: "cancelled" })
        assert.deepInclude(yield* get("s", "a"), { completedAt: 0, outcome: "settled" })
        assert.isUndefined(yield* exitOf("r", "a"))
        assert.isUndefined(yield* exitOf("s", "a"))
        assert.deepStrictEqual(yield* Harness.story("s"), ["clock-scheduled a", "clock-completed a"])
      }))

    test("a deferred that was completed before keeps its exit when the clock fires", () =>
      Effect.gen(function* () {
        yield* Harness.schedule("r", "c", 5)
        yield* Harness.complete("r", "clock/c", "early")
        yield* TestClock.adjust(5)
        assert.deepStrictEqual(yield* Harness.fire(), ["c"])
        assert.deepStrictEqual((yield* exitOf("r", "c"))?.exit, "early")
        assert.deepStrictEqual(yield* Harness.story("r"), [
          "clock-scheduled c",
          "deferred-completed clock/c",
          "clock-completed c"
        ])
      }))

    test("fires the oldest deadlines first, some at a time, and tells of more", () =>
      Effect.gen(function* () {
        for (const [clock, at] of [
          ["c", 3],
          ["a", 1],
          ["d", 4],
          ["b", 2],
          ["e", 50]
        ] as const) {
          yield* Harness.schedule("r", clock, at)
        }
        assert.deepStrictEqual(yield* next, { deadline: 1, left: 1 })
        yield* TestClock.adjust(10)
        assert.deepStrictEqual(yield* next, { deadline: 1, left: 0 })
        const two = ClockStore.ClockStore.use((store) => store.fire({ limit: 3 }))
        const first = yield* write(two)
        assert.deepStrictEqual([first.fired.map(({ name }) => name), first.more], [["a", "b", "c"], true])
        const last = yield* write(two)
        assert.deepStrictEqual([last.fired.map(({ name }) => name), last.more], [["d"], false])
        assert.deepStrictEqual(yield* next, { deadline: 50, left: 40 })
        yield* cancel("r", "e")
        assert.isUndefined(yield* next)
      }))

    test("refuses names that not every store keeps", () =>
      Effect.gen(function* () {
        const refused = Effect.map(
          Effect.flip(Harness.schedule("r", "a\0", 1)),
          (error) => error instanceof StateError && error.reason._tag === "InvalidName"
        )
        assert.isTrue(yield* refused)
        assert.deepStrictEqual(yield* ClockStore.ClockStore.use((store) => store.ofRun("r")), [])
      }))

    test("notifies after the commit of a schedule, and of no other", () =>
      Effect.gen(function* () {
        const { changes } = yield* ClockStore.ClockStore
        yield* Harness.schedule("r", "c", 1)
        assert.strictEqual(yield* changes.count, 1)
        yield* Harness.schedule("r", "c", 1)
        yield* Effect.exit(write(Effect.andThen(Harness.schedule("r", "d", 1), Effect.fail("no"))))
        assert.strictEqual(yield* changes.count, 1)
      }))

    if (tier.twoConnections !== undefined) {
      const twoConnections = tier.twoConnections

      it.live("E8: of a clock that fires while its cancellation commits, exactly one wins", () =>
        Effect.gen(function* () {
          const [one, two] = yield* twoConnections()
          const first = yield* Layer.build(Layer.provide(Harness.services(), Layer.succeedContext(one)))
          const second = yield* Layer.build(Layer.provide(Harness.services(), Layer.succeedContext(two)))
          let fires = 0
          for (let round = 0; round < 40; round++) {
            const clock = `c${round}`
            yield* Effect.provideContext(Harness.schedule("r", clock, 0), first)
            const [fired, cancelled] = yield* Effect.all(
              [Effect.provideContext(Harness.fire(), first), Effect.provideContext(cancel("r", clock), second)],
              { concurrency: "unbounded" }
            )
            assert.strictEqual(fired.length + cancelled.length, 1, clock)
            fires += fired.length
            const found = yield* Effect.provideContext(get("r", clock), second)
            assert.strictEqual(found?.outcome, fired.length === 1 ? "fired" : "cancelled")
            const completed = yield* Effect.provideContext(exitOf("r", clock), second)
            assert.strictEqual(completed !== undefined, fired.length === 1)
          }
          const story = yield* Effect.provideContext(Harness.story("r"), first)
          assert.strictEqual(story.filter((entry) => entry.startsWith("clock-completed")).length, 40)
          assert.strictEqual(story.filter((entry) => entry.startsWith("deferred-completed")).length, fires)
        })
      )

      it.live("two connections that fire the same clocks fire each once", () =>
        Effect.gen(function* () {
          const connections = yield* Effect.flatMap(twoConnections(), (both) =>
            Effect.forEach(both, (connection) =>
              Layer.build(Layer.provide(Harness.services(), Layer.succeedContext(connection)))
            )
          )
          const clocks = Array.from({ length: 60 }, (_, i) => `c${i}`)
          for (const clock of clocks) {
            yield* Effect.provideContext(Harness.schedule(`r${clock.length}`, clock, 0), connections[0]!)
          }
          const fired = yield* Effect.forEach(
            Array.from({ length: 40 }, (_, i) => connections[i % 2]!),
            (connection) => Effect.provideContext(Harness.fire(7), connection),
            { concurrency: "unbounded" }
          )
          assert.deepStrictEqual(fired.flat().toSorted(), clocks.toSorted())
        })
      )
    }
  })
}
