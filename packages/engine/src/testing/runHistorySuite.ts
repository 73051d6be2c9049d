/**
 * What changing the history of a run promises: rows are what the entries that remain say, whoever ran it abandons it, and
 * what is refused has changed nothing.
 *
 * @since 0.1.0
 */
import { assert, describe } from "@effect/vitest"
import { ChangeSignal } from "@strata/dirty-queue/ChangeSignal"
import { write } from "@strata/durable/DurableWriter"
import { Journal } from "@strata/journal/Journal"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import * as Activity from "effect/workflow/Activity"
import * as DurableClock from "effect/workflow/DurableClock"
import * as DurableDeferred from "effect/workflow/DurableDeferred"
import { ClockStorage } from "../ClockStorage.ts"
import * as DeferredClockFold from "../DeferredClockFold.ts"
import * as RunStream from "../RunStream.ts"
import { RunStore } from "../RunStore.ts"
import {
  agrees,
  cancel,
  compact,
  completed,
  counting,
  everything,
  fork,
  note,
  noted,
  outcome,
  passing,
  refusal,
  resume,
  rewind,
  rewindStream,
  seqOf,
  started,
  until,
  waiting
} from "./historyHarness.ts"
import type { WorkflowTier } from "./workflowHarness.ts"
import * as Harness from "./workflowHarness.ts"

/**
 * Runs the contract on one tier.
 *
 * @since 0.1.0
 * @category suites
 */
export const runHistorySuite = <E>(name: string, tier: WorkflowTier<E>): void => {
  const test = Harness.makeTest(tier)

  describe(`RunHistory (${name})`, () => {
    test("a completed run is taken back to an entry, is held, and goes on from there", ({ start }) =>
      Effect.gen(function* () {
        const { counts, Flow, layer } = counting("Back")
        const process = yield* start(layer)
        yield* process.run(
          Effect.gen(function* () {
            const executionId = yield* Flow.executionId({ id: "a" })
            assert.strictEqual(yield* Flow.execute({ id: "a" }), "one 1, two 1")
            const seq = yield* seqOf(executionId, "activity-completed")
            const { archived, run } = yield* rewind({ executionId, seq })
            assert.deepStrictEqual(
              [archived, run.status, run.held, run.result, run.owner],
              [2, "suspended", true, null, null]
            )
            assert.deepStrictEqual(yield* Harness.told(executionId), ["run-started", "activity-completed", "~rewound"])
            yield* agrees(executionId)
            yield* resume(executionId)
            assert.deepStrictEqual(yield* completed(Flow, executionId), Exit.succeed("one 1, two 2"))
            assert.deepStrictEqual(counts, { one: 1, two: 2 })
            yield* agrees(executionId)
            // Once more, and on at once.
            const again = yield* rewind({ executionId, seq, resume: true })
            assert.strictEqual(again.run.status, "running")
            assert.deepStrictEqual(yield* completed(Flow, executionId), Exit.succeed("one 1, two 3"))
            // To its end: there is nothing to take back.
            const head = yield* Journal.use((journal) => journal.head(RunStream.of(executionId)))
            const none = yield* rewind({ executionId, seq: head })
            assert.deepStrictEqual([none.archived, none.run.status], [0, "completed"])
            yield* agrees(executionId)
          })
        )
      }))

    test("what waits for a run that is taken back gets its next result", ({ start }) =>
      Effect.gen(function* () {
        const { Flow, gate, layer } = waiting("Waited")
        const process = yield* start(layer)
        yield* process.run(
          Effect.gen(function* () {
            const executionId = yield* Flow.executionId({ id: "a" })
            const result = yield* Effect.forkChild(Flow.execute({ id: "a" }))
            yield* Harness.suspended(Flow, executionId)
            yield* rewind({ executionId, seq: yield* seqOf(executionId, "run-started"), resume: true })
            yield* until(executionId, "activity-completed")
            yield* Harness.open(gate, Flow, executionId, "b")
            assert.deepStrictEqual(yield* completed(Flow, executionId), Exit.succeed("b"))
            assert.strictEqual(yield* passing(Fiber.join(result)), "b")
          })
        )
      }))

    test("a completion that is taken back can come again, and wakes nothing that is held", ({ start }) =>
      Effect.gen(function* () {
        const { Flow, gate, layer } = waiting("Again")
        const process = yield* start(layer)
        yield* process.run(
          Effect.gen(function* () {
            const executionId = yield* Flow.execute({ id: "a" }, { discard: true })
            yield* Harness.suspended(Flow, executionId)
            yield* Harness.open(gate, Flow, executionId, "first")
            yield* completed(Flow, executionId)
            yield* rewind({ executionId, seq: yield* seqOf(executionId, "activity-completed") })
            yield* agrees(executionId)
            yield* Harness.open(gate, Flow, executionId, "second")
            yield* TestClock.adjust("1 minute")
            yield* Harness.moment
            const [run] = yield* RunStore.use((store) => store.find([executionId]))
            assert.deepStrictEqual([run?.status, run?.held], ["suspended", true])
            yield* resume(executionId)
            assert.deepStrictEqual(yield* completed(Flow, executionId), Exit.succeed("second"))
            yield* agrees(executionId)
          })
        )
      }))

    test("who runs it abandons it without compensations, and has nothing more to say", ({ start }) =>
      Effect.gen(function* () {
        const Flow = Harness.define("Abandoned")
        const events: Array<string> = []
        let release = false
        const process = yield* start(
          Flow.toLayer(() =>
            Effect.gen(function* () {
              yield* Effect.void.pipe(Flow.withCompensation(() => Effect.sync(() => void events.push("undo"))))
              return yield* Activity.make({
                name: "slow",
                success: Schema.String,
                execute: Effect.suspend(() => {
                  const n = events.push("slow")
                  return Effect.as(
                    n === 1 ? Effect.uninterruptible(Harness.eventually("release", () => release)) : Effect.void,
                    `slow ${n}`
                  )
                })
              })
            })
          ),
          { lease: "1 hour" }
        )
        yield* process.run(
          Effect.gen(function* () {
            const store = yield* RunStore
            const executionId = yield* Flow.execute({ id: "a" }, { discard: true })
            yield* Harness.eventually("slow", () => events.length === 1)
            const seq = yield* seqOf(executionId, "run-started")
            yield* noted(executionId)
            const { run } = yield* rewind({ executionId, seq })
            assert.deepStrictEqual([run.status, run.owner], ["suspended", null])
            release = true
            yield* TestClock.adjust("1 minute")
            yield* Harness.moment
            assert.deepStrictEqual(yield* store.outcomes(run.id), [])
            yield* resume(executionId)
            assert.deepStrictEqual(yield* completed(Flow, executionId), Exit.succeed("slow 2"))
            assert.deepStrictEqual(events, ["slow", "slow"])
            yield* agrees(executionId)
          })
        )
      }))

    test("a run of another process that is alive is taken from it only when forced", ({ start }) =>
      Effect.gen(function* () {
        const process = yield* start()
        yield* process.run(
          Effect.gen(function* () {
            const store = yield* RunStore
            const now = yield* Clock.currentTimeMillis
            const owner = yield* write(store.enroll({ host: "afar x", pid: 7, process: "p", leaseUntil: now + 10_000 }))
            const executionId = "x"
            yield* write(
              Effect.gen(function* () {
                yield* store.start(now, [{ executionId, workflow: "w", parent: null, payload: "{}", owner }])
                yield* Journal.use((journal) => journal.append(RunStream.of(executionId), [started, note]))
              })
            )
            const before = yield* store.find([executionId])
            assert.deepInclude(yield* refusal(rewind({ executionId, seq: 1 })), {
              _tag: "OwnedElsewhere",
              owner,
              host: "afar",
              pid: 7
            })
            assert.deepStrictEqual(yield* store.find([executionId]), before)
            const { run } = yield* rewind({ executionId, seq: 1, force: true })
            assert.deepStrictEqual([run.owner, run.fence], [null, before[0]!.fence + 1])
            // What the other still has to say is refused.
            const claimed = { id: run.id, fence: before[0]!.fence }
            assert.deepStrictEqual(yield* write(store.record(now, [{ ...claimed, ...outcome }])), [])

            // One that is dead does not count.
            yield* resume(executionId)
            yield* write(store.claim(now, { owner, workflows: ["w"] }, 1))
            yield* noted(executionId)
            assert.deepInclude(yield* refusal(rewind({ executionId, seq: 1 })), { _tag: "OwnedElsewhere" })
            yield* TestClock.adjust(10_000)
            assert.strictEqual((yield* passing(rewind({ executionId, seq: 1 }))).run.owner, null)
          })
        )
      }))

    test("refuses what a run does not have, and changes nothing", ({ start }) =>
      Effect.gen(function* () {
        const { Flow, layer } = counting("Bounds")
        const process = yield* start(layer)
        yield* process.run(
          Effect.gen(function* () {
            const executionId = yield* Flow.executionId({ id: "a" })
            yield* Flow.execute({ id: "a" })
            const before = yield* everything(executionId)
            const head = before.told.length
            const range = { executionId, first: 1, last: head }
            const unknown = { _tag: "UnknownRun" as const, executionId: "none" }
            assert.deepInclude(yield* refusal(rewind({ executionId: "none", seq: 1 })), unknown)
            assert.deepInclude(yield* refusal(fork({ executionId: "none" })), unknown)
            assert.deepInclude(yield* refusal(resume("none")), unknown)
            assert.deepInclude(yield* refusal(cancel("none")), unknown)
            for (const seq of [0, -1, head + 1]) {
              assert.deepInclude(yield* refusal(rewind({ executionId, seq })), { _tag: "SeqOutOfRange", ...range, seq })
            }
            assert.deepInclude(yield* refusal(fork({ executionId, seq: head })), {
              _tag: "SeqOutOfRange",
              ...range,
              last: head - 1,
              seq: head
            })
            assert.deepInclude(yield* refusal(fork({ executionId, to: executionId })), { _tag: "ExecutionIdTaken" })
            assert.deepInclude(yield* refusal(fork({ executionId, to: "" })), { _tag: "InvalidExecutionId" })
            assert.deepInclude(yield* refusal(resume(executionId)), {
              _tag: "RunSettled"
            })
            assert.deepInclude(yield* refusal(cancel(executionId)), {
              _tag: "RunSettled"
            })
            assert.deepStrictEqual(yield* everything(executionId), before)
            yield* compact(executionId, 2)
            assert.deepInclude(yield* refusal(rewind({ executionId, seq: 1 })), {
              _tag: "BelowFloor",
              executionId,
              seq: 1,
              floor: 2
            })
            assert.deepInclude(yield* refusal(fork({ executionId, seq: 1 })), { _tag: "BelowFloor" })
          })
        )
      }))

    test("a fork has done what the other run had done, and goes its own way", ({ start }) =>
      Effect.gen(function* () {
        const Flow = Harness.define("Forked")
        const gate = Harness.gate("gate")
        const events: Array<string> = []
        const step = (name: string) =>
          Activity.make({ name, success: Schema.String, execute: Effect.sync(() => (events.push(name), name)) })
        const process = yield* start(
          Flow.toLayer(() =>
            Effect.gen(function* () {
              const first = yield* step("first")
              yield* DurableClock.sleep({ name: "nap", duration: "1 minute", inMemoryThreshold: 0 })
              const opened = yield* DurableDeferred.await(gate)
              return `${first} ${opened} ${yield* step("last")}`
            })
          )
        )
        yield* process.run(
          Effect.gen(function* () {
            const store = yield* RunStore
            const executionId = yield* Flow.execute({ id: "a" }, { discard: true })
            yield* Harness.suspended(Flow, executionId)
            const slept = yield* seqOf(executionId, "clock-scheduled")
            yield* TestClock.adjust("30 seconds")
            const early = yield* fork({ executionId, seq: slept, to: "early" })
            assert.deepStrictEqual(
              [early.workflow, early.status, early.held, early.parent],
              ["Forked", "suspended", true, null]
            )
            yield* agrees("early")
            yield* TestClock.adjust("30 seconds")
            yield* until(executionId, "clock-completed")
            yield* Harness.open(gate, Flow, executionId, "a")
            assert.deepStrictEqual(yield* completed(Flow, executionId), Exit.succeed("first a last"))
            const before = yield* everything(executionId)

            // Its clock has fired, at the deadline of the other one.
            yield* until("early", "clock-completed")
            const clock = yield* ClockStorage.use((clocks) => clocks.ofRun("early"))
            assert.deepStrictEqual(clock[0]?.deadline, 60_000)
            const late = yield* fork({ executionId, resume: true })
            assert.notStrictEqual(late.executionId, executionId)
            assert.deepStrictEqual(yield* completed(Flow, late.executionId), Exit.succeed("first a last"))
            yield* resume("early")
            yield* until("early", "run-resumed")
            yield* Harness.open(gate, Flow, "early", "b")
            assert.deepStrictEqual(yield* completed(Flow, "early"), Exit.succeed("first b last"))
            assert.deepStrictEqual(events, ["first", "last", "last"])
            for (const id of [executionId, "early", late.executionId]) yield* agrees(id)
            assert.deepStrictEqual(yield* everything(executionId), before)
            assert.deepStrictEqual((yield* Harness.told("early")).slice(0, 4), [
              "run-forked",
              "run-started",
              "activity-completed",
              "clock-scheduled"
            ])
            assert.strictEqual((yield* store.find([executionId, "early"])).length, 2)
          })
        )
      }))

    test("a run that was compacted can be taken back and forked down to its floor", ({ start }) =>
      Effect.gen(function* () {
        const { counts, Flow, layer } = counting("Compacted")
        const process = yield* start(layer)
        yield* process.run(
          Effect.gen(function* () {
            const executionId = yield* Flow.executionId({ id: "a" })
            yield* Flow.execute({ id: "a" })
            const floor = yield* seqOf(executionId, "activity-completed")
            yield* compact(executionId, floor)
            const forked = yield* fork({ executionId, seq: floor, to: "fork" })
            assert.deepStrictEqual(yield* Journal.use((journal) => journal.floor(RunStream.of("fork"))), 1)
            assert.strictEqual((yield* RunStore.use((store) => store.outcomes(forked.id))).length, 1)
            yield* resume("fork")
            assert.deepStrictEqual(yield* completed(Flow, "fork"), Exit.succeed("one 1, two 2"))
            yield* rewind({ executionId, seq: floor, resume: true })
            assert.deepStrictEqual(yield* completed(Flow, executionId), Exit.succeed("one 1, two 3"))
            assert.deepStrictEqual(counts, { one: 1, two: 3 })
            assert.deepInclude(yield* DeferredClockFold.rebuild(), { runs: 2, unexplained: 0 })
          })
        )
      }))

    test("a process without the workflow cancels a run, which is compensated where it runs", ({ start }) =>
      Effect.gen(function* () {
        const Flow = Harness.define("Cancelled")
        const gate = Harness.gate("gate")
        const events: Array<string> = []
        const worker = yield* start(
          Flow.toLayer(() =>
            Effect.gen(function* () {
              yield* Activity.make({ name: "book", execute: Effect.sync(() => void events.push("book")) }).pipe(
                Flow.withCompensation(() => Effect.sync(() => void events.push("cancel")))
              )
              return yield* DurableDeferred.await(gate)
            })
          )
        )
        const other = yield* start()
        const executionId = yield* worker.run(Flow.execute({ id: "a" }, { discard: true }))
        yield* worker.run(Harness.suspended(Flow, executionId))
        const run = yield* other.run(cancel(executionId))
        assert.deepStrictEqual([run.status, run.interrupted], ["running", "safe"])
        const exit = yield* worker.run(
          Effect.andThen(
            ChangeSignal.use((signal) => signal.notify),
            completed(Flow, executionId)
          )
        )
        assert.isTrue(Exit.isFailure(exit))
        assert.deepStrictEqual(events, ["book", "cancel"])
        // Taken back to before that, it goes on as if nobody had asked.
        yield* worker.run(
          Effect.gen(function* () {
            const seq = (yield* seqOf(executionId, "run-interrupted")) - 1
            const { run } = yield* rewind({ executionId, seq, resume: true })
            assert.strictEqual(run.interrupted, "none")
            yield* Harness.open(gate, Flow, executionId, "open")
            assert.deepStrictEqual(yield* completed(Flow, executionId), Exit.succeed("open"))
            assert.deepStrictEqual(events, ["book", "cancel"])
            yield* agrees(executionId)
          })
        )
      }))

    test("a rewind that takes the start of a run takes its row", ({ start }) =>
      Effect.gen(function* () {
        const { Flow, layer } = counting("Unstarted")
        const process = yield* start(layer)
        yield* process.run(
          Effect.gen(function* () {
            const executionId = yield* Flow.executionId({ id: "a" })
            yield* Flow.execute({ id: "a" })
            yield* rewindStream(executionId, 0)
            assert.deepStrictEqual(yield* RunStore.use((store) => store.find([executionId])), [])
            assert.deepInclude(yield* DeferredClockFold.rebuild(), { runs: 1, unexplained: 0 })
            assert.strictEqual(yield* Flow.execute({ id: "a" }), "one 2, two 2")
          })
        )
      }))
  })
}
