import { assert } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import * as Activity from "effect/workflow/Activity"
import * as DurableClock from "effect/workflow/DurableClock"
import * as DurableDeferred from "effect/workflow/DurableDeferred"
import { ClockStore } from "../ClockStore.ts"
import { WorkflowError } from "../WorkflowError.ts"
import type { WorkflowTier } from "./workflowHarness.ts"
import * as Harness from "./workflowHarness.ts"

/** Cases that broke engines of this kind. */
export const workflowCases = <E>(tier: WorkflowTier<E>): void => {
  const test = Harness.makeTest(tier)

  test("E1: many runs whose deferreds are completed as they announce them, none is stuck", ({ start }) =>
    Effect.gen(function* () {
      const Flow = Harness.define("Announce")
      const announced: Array<{ readonly executionId: string; readonly wait: number }> = []
      const runs = 200
      const process = yield* start(
        Flow.toLayer((_, executionId) =>
          Effect.gen(function* () {
            let text = ""
            for (let wait = 0; wait < 4; wait++) {
              announced.push({ executionId, wait })
              text += yield* DurableDeferred.await(Harness.gate(`wait ${wait}`))
            }
            return text
          })
        )
      )
      yield* process.run(
        Effect.gen(function* () {
          const ids = yield* Effect.forEach(
            Array.from({ length: runs }, (_, n) => String(n)),
            (id) => Flow.execute({ id }, { discard: true }),
            { concurrency: "unbounded" }
          )
          const done = new Set<string>()
          yield* Harness.until(
            "all are completed",
            Effect.gen(function* () {
              while (announced.length > 0) {
                const batch = announced.splice(0)
                yield* Effect.forEach(
                  batch,
                  ({ executionId, wait }) =>
                    Harness.open(Harness.gate(`wait ${wait}`), Flow, executionId, String(wait)),
                  { concurrency: "unbounded", discard: true }
                )
              }
              for (const id of ids) {
                if (done.has(id)) continue
                const found = yield* Flow.poll(id)
                if (found._tag === "Some" && found.value._tag === "Complete") {
                  assert.deepStrictEqual(found.value.exit, Exit.succeed("0123"))
                  done.add(id)
                }
              }
              return done.size
            }),
            (size) => size === runs
          )
        })
      )
    }))

  test("E2: a completion between the decision to suspend and the suspension resumes the run", ({ start }) =>
    Effect.gen(function* () {
      const Flow = Harness.define("Between")
      const Gate = Harness.gate("gate")
      let suspending = false
      let release = false
      const process = yield* start(
        Flow.toLayer(() =>
          DurableDeferred.await(Gate).pipe(
            Effect.ensuring(
              Effect.suspend(() => {
                suspending = true
                return Harness.eventually("release", () => release)
              })
            )
          )
        )
      )
      yield* process.run(
        Effect.gen(function* () {
          const executionId = yield* Flow.execute({ id: "a" }, { discard: true })
          yield* Harness.eventually("suspending", () => suspending)
          yield* Harness.open(Gate, Flow, executionId, "in time")
          release = true
          assert.deepStrictEqual(yield* Harness.completed(Flow, executionId), Exit.succeed("in time"))
        })
      )
    }))

  test("E3: a completed deferred wins at once over a branch that stays busy", ({ start }) =>
    Effect.gen(function* () {
      const Flow = Harness.define("BusyRace")
      const Gate = Harness.gate("gate")
      let busy = 0
      const process = yield* start(
        Flow.toLayer(() =>
          DurableDeferred.raceAll({
            name: "race",
            success: Schema.String,
            error: Schema.Never,
            effects: [
              Activity.make({
                name: "busy",
                success: Schema.String,
                execute: Effect.suspend(() => {
                  busy++
                  return Effect.as(Effect.sleep("10 seconds"), "busy")
                })
              }),
              DurableDeferred.await(Gate)
            ]
          })
        )
      )
      yield* process.run(
        Effect.gen(function* () {
          const executionId = yield* Flow.execute({ id: "a" }, { discard: true })
          yield* Harness.eventually("busy", () => busy === 1)
          yield* Harness.moment
          yield* Harness.open(Gate, Flow, executionId, "gate")
          // The clock stands still.
          assert.deepStrictEqual(yield* Harness.completed(Flow, executionId), Exit.succeed("gate"))
        })
      )
    }))

  test("E4: an arm of a race completes the deferred of its sibling", ({ start }) =>
    Effect.gen(function* () {
      const Flow = Harness.define("Siblings")
      const Gate = Harness.gate("gate")
      const process = yield* start(
        Flow.toLayer((_, executionId) =>
          DurableDeferred.raceAll({
            name: "race",
            success: Schema.String,
            error: Schema.Never,
            effects: [
              DurableDeferred.await(Gate),
              Effect.andThen(Harness.open(Gate, Flow, executionId, "sibling"), Effect.never)
            ]
          })
        )
      )
      yield* process.run(
        Effect.gen(function* () {
          const executionId = yield* Flow.execute({ id: "a" }, { discard: true })
          assert.deepStrictEqual(yield* Harness.completed(Flow, executionId), Exit.succeed("sibling"))
        })
      )
    }))

  test("E5: a durable sleep of a part of a millisecond is no defect, and not early", ({ start }) =>
    Effect.gen(function* () {
      const Flow = Harness.define("Fraction")
      const process = yield* start(
        Flow.toLayer(() =>
          Effect.as(DurableClock.sleep({ name: "nap", duration: 10_000.5, inMemoryThreshold: 0 }), "awake")
        )
      )
      yield* process.run(
        Effect.gen(function* () {
          const executionId = yield* Flow.execute({ id: "a" }, { discard: true })
          yield* Harness.suspended(Flow, executionId)
          yield* TestClock.adjust(10_000)
          yield* Harness.moment
          yield* Harness.suspended(Flow, executionId)
          yield* TestClock.adjust(1)
          assert.deepStrictEqual(yield* Harness.completed(Flow, executionId), Exit.succeed("awake"))
        })
      )
    }))

  for (const kind of ["activity", "clock", "short clock"] as const) {
    test(`E6: the same name of a ${kind} twice in one run is explained`, ({ start }) =>
      Effect.gen(function* () {
        const Flow = Harness.define("Twice")
        const step =
          kind === "activity"
            ? Activity.make({ name: "step", execute: Effect.void })
            : DurableClock.sleep({
                name: "step",
                duration: "1 second",
                inMemoryThreshold: kind === "clock" ? 0 : "1 minute"
              })
        const process = yield* start(Flow.toLayer(() => Effect.as(Effect.andThen(step, step), "never")))
        yield* process.run(
          Effect.gen(function* () {
            const executionId = yield* Flow.execute({ id: "a" }, { discard: true })
            const exit = yield* Effect.raceFirst(
              Harness.completed(Flow, executionId),
              Effect.forever(Effect.andThen(TestClock.adjust(500), Harness.moment))
            )
            const defect = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
            assert.include(defect instanceof Error ? defect.message : "", "is used twice in one run")
            assert.isFalse(defect instanceof WorkflowError && defect.reason._tag !== "DuplicateName")
          })
        )
      }))
  }

  test("E7: a run that ends between two attempts goes on with the next one", ({ start }) =>
    Effect.gen(function* () {
      const Flow = Harness.define("Attempts")
      const attempts: Array<number> = []
      let hang = true
      const flow = Flow.toLayer(() =>
        Activity.make({
          name: "flaky",
          success: Schema.String,
          error: Schema.String,
          execute: Effect.flatMap(Activity.CurrentAttempt, (attempt) => {
            attempts.push(attempt)
            if (attempt < 3) return Effect.fail("again")
            return hang ? Effect.never : Effect.succeed(`attempt ${attempt}`)
          })
        }).pipe(Activity.retry({ times: 5 }))
      )
      const first = yield* start(flow)
      const executionId = yield* first.run(Flow.execute({ id: "a" }, { discard: true }))
      yield* Harness.eventually("attempt 3", () => attempts.length === 3)
      yield* first.stop
      hang = false
      const second = yield* start(flow)
      assert.deepStrictEqual(yield* second.run(Harness.completed(Flow, executionId)), Exit.succeed("attempt 3"))
      assert.deepStrictEqual(attempts, [1, 2, 3, 3])
    }))

  test("E8: a clock that comes due while its run ends fires or is settled, never both", ({ start }) =>
    Effect.gen(function* () {
      const Flow = Harness.define("Due")
      const Gate = Harness.gate("gate")
      const process = yield* start(
        Flow.toLayer(() =>
          DurableDeferred.raceAll({
            name: "race",
            success: Schema.String,
            error: Schema.Never,
            effects: [
              DurableDeferred.await(Gate),
              Effect.as(DurableClock.sleep({ name: "due", duration: 1000, inMemoryThreshold: 0 }), "clock")
            ]
          })
        )
      )
      yield* process.run(
        Effect.gen(function* () {
          for (let n = 0; n < 10; n++) {
            const executionId = yield* Flow.execute({ id: String(n) }, { discard: true })
            yield* Harness.suspended(Flow, executionId)
            yield* Effect.all([TestClock.adjust(1000), Harness.open(Gate, Flow, executionId, "gate")], {
              concurrency: "unbounded"
            })
            yield* Harness.completed(Flow, executionId)
            const types = yield* Harness.told(executionId)
            assert.strictEqual(types.filter((type) => type === "clock-completed").length, 1)
            const [clock] = yield* ClockStore.use((store) => store.ofRun(executionId))
            assert.include(["fired", "settled"], clock?.outcome)
          }
        })
      )
    }))

  test("E9: a clock whose duration changes on replay keeps its first deadline", ({ start }) =>
    Effect.gen(function* () {
      const Flow = Harness.define("Longer")
      let duration = 10_000
      const process = yield* start(
        Flow.toLayer(() =>
          Effect.suspend(() => Effect.as(DurableClock.sleep({ name: "nap", duration, inMemoryThreshold: 0 }), "awake"))
        )
      )
      yield* process.run(
        Effect.gen(function* () {
          const executionId = yield* Flow.execute({ id: "a" }, { discard: true })
          yield* Harness.suspended(Flow, executionId)
          duration = 1_000_000
          yield* Flow.resume(executionId)
          yield* Harness.moment
          yield* Harness.suspended(Flow, executionId)
          yield* TestClock.adjust(10_000)
          assert.deepStrictEqual(yield* Harness.completed(Flow, executionId), Exit.succeed("awake"))
        })
      )
    }))
}
