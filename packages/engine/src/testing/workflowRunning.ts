import { assert } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import * as Activity from "effect/workflow/Activity"
import * as DurableClock from "effect/workflow/DurableClock"
import * as DurableDeferred from "effect/workflow/DurableDeferred"
import * as Workflow from "effect/workflow/Workflow"
import { WorkflowEngine } from "effect/workflow/WorkflowEngine"
import { InvalidName, WorkflowError } from "../WorkflowError.ts"
import type { WorkflowTier } from "./workflowHarness.ts"
import * as Harness from "./workflowHarness.ts"

/** Running bodies, activities and children. */
export const workflowRunning = <E>(tier: WorkflowTier<E>): void => {
  const test = Harness.makeTest(tier)

  test("execute runs a body once for an id, and tells the journal", ({ start }) =>
    Effect.gen(function* () {
      const Flow = Harness.define("Once")
      let bodies = 0
      let activities = 0
      const process = yield* start(
        Flow.toLayer(({ id }) =>
          Effect.gen(function* () {
            bodies++
            const at = yield* Activity.make({
              name: "at",
              success: Schema.DateTimeUtc,
              execute: Effect.tap(DateTime.now, () => Effect.sync(() => activities++))
            })
            return `${id} ${DateTime.isUtc(at)}`
          })
        )
      )
      yield* process.run(
        Effect.gen(function* () {
          const executionId = yield* Flow.executionId({ id: "a" })
          assert.deepStrictEqual(yield* Flow.poll(executionId), Option.none())
          const results = yield* Effect.all([Flow.execute({ id: "a" }), Flow.execute({ id: "a" })], {
            concurrency: "unbounded"
          })
          assert.deepStrictEqual(results, ["a true", "a true"])
          assert.strictEqual(yield* Flow.execute({ id: "a" }), "a true")
          assert.deepStrictEqual([bodies, activities], [1, 1])
          assert.deepStrictEqual(yield* Harness.completed(Flow, executionId), Exit.succeed("a true"))
          assert.deepStrictEqual(yield* Harness.told(executionId), [
            "run-started",
            "activity-completed",
            "run-completed"
          ])
        })
      )
    }))

  test("payloads, results and errors go through their Schemas", ({ start }) =>
    Effect.gen(function* () {
      class Broken extends Schema.TaggedError<Broken>("test/Broken")("Broken", { at: Schema.Date }) {}
      const Flow = Workflow.make("Codecs", {
        payload: { at: Schema.Date, fail: Schema.Boolean },
        success: Schema.Struct({ at: Schema.Date, tags: Schema.ReadonlySet(Schema.String) }),
        error: Broken,
        idempotencyKey: ({ at, fail }) => `${at.getTime()} ${fail}`
      })
      const process = yield* start(
        Flow.toLayer(({ at, fail }) =>
          fail ? Effect.fail(new Broken({ at })) : Effect.succeed({ at, tags: new Set([typeof at.getTime()]) })
        )
      )
      yield* process.run(
        Effect.gen(function* () {
          const at = new Date(5)
          assert.deepStrictEqual(yield* Flow.execute({ at, fail: false }), { at, tags: new Set(["number"]) })
          const error = yield* Effect.flip(Flow.execute({ at, fail: true }))
          assert.deepStrictEqual([error instanceof Broken, error.at], [true, at])
        })
      )
    }))

  test("a void workflow with an empty payload", ({ start }) =>
    Effect.gen(function* () {
      const Flow = Workflow.make("Void", { payload: {}, idempotencyKey: () => "" })
      const process = yield* start(Flow.toLayer(() => Activity.make({ name: "void", execute: Effect.void })))
      yield* process.run(
        Effect.gen(function* () {
          assert.isUndefined(yield* Flow.execute({}))
          assert.deepStrictEqual(yield* Harness.completed(Flow, yield* Flow.executionId({})), Exit.void)
        })
      )
    }))

  test("defects of bodies and activities are results; uncaptured ones are defects of the call", ({ start }) =>
    Effect.gen(function* () {
      const Captured = Harness.define("Captured")
      const Uncaptured = Harness.define("Uncaptured").annotate(Workflow.CaptureDefects, false)
      const boom = Object.defineProperty(new Error("boom"), "big", { enumerable: true, value: 1n })
      const process = yield* start(
        Layer.mergeAll(
          Captured.toLayer(() => Activity.make({ name: "boom", success: Schema.String, execute: Effect.die(boom) })),
          Uncaptured.toLayer(() => Effect.die(boom))
        )
      )
      yield* process.run(
        Effect.gen(function* () {
          const [exit, other] = [
            yield* Effect.exit(Captured.execute({ id: "a" })),
            yield* Effect.exit(Uncaptured.execute({ id: "a" }))
          ]
          for (const found of [exit, other]) {
            const defect = Exit.isFailure(found) ? Cause.squash(found.cause) : undefined
            assert.strictEqual(defect instanceof Error ? defect.message : undefined, "boom")
          }
          assert.isTrue(Exit.isFailure(yield* Harness.completed(Captured, yield* Captured.executionId({ id: "a" }))))
          const polled = yield* Effect.exit(Uncaptured.poll(yield* Uncaptured.executionId({ id: "a" })))
          assert.isTrue(Exit.isFailure(polled))
        })
      )
    }))

  test("a result that does not fit its Schema is a defect of the run", ({ start }) =>
    Effect.gen(function* () {
      const Flow = Harness.define("Misfit")
      const process = yield* start(Flow.toLayer(() => Effect.succeed(5 as unknown as string)))
      const exit = yield* process.run(Effect.exit(Flow.execute({ id: "a" })))
      assert.isTrue(Exit.isFailure(exit) && Cause.hasDies(exit.cause))
    }))

  for (const fails of [false, true]) {
    test(`${fails ? "an error" : "a result"} that its Schema lets through, and that is no JSON, is a defect of the run`, ({
      start
    }) =>
      Effect.gen(function* () {
        const Flow = Workflow.make("NoJson", {
          payload: { id: Schema.String },
          success: Schema.Any,
          error: Schema.Any,
          idempotencyKey: ({ id }) => id
        })
        const process = yield* start(Flow.toLayer(() => (fails ? Effect.fail(5n) : Effect.succeed(5n))))
        const exit = yield* process.run(Effect.exit(Flow.execute({ id: "a" })))
        const defect = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
        assert.include(defect instanceof Error ? defect.message : "", "is no JSON")
      }))
  }

  test("an activity that fails can be caught, and its error is served to replays", ({ start }) =>
    Effect.gen(function* () {
      const Flow = Harness.define("Caught")
      const Gate = Harness.gate("gate")
      let runs = 0
      const process = yield* start(
        Flow.toLayer(() =>
          Effect.gen(function* () {
            const error = yield* Activity.make({
              name: "fails",
              error: Schema.String,
              execute: Effect.suspend(() => Effect.fail(`failure ${++runs}`))
            }).pipe(
              Effect.flip,
              Effect.mapError(() => "none")
            )
            return `${error} ${yield* DurableDeferred.await(Gate)}`
          })
        )
      )
      yield* process.run(
        Effect.gen(function* () {
          const executionId = yield* Flow.execute({ id: "a" }, { discard: true })
          yield* Harness.suspended(Flow, executionId)
          yield* Harness.open(Gate, Flow, executionId, "open")
          assert.deepStrictEqual(yield* Harness.completed(Flow, executionId), Exit.succeed("failure 1 open"))
        })
      )
    }))

  test("children run nested, and their results reach the parent after both were suspended", ({ start }) =>
    Effect.gen(function* () {
      const [Parent, Child] = [Harness.define("Parent"), Harness.define("Child")]
      const Gate = Harness.gate("gate")
      let ends = 0
      const process = yield* start(
        Layer.mergeAll(
          Parent.toLayer(({ id }) =>
            Effect.map(Child.execute({ id }), (value) => {
              ends++
              return `parent of ${value}`
            })
          ),
          Child.toLayer(({ id }) => Effect.map(DurableDeferred.await(Gate), (value) => `${id} ${value}`))
        )
      )
      yield* process.run(
        Effect.gen(function* () {
          const fiber = yield* Effect.forkChild(Parent.execute({ id: "a" }))
          const [parent, child] = [yield* Parent.executionId({ id: "a" }), yield* Child.executionId({ id: "a" })]
          yield* Harness.suspended(Child, child)
          yield* Harness.suspended(Parent, parent)
          yield* Harness.open(Gate, Child, child, "done")
          assert.deepStrictEqual(yield* Harness.completed(Parent, parent), Exit.succeed("parent of a done"))
          assert.strictEqual(yield* Fiber.join(fiber), "parent of a done")
          assert.strictEqual(ends, 1)
        })
      )
    }))

  for (const concurrency of [2, "unbounded"] as const) {
    test(`children run in parallel, concurrency ${concurrency}, inside of an activity`, ({ start }) =>
      Effect.gen(function* () {
        const [Parent, Child] = [Harness.define("Parent"), Harness.define("Child")]
        const Gate = Harness.gate("gate")
        const process = yield* start(
          Layer.mergeAll(
            Parent.toLayer(() =>
              Effect.map(
                Activity.make({
                  name: "all",
                  success: Schema.Array(Schema.String),
                  error: Schema.String,
                  execute: Effect.forEach(["a", "b", "c", "d", "e"], (id) => Child.execute({ id }), { concurrency })
                }),
                (results) => results.join(" ")
              )
            ),
            Child.toLayer(({ id }) => Effect.map(DurableDeferred.await(Gate), (value) => `${id}${value}`))
          )
        )
        yield* process.run(
          Effect.gen(function* () {
            const parent = yield* Parent.execute({ id: "p" }, { discard: true })
            for (const id of ["a", "b", "c", "d", "e"]) {
              const child = yield* Child.executionId({ id })
              yield* Harness.suspended(Child, child)
              yield* Harness.open(Gate, Child, child, "!")
            }
            assert.deepStrictEqual(yield* Harness.completed(Parent, parent), Exit.succeed("a! b! c! d! e!"))
          })
        )
      }))
  }

  test("two parents wait for one child, and a parent for one that was there before", ({ start }) =>
    Effect.gen(function* () {
      const [Parent, Child] = [Harness.define("Parent"), Harness.define("Child")]
      const Gate = Harness.gate("gate")
      const process = yield* start(
        Layer.mergeAll(
          Parent.toLayer(({ id }) => Effect.map(Child.execute({ id: "shared" }), (value) => `${id} ${value}`)),
          Child.toLayer(() => DurableDeferred.await(Gate))
        )
      )
      yield* process.run(
        Effect.gen(function* () {
          const child = yield* Child.execute({ id: "shared" }, { discard: true })
          yield* Harness.suspended(Child, child)
          const parents = yield* Effect.forEach(["a", "b"], (id) => Parent.execute({ id }, { discard: true }))
          for (const parent of parents) yield* Harness.suspended(Parent, parent)
          yield* Harness.open(Gate, Child, child, "child")
          for (const [i, parent] of parents.entries()) {
            assert.deepStrictEqual(yield* Harness.completed(Parent, parent), Exit.succeed(`${"ab"[i]} child`))
          }
        })
      )
    }))

  test("a child that is completed while its parent cleans up wakes the parent", ({ start }) =>
    Effect.gen(function* () {
      const [Parent, Child] = [Harness.define("Parent"), Harness.define("Child")]
      const Gate = Harness.gate("gate")
      let cleaning = false
      let release = false
      const process = yield* start(
        Layer.mergeAll(
          Parent.toLayer(() =>
            Activity.make({
              name: "children",
              success: Schema.String,
              error: Schema.String,
              execute: Effect.ensuring(
                Child.execute({ id: "c" }),
                Effect.suspend(() => {
                  cleaning = true
                  return Harness.eventually("release", () => release)
                })
              )
            })
          ),
          Child.toLayer(() => DurableDeferred.await(Gate))
        )
      )
      yield* process.run(
        Effect.gen(function* () {
          const parent = yield* Parent.execute({ id: "p" }, { discard: true })
          yield* Harness.eventually("cleaning", () => cleaning)
          const child = yield* Child.executionId({ id: "c" })
          yield* Harness.open(Gate, Child, child, "x")
          yield* Harness.completed(Child, child)
          release = true
          assert.deepStrictEqual(yield* Harness.completed(Parent, parent), Exit.succeed("x"))
        })
      )
    }))

  test("a detached child neither wakes its parent nor ends with it", ({ start }) =>
    Effect.gen(function* () {
      const [Parent, Child] = [Harness.define("Parent"), Harness.define("Child")]
      const Gate = Harness.gate("gate")
      const process = yield* start(
        Layer.mergeAll(
          Parent.toLayer(() =>
            Effect.andThen(Child.execute({ id: "c" }, { discard: true, detached: true }), DurableDeferred.await(Gate))
          ),
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
          assert.isTrue(Exit.isFailure(yield* Harness.completed(Parent, parent)))
          yield* Harness.open(Gate, Child, child, "alone")
          assert.deepStrictEqual(yield* Harness.completed(Child, child), Exit.succeed("alone"))
        })
      )
    }))

  test("the id of a run of another workflow, and one that cannot be stored, are explained", ({ start }) =>
    Effect.gen(function* () {
      const [One, Two] = [Harness.define("One"), Harness.define("Two")]
      const process = yield* start(
        Layer.mergeAll(
          One.toLayer(() => Effect.succeed("one")),
          Two.toLayer(() => Effect.succeed("two"))
        )
      )
      yield* process.run(
        Effect.gen(function* () {
          const engine = yield* WorkflowEngine
          const execute = (workflow: typeof One | typeof Two, executionId: string) =>
            Effect.exit(engine.execute(workflow, { executionId, payload: { id: "a" } }))
          assert.deepStrictEqual(yield* execute(One, "x"), Exit.succeed("one"))
          const reasons: Array<string> = []
          for (const exit of [yield* execute(Two, "x"), yield* execute(One, ""), yield* execute(One, "a\0")]) {
            const defect = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
            reasons.push(defect instanceof WorkflowError ? defect.reason._tag : "none")
          }
          assert.deepStrictEqual(reasons, ["OtherWorkflow", "InvalidName", "InvalidName"])
        })
      )
    }))

  for (const [what, name] of [
    ["nothing", ""],
    ["NUL", "n\0"],
    ["half of a pair", "n\ud800"]
  ] as const) {
    for (const [kind, step] of [
      ["an activity", Activity.make({ name, execute: Effect.sync(() => assert.fail("it ran")) })],
      ["a deferred", DurableDeferred.await(DurableDeferred.make(name))],
      ["a clock", DurableClock.sleep({ name, duration: "1 hour" })]
    ] as const) {
      test(`the name of ${kind} with ${what} in it is a defect of the run, at once`, ({ start }) =>
        Effect.gen(function* () {
          const Flow = Harness.define("Unnamed")
          let bodies = 0
          const process = yield* start(
            Flow.toLayer(() =>
              Effect.suspend(() => {
                bodies++
                return Effect.as(step, "never")
              })
            )
          )
          const exit = yield* process.run(Effect.exit(Flow.execute({ id: "a" })))
          const defect = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
          const expected = new InvalidName({ name: name.toWellFormed() }).message
          assert.include(defect instanceof Error ? defect.message : "", expected)
          assert.strictEqual(bodies, 1)
        }))
    }

    test(`completing a deferred with ${what} in its name is a defect of the call`, ({ start }) =>
      Effect.gen(function* () {
        const Flow = Harness.define("Unnamed")
        const process = yield* start()
        const exit = yield* process.run(
          WorkflowEngine.use((engine) =>
            Effect.exit(
              engine.deferredDone(Harness.gate("gate"), {
                workflowName: Flow._tag,
                executionId: "a",
                deferredName: name,
                exit: Exit.succeed("open")
              })
            )
          )
        )
        const defect = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
        assert.strictEqual(defect instanceof WorkflowError ? defect.reason._tag : "none", "InvalidName")
      }))
  }

  test("Activity.retry counts attempts, and each has an outcome of its own", ({ start }) =>
    Effect.gen(function* () {
      const Flow = Harness.define("Retry")
      const attempts: Array<number> = []
      const process = yield* start(
        Flow.toLayer(() =>
          Activity.make({
            name: "flaky",
            success: Schema.String,
            error: Schema.String,
            execute: Effect.flatMap(Activity.CurrentAttempt, (attempt) => {
              attempts.push(attempt)
              return attempt < 4 ? Effect.fail("again") : Effect.succeed(`attempt ${attempt}`)
            })
          }).pipe(Activity.retry({ times: 5 }))
        )
      )
      yield* process.run(
        Effect.gen(function* () {
          assert.strictEqual(yield* Flow.execute({ id: "a" }), "attempt 4")
          assert.deepStrictEqual(attempts, [1, 2, 3, 4])
          const types = yield* Harness.told(yield* Flow.executionId({ id: "a" }))
          assert.strictEqual(types.filter((type) => type === "activity-completed").length, 4)
        })
      )
    }))

  test("Activity.raceAll gives the first, and interrupts the others", ({ start }) =>
    Effect.gen(function* () {
      const Flow = Harness.define("Race")
      const interrupted: Array<string> = []
      let started = 0
      const arm = (name: string, ms: number) =>
        Activity.make({
          name,
          success: Schema.String,
          execute: Effect.suspend(() => {
            started++
            return Effect.as(Effect.sleep(ms), name)
          }).pipe(Effect.onInterrupt(() => Effect.sync(() => interrupted.push(name))))
        })
      const process = yield* start(
        Flow.toLayer(() => Activity.raceAll("race", [arm("slow", 1000), arm("middle", 500), arm("fast", 100)]))
      )
      yield* process.run(
        Effect.gen(function* () {
          const fiber = yield* Effect.forkChild(Flow.execute({ id: "a" }))
          yield* Harness.eventually("started", () => started === 3)
          yield* TestClock.adjust(100)
          assert.strictEqual(yield* Fiber.join(fiber), "fast")
          assert.deepStrictEqual(interrupted.toSorted(), ["middle", "slow"])
          assert.strictEqual(yield* Flow.execute({ id: "a" }), "fast")
        })
      )
    }))
}
