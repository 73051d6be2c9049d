import { assert } from "@effect/vitest"
import { ChangeSignal } from "@strata/dirty-queue/ChangeSignal"
import { write } from "@strata/durable/DurableWriter"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import * as Activity from "effect/workflow/Activity"
import * as DurableDeferred from "effect/workflow/DurableDeferred"
import { WorkflowEngine } from "effect/workflow/WorkflowEngine"
import { RunStore } from "../RunStore.ts"
import type { WorkflowTier } from "./workflowHarness.ts"
import * as Harness from "./workflowHarness.ts"

/** Several processes on one database. */
export const workflowOwning = <E>(tier: WorkflowTier<E>): void => {
  const test = Harness.makeTest(tier)

  /** Has the processes look at what others did, as the signal of a tier does, until the effect has ended. */
  const signalling = <A, E, R>(
    processes: ReadonlyArray<Harness.Process>,
    effect: Effect.Effect<A, E, R>
  ): Effect.Effect<A, E, R> =>
    Effect.raceFirst(
      effect,
      Effect.gen(function* () {
        while (true) {
          for (const process of processes) yield* process.run(ChangeSignal.use((signal) => signal.notify))
          yield* TestClock.adjust(20)
          yield* Harness.moment
        }
      })
    )

  test("a process without the workflow starts a run, and one that has it runs it", ({ start }) =>
    Effect.gen(function* () {
      const Flow = Harness.define("Elsewhere")
      const client = yield* start()
      const executionId = yield* client.run(Flow.executionId({ id: "a" }))
      const waiting = yield* Effect.forkChild(client.run(Flow.execute({ id: "a" })))
      yield* client.run(
        Harness.until(
          "it is started",
          RunStore.use((store) => store.find([executionId])),
          (found) => found.length > 0
        )
      )
      const worker = yield* start(Flow.toLayer(() => Effect.succeed("done")))
      assert.deepStrictEqual(yield* worker.run(Harness.completed(Flow, executionId)), Exit.succeed("done"))
      assert.strictEqual(yield* signalling([client], Fiber.join(waiting)), "done")
    }))

  test("a deferred that another process completes cuts off a branch that is busy", ({ start }) =>
    Effect.gen(function* () {
      const Flow = Harness.define("Signalled")
      const Gate = Harness.gate("gate")
      let busy = 0
      const worker = yield* start(
        Flow.toLayer(() =>
          DurableDeferred.raceAll({
            name: "race",
            success: Schema.String,
            error: Schema.Never,
            effects: [
              DurableDeferred.await(Gate),
              Activity.make({
                name: "busy",
                success: Schema.String,
                execute: Effect.suspend(() => (busy++, Effect.never))
              })
            ]
          })
        )
      )
      const other = yield* start()
      const executionId = yield* worker.run(Flow.execute({ id: "a" }, { discard: true }))
      yield* Harness.eventually("busy", () => busy > 0)
      yield* Harness.moment
      yield* other.run(Harness.open(Gate, Flow, executionId, "from afar"))
      assert.deepStrictEqual(
        yield* signalling([worker], worker.run(Harness.completed(Flow, executionId))),
        Exit.succeed("from afar")
      )
    }))

  test("interruptUnsafe from another process", ({ start }) =>
    Effect.gen(function* () {
      const Flow = Harness.define("CutAfar")
      let busy = false
      const worker = yield* start(
        Flow.toLayer(() =>
          Activity.make({
            name: "busy",
            success: Schema.String,
            execute: Effect.suspend(() => ((busy = true), Effect.never))
          })
        )
      )
      const other = yield* start()
      const executionId = yield* worker.run(Flow.execute({ id: "a" }, { discard: true }))
      yield* Harness.eventually("busy", () => busy)
      yield* other.run(WorkflowEngine.use((engine) => engine.interruptUnsafe(Flow, executionId)))
      const exit = yield* signalling([worker], worker.run(Harness.completed(Flow, executionId)))
      assert.isTrue(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause))
    }))

  test("a run of an owner whose lease has passed is taken over, and not before", ({ start }) =>
    Effect.gen(function* () {
      const Flow = Harness.define("TakenOver")
      let runs = 0
      const worker = yield* start(
        Flow.toLayer(() => Effect.sync(() => `run ${++runs}`)),
        { lease: "6 seconds" }
      )
      yield* worker.run(
        Effect.gen(function* () {
          const store = yield* RunStore
          const now = yield* Clock.currentTimeMillis
          const owner = yield* write(store.enroll({ host: "another", pid: 1, process: "p", leaseUntil: now + 10_000 }))
          yield* write(
            store.start(now, [{ executionId: "x", workflow: Flow._tag, parent: null, payload: `{"id":"a"}`, owner }])
          )
          yield* TestClock.adjust(9_000)
          yield* Harness.moment
          assert.strictEqual(runs, 0)
          const completed = yield* Effect.raceFirst(
            Harness.completed(Flow, "x"),
            Effect.forever(Effect.andThen(TestClock.adjust(500), Harness.moment))
          )
          assert.deepStrictEqual(completed, Exit.succeed("run 1"))
          assert.deepStrictEqual(
            (yield* store.owners).map(({ host }) => host).filter((host) => host === "another"),
            []
          )
        })
      )
    }))

  test("an owner that was taken for dead abandons its runs without their compensations", ({ start }) =>
    Effect.gen(function* () {
      const Flow = Harness.define("Fenced")
      const events: Array<string> = []
      let release = false
      const worker = yield* start(
        Flow.toLayer(() =>
          Effect.gen(function* () {
            yield* Effect.void.pipe(Flow.withCompensation(() => Effect.sync(() => void events.push("undo"))))
            return yield* Activity.make({
              name: "slow",
              success: Schema.String,
              execute: Effect.suspend(() => {
                const n = events.push("slow")
                return Effect.as(n === 1 ? Harness.eventually("release", () => release) : Effect.void, `slow ${n}`)
              })
            })
          })
        ),
        { lease: "1 hour" }
      )
      yield* worker.run(
        Effect.gen(function* () {
          const store = yield* RunStore
          const executionId = yield* Flow.execute({ id: "a" }, { discard: true })
          yield* Harness.eventually("slow", () => events.length === 1)
          const owners = yield* store.owners
          yield* write(store.retire(0, owners))
          // What it still has to say is refused.
          release = true
          yield* Harness.moment
          const [run] = yield* store.find([executionId])
          assert.deepStrictEqual([run?.status, run?.owner], ["running", null])
          assert.deepStrictEqual(yield* store.outcomes(run!.id), [])
          // It finds out, and begins anew.
          const next = yield* Effect.forkChild(Harness.completed(Flow, executionId))
          yield* TestClock.adjust("30 minutes")
          assert.deepStrictEqual(yield* Fiber.join(next), Exit.succeed("slow 2"))
          assert.deepStrictEqual(events, ["slow", "slow"])
        })
      )
    }))
}
