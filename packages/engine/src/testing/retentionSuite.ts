/**
 * What retention promises: a run goes with all there is of it, in one write, and neither too early nor while another one
 * needs it.
 *
 * @since 0.1.0
 */
import { assert, describe, it } from "@effect/vitest"
import { sha256 } from "@strata/durable/Digest"
import { write } from "@strata/durable/DurableWriter"
import { Compaction } from "@strata/journal/Compaction"
import { Journal } from "@strata/journal/Journal"
import { Rewind } from "@strata/journal/Rewind"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as DeferredClockFold from "../DeferredClockFold.ts"
import { DeferredStore } from "../DeferredStore.ts"
import * as Strays from "../internal/strays.ts"
import * as Retention from "../Retention.ts"
import * as RunEvents from "../RunEvents.ts"
import * as RunStream from "../RunStream.ts"
import { RunStore } from "../RunStore.ts"
import type { Services, Tier } from "./harness.ts"
import * as Harness from "./harness.ts"

/**
 * Runs the contract on one tier. Each test builds its layer anew.
 *
 * @since 0.1.0
 * @category suites
 */
export const retentionSuite = <E>(name: string, tier: Tier<E>): void => {
  const test = (title: string, body: () => Effect.Effect<void, unknown, Services | Scope.Scope>) =>
    it.effect(title, () => Effect.provide(body(), Layer.provideMerge(Harness.services(), tier.layer)))

  describe(`Retention (${name})`, () => {
    test("a settled run goes by age, with all there is of it, and what remains can be rebuilt", () =>
      Effect.gen(function* () {
        yield* Harness.start("old", "open")
        for (const executionId of ["old", "open"]) {
          yield* Harness.schedule(executionId, "c", 5)
          yield* Harness.complete(executionId, "x", 1)
          yield* Harness.complete(executionId, "y", 2)
        }
        yield* TestClock.adjust(5)
        yield* Harness.fire()
        // An archive, an identity and a floor.
        yield* Harness.consume("old", "x")
        yield* Harness.rewind("old", 3)
        yield* Compaction.use((compaction) => compaction.compact({ stream: RunStream.of("old"), seq: 2 }))
        yield* settle("old")
        yield* TestClock.adjust("1 hour")
        yield* settleNew("young")
        yield* TestClock.adjust("1 hour")

        const kept = yield* Harness.rows("open")
        const swept = yield* Retention.sweep({ maxAge: "90 minutes" })
        assert.deepStrictEqual(swept, { ...nothing, runs: 1, entries: 3, clocks: 1, deferreds: 2 })
        assert.deepStrictEqual(yield* Harness.rows("old"), [{ clocks: [], deferreds: [] }])
        assert.deepStrictEqual(yield* known("old", "open", "young"), ["open", "young"])
        const journal = yield* Journal
        assert.deepStrictEqual(
          [yield* journal.head(RunStream.of("old")), yield* journal.floor(RunStream.of("old"))],
          [0, 0]
        )
        assert.deepStrictEqual(yield* Rewind.use((rewind) => rewind.archived({ stream: RunStream.of("old") })), [])
        assert.deepStrictEqual(yield* Harness.rows("open"), kept)
        yield* Harness.wipe("open")
        assert.deepInclude(yield* DeferredClockFold.rebuild(), { runs: 2, unexplained: 0 })
        assert.deepStrictEqual(yield* Harness.rows("open"), kept)
        assert.deepStrictEqual(yield* Retention.sweep({ maxAge: "90 minutes" }), nothing)
      }))

    test("runs go by count, those that settled first, also of many that settled at once", () =>
      Effect.gen(function* () {
        const names = Array.from({ length: 7 }, (_, i) => `r${i}`)
        yield* settleNew(...names.slice(0, 5))
        yield* TestClock.adjust(1)
        yield* settleNew(...names.slice(5))
        yield* Harness.start("open")
        yield* TestClock.adjust("1 minute")
        assert.deepInclude(yield* Retention.sweep({ maxRuns: 4, batchRuns: 2 }), { runs: 3 })
        assert.deepStrictEqual(yield* known(...names, "open"), [...names.slice(3), "open"])
        assert.deepInclude(yield* Retention.sweep({ maxRuns: 4 }), nothing)
        assert.deepInclude(yield* Retention.sweep({ maxRuns: 0 }), { runs: 4 })
        assert.deepStrictEqual(yield* known(...names, "open"), ["open"])
      }))

    test("a run stays for its grace, whatever its age and number", () =>
      Effect.gen(function* () {
        yield* settleNew("r")
        yield* TestClock.adjust(59_999)
        assert.deepStrictEqual(yield* Retention.sweep({ maxRuns: 0, maxAge: 0 }), nothing)
        yield* TestClock.adjust(1)
        assert.deepInclude(yield* Retention.sweep({ maxRuns: 0, maxAge: 0 }), { runs: 1 })
      }))

    test("a run stays while one that has waited for it has not settled", () =>
      Effect.gen(function* () {
        const store = yield* RunStore
        yield* Harness.start("parent", "other", "late")
        yield* Harness.startChildren("parent", "child")
        yield* Harness.start("shared", "free")
        yield* write(store.await("shared", "other"))
        yield* settle("child", "shared", "free")
        // It asked when the run was completed.
        assert.isFalse(yield* write(store.await("shared", "late")))
        yield* TestClock.adjust("1 hour")
        const all = ["parent", "other", "late", "child", "shared", "free"]
        const sweep = Retention.sweep({ maxRuns: 0, batchRuns: 1 })
        assert.deepInclude(yield* sweep, { runs: 1, needed: 2 })
        assert.deepStrictEqual(yield* known(...all), ["parent", "other", "late", "child", "shared"])
        // Nor does the store itself remove it.
        assert.strictEqual(yield* write(store.remove(["child", "shared", "parent"])), 0)
        yield* settle("other", "parent")
        assert.deepInclude(yield* sweep, { runs: 1, needed: 1 })
        yield* settle("late")
        yield* TestClock.adjust("1 hour")
        assert.deepInclude(yield* sweep, { runs: 4, needed: 0 })
        assert.deepStrictEqual(yield* known(...all), [])
      }))

    test("completions of runs that there are not go by age", () =>
      Effect.gen(function* () {
        const { head } = yield* Journal
        yield* Harness.start("open")
        yield* Harness.complete("open", "x", 1)
        yield* Harness.complete("early", "x", 1)
        yield* Harness.complete("early", "y", 1)
        // One that was started and has lost its row is no stray.
        yield* Harness.complete("damaged", "x", 1)
        yield* write(
          Journal.use((journal) =>
            journal.append(RunStream.of("damaged"), [
              RunEvents.Started.make({ workflow: "test", digest: sha256("{}") })
            ])
          )
        )
        yield* TestClock.adjust("1 hour")
        yield* Harness.complete("late", "x", 1)
        const expected = { ...nothing, strays: 1, entries: 2, deferreds: 2 }
        for (const dryRun of [true, false]) {
          assert.deepStrictEqual(yield* Retention.sweep({ maxAge: "30 minutes", dryRun }), expected)
        }
        assert.deepStrictEqual(yield* Harness.rows("early"), [{ clocks: [], deferreds: [] }])
        assert.strictEqual(yield* head(RunStream.of("early")), 0)
        for (const [executionId, seq] of [
          ["open", 1],
          ["damaged", 2],
          ["late", 1]
        ] as const) {
          assert.strictEqual(yield* head(RunStream.of(executionId)), seq)
          assert.strictEqual((yield* Harness.rows(executionId))[0]?.deferreds.length, 1)
        }
        // It was started after it had been looked at.
        assert.isUndefined(yield* Strays.remove(["late", "open"]))
        assert.strictEqual(yield* head(RunStream.of("late")), 1)
      }))

    test("a dry run counts exactly what would go, and changes nothing", () =>
      Effect.gen(function* () {
        yield* settleNew("a", "b", "c")
        yield* Harness.complete("a", "x", 1)
        yield* Harness.complete("b", "x", 1)
        yield* Harness.schedule("b", "c", 5)
        yield* TestClock.adjust("1 hour")
        const options = { maxRuns: 1, batchRuns: 1 }
        const counted = yield* Retention.sweep({ ...options, dryRun: true })
        assert.deepStrictEqual(counted, { ...nothing, runs: 2, entries: 9, clocks: 1, deferreds: 2 })
        assert.deepStrictEqual(yield* known("a", "b", "c"), ["a", "b", "c"])
        assert.strictEqual((yield* Harness.story("b")).length, 5)
        assert.deepStrictEqual(yield* Retention.sweep(options), counted)
        assert.deepStrictEqual(yield* known("a", "b", "c"), ["c"])
      }))

    test("a write has a bounded number of entries", () =>
      Effect.gen(function* () {
        yield* settleNew("a", "b", "c", "d")
        for (let n = 0; n < 5; n++) yield* Harness.complete("b", `${n}`, n)
        yield* TestClock.adjust("1 hour")
        const batches: Array<ReadonlyArray<string>> = []
        yield* Retention.sweep({
          maxRuns: 0,
          batchEntries: 6,
          archive: (runs) => Effect.sync(() => void batches.push(runs.map(({ run }) => run.executionId)))
        })
        assert.deepStrictEqual(batches, [["a"], ["b"], ["c", "d"]])
      }))

    test("archives a run before it goes, with all there is of it, and keeps it when that fails", () =>
      Effect.gen(function* () {
        const store = yield* RunStore
        yield* settleNew("a", "b")
        yield* Harness.complete("a", "x", { by: "a" })
        yield* Harness.schedule("a", "c", 5)
        yield* TestClock.adjust("1 hour")
        const failing = Retention.sweep({ maxRuns: 0, batchRuns: 1, archive: () => Effect.fail("full") })
        assert.strictEqual(yield* Effect.flip(failing), "full")
        assert.deepStrictEqual(yield* known("a", "b"), ["a", "b"])

        const archived: Array<unknown> = []
        let late = true
        const swept = yield* Retention.sweep({
          maxRuns: 0,
          archive: (runs) =>
            Effect.forEach(
              runs,
              Effect.fnUntraced(function* ({ clocks, deferreds, entries, outcomes, run }) {
                const types = (yield* Stream.runCollect(entries)).map(({ type }) => type)
                archived.push([run.executionId, run.result, outcomes.length, clocks.length, deferreds.length, types])
                // It changes while it is archived, and is archived again.
                if (late) yield* Harness.complete("a", "late", 1)
                late = false
              }),
              { discard: true }
            )
        })
        assert.deepInclude(swept, { runs: 2, deferreds: 2 })
        const own = ["run-started", "activity-completed", "run-completed"]
        const a = [...own, "deferred-completed", "clock-scheduled"]
        assert.deepStrictEqual(archived, [
          ["a", `{"_tag":"Success"}`, 1, 1, 1, a],
          ["b", `{"_tag":"Success"}`, 1, 0, 0, own],
          ["a", `{"_tag":"Success"}`, 1, 1, 2, [...a, "deferred-completed"]],
          ["b", `{"_tag":"Success"}`, 1, 0, 0, own]
        ])
        assert.deepStrictEqual(yield* store.find(["a", "b"]), [])
      }))

    test("when a part of a run cannot be removed, nothing of it is", () =>
      Effect.gen(function* () {
        yield* settleNew("a")
        yield* Harness.schedule("a", "c", 5)
        yield* Harness.complete("a", "x", 1)
        yield* TestClock.adjust("1 hour")
        const deferreds = yield* DeferredStore
        const before = [yield* Harness.rows("a"), yield* Harness.story("a")]
        const torn = DeferredStore.of({ ...deferreds, removeOf: () => Effect.die("torn") })
        const swept = yield* Effect.exit(Effect.provideService(Retention.sweep({ maxRuns: 0 }), DeferredStore, torn))
        assert.strictEqual(swept._tag, "Failure")
        assert.deepStrictEqual([yield* Harness.rows("a"), yield* Harness.story("a")], before)
        assert.deepStrictEqual(yield* known("a"), ["a"])
      }))

    test("sweeps in the background, and goes on after a failure", () =>
      Effect.gen(function* () {
        yield* settleNew("a")
        yield* TestClock.adjust("1 hour")
        let attempts = 0
        const layer = Retention.layer({
          maxRuns: 0,
          maxAge: "1 minute",
          interval: "10 seconds",
          archive: () => Effect.suspend(() => (attempts++ === 0 ? Effect.fail("full") : Effect.void))
        })
        yield* Layer.build(layer)
        yield* Harness.eventually(Effect.sync(() => attempts === 1))
        assert.deepStrictEqual(yield* known("a"), ["a"])
        const afterAWhile = <A, E, R>(look: Effect.Effect<A, E, R>) =>
          Effect.andThen(TestClock.adjust("10 seconds"), look)
        yield* Harness.eventually(afterAWhile(Effect.map(known("a"), ({ length }) => length === 0)))
        yield* Harness.complete("stray", "x", 1)
        yield* Harness.eventually(
          afterAWhile(Effect.map(Harness.rows("stray"), ([rows]) => rows!.deferreds.length === 0))
        )
      }))
  })
}

const nothing: Retention.Swept = { runs: 0, strays: 0, entries: 0, clocks: 0, deferreds: 0, needed: 0 }

const known = (...executionIds: ReadonlyArray<string>) =>
  Effect.map(
    RunStore.use((store) => store.find(executionIds)),
    (runs) => executionIds.filter((executionId) => runs.some((run) => run.executionId === executionId))
  )

/** Ends runs that are there, without entries of their own. */
const settle = (...executionIds: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const store = yield* RunStore
    const now = yield* Clock.currentTimeMillis
    yield* write(
      Effect.gen(function* () {
        const results = (yield* store.find(executionIds)).map(({ fence, id }) => ({
          id,
          fence,
          result: `{"_tag":"Success"}`
        }))
        yield* store.complete(now, results)
      })
    )
  })

/** Runs that have done one activity and are completed, with the entries of it. */
const settleNew = (...executionIds: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const store = yield* RunStore
    const journal = yield* Journal
    const now = yield* Clock.currentTimeMillis
    yield* Harness.start(...executionIds)
    const digest = sha256("{}")
    yield* write(
      Effect.gen(function* () {
        const runs = yield* store.find(executionIds)
        yield* store.record(
          now,
          runs.map(({ fence, id }) => ({ id, fence, name: "a", attempt: 1, exit: "{}", digest }))
        )
        for (const executionId of executionIds) {
          yield* journal.append(RunStream.of(executionId), [
            RunEvents.Started.make({ workflow: "test", digest }),
            RunEvents.ActivityCompleted.make({ name: "a", attempt: 1, outcome: "success", digest }),
            RunEvents.Completed.make({ outcome: "success", digest })
          ])
        }
      })
    )
    yield* settle(...executionIds)
  })
