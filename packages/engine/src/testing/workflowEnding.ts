import { assert } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import * as Activity from "effect/workflow/Activity"
import * as DurableDeferred from "effect/workflow/DurableDeferred"
import * as Workflow from "effect/workflow/Workflow"
import { WorkflowEngine } from "effect/workflow/WorkflowEngine"
import { RunStore } from "../RunStore.ts"
import type { WorkflowTier } from "./workflowHarness.ts"
import * as Harness from "./workflowHarness.ts"

/** Compensations, interruptions, finalizers and shutdown. */
export const workflowEnding = <E>(tier: WorkflowTier<E>): void => {
  const test = Harness.makeTest(tier)

  for (const fails of [true, false]) {
    test(`a compensation runs ${fails ? "when the run fails" : "not when it succeeds"}`, ({ start }) =>
      Effect.gen(function* () {
        const Flow = Harness.define("Compensated")
        const events: Array<string> = []
        const process = yield* start(
          Flow.toLayer(() =>
            Effect.gen(function* () {
              yield* Activity.make({ name: "book", success: Schema.String, execute: Effect.succeed("booked") }).pipe(
                Flow.withCompensation((value, cause) =>
                  Activity.make({
                    name: "cancel",
                    execute: Effect.sync(() => void events.push(`${value} ${String(Cause.squash(cause))}`))
                  })
                )
              )
              return fails ? yield* Effect.fail("no") : "yes"
            })
          )
        )
        yield* process.run(
          Effect.gen(function* () {
            const exit = yield* Effect.exit(Flow.execute({ id: "a" }))
            assert.strictEqual(Exit.isFailure(exit) ? Cause.squash(exit.cause) : exit.value, fails ? "no" : "yes")
            assert.deepStrictEqual(events, fails ? ["booked no"] : [])
          })
        )
      }))
  }

  test("interrupt ends a suspended run: compensations are rebuilt, nothing new runs", ({ start }) =>
    Effect.gen(function* () {
      const Flow = Harness.define("Interrupted")
      const Gate = Harness.gate("gate")
      const events: Array<string> = []
      let interrupting = false
      const process = yield* start(
        Flow.toLayer(() =>
          Effect.gen(function* () {
            yield* Activity.make({
              name: "book",
              success: Schema.String,
              execute: Effect.sync(() => (events.push("book"), "booked"))
            }).pipe(
              Flow.withCompensation(() =>
                Activity.make({ name: "cancel", execute: Effect.sync(() => void events.push("cancel")) })
              )
            )
            if (interrupting) {
              yield* Activity.make({ name: "new", execute: Effect.sync(() => void events.push("new")) })
            }
            return yield* DurableDeferred.await(Gate)
          })
        )
      )
      yield* process.run(
        Effect.gen(function* () {
          const fiber = yield* Effect.forkChild(Flow.execute({ id: "a" }))
          const executionId = yield* Flow.executionId({ id: "a" })
          yield* Harness.suspended(Flow, executionId)
          interrupting = true
          yield* Flow.interrupt(executionId)
          const exit = yield* Harness.completed(Flow, executionId)
          assert.isTrue(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause))
          assert.deepStrictEqual(events, ["book", "cancel"])
          const joined = yield* Fiber.await(fiber)
          assert.isTrue(Exit.isFailure(joined) && Cause.hasInterruptsOnly(joined.cause))
          assert.include([...(yield* Harness.told(executionId))], "run-interrupted")
        })
      )
    }))

  test("interrupt of a run that does not suspend lets it complete", ({ start }) =>
    Effect.gen(function* () {
      const Flow = Harness.define("Busy")
      let busy = false
      const process = yield* start(
        Flow.toLayer(() =>
          Activity.make({
            name: "busy",
            success: Schema.String,
            execute: Effect.suspend(() => {
              busy = true
              return Effect.as(Effect.sleep("1 second"), "done")
            })
          })
        )
      )
      yield* process.run(
        Effect.gen(function* () {
          const executionId = yield* Flow.execute({ id: "a" }, { discard: true })
          yield* Harness.eventually("busy", () => busy)
          yield* Flow.interrupt(executionId)
          yield* TestClock.adjust("1 second")
          assert.deepStrictEqual(yield* Harness.completed(Flow, executionId), Exit.succeed("done"))
        })
      )
    }))

  test("interruptUnsafe cuts off what runs, and the run ends interrupted", ({ start }) =>
    Effect.gen(function* () {
      const Flow = Harness.define("Cut")
      const events: Array<string> = []
      const process = yield* start(
        Flow.toLayer(() =>
          Effect.gen(function* () {
            yield* Effect.succeed("x").pipe(Flow.withCompensation(() => Effect.sync(() => void events.push("undo"))))
            return yield* Activity.make({
              name: "hangs",
              success: Schema.String,
              execute: Effect.suspend(() => (events.push("hangs"), Effect.never))
            })
          })
        )
      )
      yield* process.run(
        Effect.gen(function* () {
          const engine = yield* WorkflowEngine
          const executionId = yield* Flow.execute({ id: "a" }, { discard: true })
          yield* Harness.eventually("hangs", () => events.includes("hangs"))
          yield* engine.interruptUnsafe(Flow, executionId)
          const exit = yield* Harness.completed(Flow, executionId)
          assert.isTrue(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause))
          assert.deepStrictEqual(events, ["hangs", "undo"])
        })
      )
    }))

  test("an interrupted parent interrupts its child", ({ start }) =>
    Effect.gen(function* () {
      const [Parent, Child] = [Harness.define("Parent"), Harness.define("Child")]
      const Gate = Harness.gate("gate")
      const process = yield* start(
        Layer.mergeAll(
          Parent.toLayer(() => Child.execute({ id: "c" })),
          Child.toLayer(() => DurableDeferred.await(Gate))
        )
      )
      yield* process.run(
        Effect.gen(function* () {
          const parent = yield* Parent.execute({ id: "p" }, { discard: true })
          const child = yield* Child.executionId({ id: "c" })
          yield* Harness.suspended(Child, child)
          yield* Harness.suspended(Parent, parent)
          yield* Parent.interrupt(parent)
          for (const exit of [yield* Harness.completed(Parent, parent), yield* Harness.completed(Child, child)]) {
            assert.isTrue(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause))
          }
        })
      )
    }))

  for (const evicted of [false, true]) {
    test(`finalizers across a suspension, ${evicted ? "evicted" : "resident"}`, ({ start }) =>
      Effect.gen(function* () {
        const Flow = Harness.define("Finalized")
        const Gate = Harness.gate("gate")
        const events: Array<string> = []
        let pass = 0
        const process = yield* start(
          Flow.toLayer(() =>
            Effect.gen(function* () {
              const n = ++pass
              yield* Workflow.addFinalizer((exit) => Effect.sync(() => void events.push(`${exit._tag} ${n}`)))
              yield* Workflow.provideScope(
                Effect.acquireRelease(Effect.void, () => Effect.sync(() => void events.push(`release ${n}`)))
              )
              yield* Effect.addFinalizer(() => Effect.sync(() => void events.push(`pass ${n}`)))
              yield* DurableDeferred.await(Gate)
              return yield* Effect.fail("end")
            })
          ),
          { residentFor: evicted ? 0 : "1 hour", residents: evicted ? 0 : 10 }
        )
        yield* process.run(
          Effect.gen(function* () {
            const executionId = yield* Flow.execute({ id: "a" }, { discard: true })
            yield* Harness.suspended(Flow, executionId)
            if (evicted) yield* Harness.eventually("released", () => events.includes("release 1"))
            yield* Harness.moment
            assert.deepStrictEqual(events, evicted ? ["pass 1", "release 1"] : ["pass 1"])
            yield* Harness.open(Gate, Flow, executionId, "")
            assert.deepStrictEqual(yield* Harness.completed(Flow, executionId), Exit.fail("end"))
            yield* Harness.eventually(
              "released",
              () => events.filter((event) => event.startsWith("release")).length === 2
            )
            yield* Harness.moment
            assert.deepStrictEqual(
              events,
              evicted
                ? ["pass 1", "release 1", "pass 2", "release 2", "Failure 2"]
                : ["pass 1", "pass 2", "release 2", "Failure 2", "release 1", "Success 1"]
            )
          })
        )
      }))
  }

  test("shutdown leaves runs where they are, without compensations, and later calls are interrupted", ({ start }) =>
    Effect.gen(function* () {
      const Flow = Harness.define("Shutdown")
      const Gate = Harness.gate("gate")
      const events: Array<string> = []
      let hang = true
      const flow = Flow.toLayer(() =>
        Effect.gen(function* () {
          yield* Activity.make({ name: "one", execute: Effect.sync(() => void events.push("one")) }).pipe(
            Flow.withCompensation(() => Effect.sync(() => void events.push("undo")))
          )
          yield* Workflow.addFinalizer(() => Effect.sync(() => void events.push("final")))
          if (hang) {
            yield* Activity.make({ name: "two", execute: Effect.suspend(() => (events.push("hang"), Effect.never)) })
          }
          return "end"
        })
      )
      const first = yield* start(flow)
      const executionId = yield* first.run(Flow.execute({ id: "a" }, { discard: true }))
      yield* Harness.eventually("hangs", () => events.includes("hang"))
      const waiting = yield* Effect.forkChild(first.run(Flow.execute({ id: "a" })))
      yield* Harness.moment
      yield* first.stop
      assert.deepStrictEqual(events, ["one", "hang"])
      for (const call of [
        Effect.asVoid(Flow.execute({ id: "b" })),
        Effect.asVoid(Flow.poll(executionId)),
        Flow.interrupt(executionId),
        Flow.resume(executionId),
        Harness.open(Gate, Flow, executionId, "x")
      ]) {
        const exit = yield* Effect.exit(first.run(call))
        assert.isTrue(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause))
      }
      const exit = yield* Fiber.await(waiting)
      assert.isTrue(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause))
      hang = false
      const second = yield* start(flow)
      assert.deepStrictEqual(yield* second.run(Harness.completed(Flow, executionId)), Exit.succeed("end"))
      assert.deepStrictEqual(events, ["one", "hang", "final"])
    }))

  test("a payload that does not decode any more holds its run, which loses nothing", ({ start }) =>
    Effect.gen(function* () {
      const Old = Harness.define("Changed")
      const New = Workflow.make("Changed", {
        payload: { id: Schema.Int },
        success: Schema.String,
        error: Schema.String,
        idempotencyKey: ({ id }) => String(id)
      })
      const Gate = Harness.gate("gate")
      const old = Old.toLayer(() => DurableDeferred.await(Gate))
      const first = yield* start(old)
      const executionId = yield* first.run(Old.execute({ id: "a" }, { discard: true }))
      yield* first.run(Harness.suspended(Old, executionId))
      yield* first.stop
      const second = yield* start(New.toLayer(() => Effect.succeed("new")))
      yield* second.run(
        Effect.gen(function* () {
          yield* Harness.open(Gate, New, executionId, "x")
          const held = yield* Harness.until(
            "held",
            New.poll(executionId),
            (found) => found._tag === "Some" && found.value._tag === "Suspended" && found.value.failed === true
          )
          assert.strictEqual(held._tag, "Some")
        })
      )
      yield* second.stop
      const third = yield* start(old)
      yield* third.run(Old.resume(executionId))
      assert.deepStrictEqual(yield* third.run(Harness.completed(Old, executionId)), Exit.succeed("x"))
      const [run] = yield* third.run(RunStore.use((store) => store.find([executionId])))
      assert.strictEqual(run?.status, "completed")
    }))
}
