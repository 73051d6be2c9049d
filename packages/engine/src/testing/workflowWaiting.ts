import { assert } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as PersistedQueue from "effect/persistence/PersistedQueue"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import * as Activity from "effect/workflow/Activity"
import * as DurableClock from "effect/workflow/DurableClock"
import * as DurableDeferred from "effect/workflow/DurableDeferred"
import * as DurableQueue from "effect/workflow/DurableQueue"
import * as Workflow from "effect/workflow/Workflow"
import type { WorkflowTier } from "./workflowHarness.ts"
import * as Harness from "./workflowHarness.ts"

const sleep = (name: string, duration: number | `${number} seconds`) =>
  DurableClock.sleep({ name, duration, inMemoryThreshold: 0 })

/** Suspending and going on: deferreds, clocks, races, failures and queues. */
export const workflowWaiting = <E>(tier: WorkflowTier<E>): void => {
  const test = Harness.makeTest(tier)

  test("a deferred suspends, its completion resumes, and completed activities do not run again", ({ start }) =>
    Effect.gen(function* () {
      const Flow = Harness.define("Deferred")
      const Gate = Harness.gate("gate")
      let activities = 0
      const process = yield* start(
        Flow.toLayer(() =>
          Effect.gen(function* () {
            yield* Activity.make({ name: "before", execute: Effect.sync(() => void activities++) })
            const value = yield* DurableDeferred.await(Gate)
            return value
          })
        )
      )
      yield* process.run(
        Effect.gen(function* () {
          const waiting = yield* Effect.forkChild(Flow.execute({ id: "a" }))
          const executionId = yield* Flow.executionId({ id: "a" })
          yield* Harness.suspended(Flow, executionId)
          yield* Harness.open(Gate, Flow, executionId, "first")
          yield* Harness.open(Gate, Flow, executionId, "second")
          assert.strictEqual(yield* Fiber.join(waiting), "first")
          assert.strictEqual(activities, 1)
          assert.deepStrictEqual(yield* Harness.told(executionId), [
            "run-started",
            "activity-completed",
            "deferred-completed",
            "deferred-consumed",
            "run-completed"
          ])
        })
      )
    }))

  test("a deferred that was completed before the run began", ({ start }) =>
    Effect.gen(function* () {
      const Flow = Harness.define("Early")
      const Gate = Harness.gate("gate")
      const process = yield* start(Flow.toLayer(() => DurableDeferred.await(Gate)))
      yield* process.run(
        Effect.gen(function* () {
          yield* Harness.open(Gate, Flow, yield* Flow.executionId({ id: "a" }), "early")
          assert.strictEqual(yield* Flow.execute({ id: "a" }), "early")
        })
      )
    }))

  test("what a deferred succeeded with is decoded, nothing is undefined, and what does not fit is a defect", ({
    start
  }) =>
    Effect.gen(function* () {
      const Flow = Harness.define("Decoded")
      const When = DurableDeferred.make("when", {
        success: Schema.Struct({ at: Schema.Date, by: Schema.Redacted(Schema.String) })
      })
      const Nothing = DurableDeferred.make("nothing")
      const Wrong = DurableDeferred.make("wrong", { success: Schema.Int })
      const process = yield* start(
        Flow.toLayer(() =>
          Effect.gen(function* () {
            const { at, by } = yield* DurableDeferred.await(When)
            const nothing = yield* DurableDeferred.await(Nothing)
            const exit = yield* Effect.exit(DurableDeferred.await(Wrong))
            const defect = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
            return [at.getTime(), Redacted.value(by), String(nothing), Schema.isSchemaError(defect)].join(" ")
          })
        )
      )
      yield* process.run(
        Effect.gen(function* () {
          const executionId = yield* Flow.executionId({ id: "a" })
          const tokenOf = <S extends Schema.Constraint, E extends Schema.Constraint>(
            deferred: DurableDeferred.DurableDeferred<S, E>
          ) => DurableDeferred.tokenFromExecutionId(deferred, { workflow: Flow, executionId })
          const value = { at: new Date(86_400_000), by: Redacted.make("me") }
          yield* DurableDeferred.succeed(When, { token: tokenOf(When), value })
          yield* DurableDeferred.succeed(Nothing, { token: tokenOf(Nothing), value: undefined })
          const asText = DurableDeferred.make(Wrong.name, { success: Schema.String })
          yield* DurableDeferred.succeed(asText, { token: tokenOf(Wrong), value: "one" })
          assert.strictEqual(yield* Flow.execute({ id: "a" }), "86400000 me undefined true")
        })
      )
    }))

  test("errors and defects of deferreds reach the body", ({ start }) =>
    Effect.gen(function* () {
      const Flow = Harness.define("Failing")
      const Fails = DurableDeferred.make("fails", { success: Schema.Void, error: Schema.String })
      const Dies = DurableDeferred.make("dies", { success: Schema.Void })
      const process = yield* start(
        Flow.toLayer(() =>
          Effect.gen(function* () {
            const error = yield* Effect.mapError(Effect.flip(DurableDeferred.await(Fails)), () => "none")
            const exit = yield* Effect.exit(DurableDeferred.await(Dies))
            const defect = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
            return `${String(error)} ${defect instanceof Error ? defect.message : "none"}`
          })
        )
      )
      yield* process.run(
        Effect.gen(function* () {
          const executionId = yield* Flow.executionId({ id: "a" })
          const of = { workflow: Flow, executionId }
          yield* DurableDeferred.fail(Fails, { token: DurableDeferred.tokenFromExecutionId(Fails, of), error: "no" })
          yield* DurableDeferred.failCause(Dies, {
            token: DurableDeferred.tokenFromExecutionId(Dies, of),
            cause: Cause.die(new Error("boom"))
          })
          assert.strictEqual(yield* Flow.execute({ id: "a" }), "no boom")
        })
      )
    }))

  test("a durable sleep ends at its deadline, in a body and in an activity", ({ start }) =>
    Effect.gen(function* () {
      const Flow = Harness.define("Sleep")
      const process = yield* start(
        Flow.toLayer(() =>
          Effect.gen(function* () {
            yield* sleep("body", "10 seconds")
            return yield* Activity.make({
              name: "asleep",
              success: Schema.String,
              execute: Effect.as(sleep("activity", "10 seconds"), "awake")
            })
          })
        )
      )
      yield* process.run(
        Effect.gen(function* () {
          const executionId = yield* Flow.execute({ id: "a" }, { discard: true })
          for (const [clock, before] of [
            ["body", 0],
            ["activity", 1]
          ] as const) {
            yield* Harness.until(
              `${clock} is set`,
              Harness.told(executionId),
              (types) => types.filter((type) => type === "clock-scheduled").length === before + 1
            )
            yield* Harness.suspended(Flow, executionId)
            yield* TestClock.adjust(9999)
            yield* Harness.moment
            yield* Harness.suspended(Flow, executionId)
            yield* TestClock.adjust(1)
          }
          assert.deepStrictEqual(yield* Harness.completed(Flow, executionId), Exit.succeed("awake"))
        })
      )
    }))

  test("Activity.raceAll over durable sleeps", ({ start }) =>
    Effect.gen(function* () {
      const Flow = Harness.define("DurableRace")
      const Gate = Harness.gate("gate")
      const arm = (name: string, ms: number) =>
        Activity.make({ name, success: Schema.String, execute: Effect.as(sleep(name, ms), name) })
      const process = yield* start(
        Flow.toLayer(() =>
          Effect.gen(function* () {
            const winner = yield* Activity.raceAll("race", [arm("a", 50_000), arm("b", 10_000), arm("c", 1000)])
            return `${winner} ${yield* DurableDeferred.await(Gate)}`
          })
        )
      )
      yield* process.run(
        Effect.gen(function* () {
          const executionId = yield* Flow.execute({ id: "a" }, { discard: true })
          yield* Harness.suspended(Flow, executionId)
          yield* TestClock.adjust(1000)
          yield* Harness.until("the race is over", Harness.told(executionId), (types) =>
            types.includes("deferred-completed")
          )
          yield* Harness.suspended(Flow, executionId)
          yield* Harness.open(Gate, Flow, executionId, "on")
          assert.deepStrictEqual(yield* Harness.completed(Flow, executionId), Exit.succeed("c on"))
          // The others will not fire any more.
          const types = yield* Harness.told(executionId)
          assert.strictEqual(types.filter((type) => type === "clock-completed").length, 3)
        })
      )
    }))

  for (const mode of ["mapped", "into", "two", "busy wins"] as const) {
    test(`DurableDeferred.raceAll of a deferred and an activity: ${mode}`, ({ start }) =>
      Effect.gen(function* () {
        const Flow = Harness.define("Race")
        const [Gate, Second, Aside] = [Harness.gate("gate"), Harness.gate("second"), Harness.gate("aside")]
        let busy = 0
        const waiting = Effect.gen(function* () {
          const first = yield* DurableDeferred.await(Gate)
          return mode === "two" ? `${first} ${yield* DurableDeferred.await(Second)}` : first
        })
        const process = yield* start(
          Flow.toLayer(() =>
            DurableDeferred.raceAll({
              name: "race",
              success: Schema.String,
              error: Schema.Never,
              effects: [
                mode === "into" ? DurableDeferred.into(waiting, Aside) : waiting,
                Activity.make({
                  name: "busy",
                  success: Schema.String,
                  execute: Effect.suspend(() => {
                    busy++
                    return Effect.as(Effect.sleep("30 seconds"), "busy")
                  })
                })
              ]
            })
          )
        )
        yield* process.run(
          Effect.gen(function* () {
            const executionId = yield* Flow.execute({ id: "a" }, { discard: true })
            yield* Harness.eventually("busy", () => busy === 1)
            yield* Harness.moment
            if (mode === "busy wins") {
              yield* TestClock.adjust("30 seconds")
            } else {
              yield* Harness.open(Gate, Flow, executionId, "gate")
              if (mode === "two") {
                yield* Harness.eventually("busy again", () => busy === 2)
                yield* Harness.moment
                yield* Harness.open(Second, Flow, executionId, "second")
              }
            }
            const expected = { mapped: "gate", into: "gate", two: "gate second", "busy wins": "busy" }[mode]
            assert.deepStrictEqual(yield* Harness.completed(Flow, executionId), Exit.succeed(expected))
            assert.strictEqual(yield* Flow.execute({ id: "a" }), expected)
          })
        )
      }))
  }

  test("SuspendOnFailure keeps a failed run, with its cause, until it is resumed", ({ start }) =>
    Effect.gen(function* () {
      const Flow = Harness.define("Held").annotate(Workflow.SuspendOnFailure, true)
      const Gate = Harness.gate("gate")
      let broken = true
      let before = 0
      const process = yield* start(
        Flow.toLayer(() =>
          Effect.gen(function* () {
            yield* Activity.make({ name: "before", execute: Effect.sync(() => void before++) })
            if (broken) return yield* Effect.fail("broken")
            return "mended"
          })
        )
      )
      yield* process.run(
        Effect.gen(function* () {
          const executionId = yield* Flow.execute({ id: "a" }, { discard: true })
          const result = yield* Harness.suspended(Flow, executionId)
          assert.strictEqual(result.failed, true)
          assert.include(result.cause === undefined ? "" : Cause.pretty(result.cause), "broken")
          // A deferred does not wake it.
          yield* Harness.open(Gate, Flow, executionId, "x")
          yield* Harness.moment
          assert.strictEqual((yield* Harness.suspended(Flow, executionId)).failed, true)
          broken = false
          yield* Flow.resume(executionId)
          assert.deepStrictEqual(yield* Harness.completed(Flow, executionId), Exit.succeed("mended"))
          assert.strictEqual(before, 1)
          const types = yield* Harness.told(executionId)
          assert.includeMembers([...types], ["run-suspended", "run-resumed"])
        })
      )
    }))

  test("SuspendOnFailure with an activity that dies", ({ start }) =>
    Effect.gen(function* () {
      const Flow = Harness.define("HeldActivity").annotate(Workflow.SuspendOnFailure, true)
      let broken = true
      const process = yield* start(
        Flow.toLayer(() =>
          Activity.make({
            name: "dies",
            success: Schema.String,
            execute: Effect.suspend(() => (broken ? Effect.die("boom") : Effect.succeed("alive")))
          })
        )
      )
      yield* process.run(
        Effect.gen(function* () {
          const executionId = yield* Flow.execute({ id: "a" }, { discard: true })
          const { cause, failed } = yield* Harness.suspended(Flow, executionId)
          assert.deepStrictEqual([failed, cause === undefined ? "" : String(Cause.squash(cause))], [true, "boom"])
          broken = false
          yield* Flow.resume(executionId)
          assert.deepStrictEqual(yield* Harness.completed(Flow, executionId), Exit.succeed("alive"))
        })
      )
    }))

  test("DurableQueue gives work to a worker and takes its result", ({ start }) =>
    Effect.gen(function* () {
      const Flow = Harness.define("Queue")
      const Queue = DurableQueue.make({
        name: "jobs",
        payload: { n: Schema.Int },
        success: Schema.Int,
        idempotencyKey: ({ n }) => String(n)
      })
      const queues = PersistedQueue.layer.pipe(Layer.provide(PersistedQueue.layerStoreMemory))
      const process = yield* start(
        Layer.mergeAll(
          Flow.toLayer(() =>
            Effect.map(
              Effect.forEach([1, 2, 3], (n) => DurableQueue.process(Queue, { n })),
              (all) => all.join(" ")
            )
          ),
          DurableQueue.worker(Queue, ({ n }) => Effect.succeed(n * n))
        ).pipe(Layer.provide(queues))
      )
      yield* process.run(
        Effect.gen(function* () {
          const executionId = yield* Flow.execute({ id: "a" }, { discard: true })
          assert.deepStrictEqual(yield* Harness.completed(Flow, executionId), Exit.succeed("1 4 9"))
        })
      )
    }))

  test("a caller outside is woken by the completion, not by its schedule", ({ start }) =>
    Effect.gen(function* () {
      const Flow = Workflow.make("Waits", {
        payload: { id: Schema.String },
        success: Schema.String,
        idempotencyKey: ({ id }) => id,
        suspendedRetrySchedule: Schedule.spaced("1 hour")
      })
      const Gate = Harness.gate("gate")
      const process = yield* start(Flow.toLayer(() => DurableDeferred.await(Gate)))
      yield* process.run(
        Effect.gen(function* () {
          const fiber = yield* Effect.forkChild(Flow.execute({ id: "a" }))
          const executionId = yield* Flow.executionId({ id: "a" })
          yield* Harness.suspended(Flow, executionId)
          yield* Harness.moment
          yield* Harness.open(Gate, Flow, executionId, "now")
          assert.strictEqual(yield* Fiber.join(fiber), "now")
        })
      )
    }))
}
