import { assert } from "@effect/vitest"
import * as Compaction from "@strata/journal/Compaction"
import * as Folds from "@strata/journal/Folds"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as DurableDeferred from "effect/workflow/DurableDeferred"
import * as Retention from "../Retention.ts"
import { RunStore } from "../RunStore.ts"
import type { WorkflowTier } from "./workflowHarness.ts"
import * as Harness from "./workflowHarness.ts"

/** Runs that settled, while retention removes what it may. */
export const workflowKeeping = <E>(tier: WorkflowTier<E>): void => {
  const test = Harness.makeTest(tier)

  const sweep = Effect.provide(
    Retention.sweep({ maxRuns: 0, grace: 0 }),
    Layer.fresh(Compaction.layer.pipe(Layer.provide(Folds.layer)))
  )

  const known = (...executionIds: ReadonlyArray<string>) =>
    Effect.map(
      RunStore.use((store) => store.find(executionIds)),
      (runs) => runs.map(({ executionId }) => executionId)
    )

  test("a run that another one has asked for stays until that has settled, whoever started it", ({ start }) =>
    Effect.gen(function* () {
      const Child = Harness.define("SharedChild")
      const Flow = Harness.define("Sharing")
      const Gate = Harness.gate("gate")
      let children = 0
      const workflows = Layer.merge(
        Child.toLayer(() => Effect.sync(() => `child ${++children}`)),
        Flow.toLayer(() =>
          Effect.gen(function* () {
            const value = yield* Child.execute({ id: "shared" })
            return `${value} ${yield* DurableDeferred.await(Gate)}`
          })
        )
      )
      const process = yield* start(workflows)
      const childId = yield* process.run(Child.executionId({ id: "shared" }))
      const executionId = yield* process.run(Flow.executionId({ id: "a" }))
      yield* process.run(
        Effect.gen(function* () {
          // It is completed before the other one asks.
          assert.strictEqual(yield* Child.execute({ id: "shared" }), "child 1")
          yield* Flow.execute({ id: "a" }, { discard: true })
          yield* Harness.suspended(Flow, executionId)
          assert.deepInclude(yield* sweep, { runs: 0, needed: 1 })
          assert.deepStrictEqual(yield* known(childId, executionId), [childId, executionId])
        })
      )
      // Another process replays it.
      yield* process.stop
      const next = yield* start(workflows)
      yield* next.run(
        Effect.gen(function* () {
          yield* Harness.open(Gate, Flow, executionId, "open")
          assert.deepStrictEqual(yield* Harness.completed(Flow, executionId), Exit.succeed("child 1 open"))
          assert.strictEqual(children, 1)
          assert.deepInclude(yield* sweep, { runs: 2, needed: 0 })
          assert.deepStrictEqual(yield* known(childId, executionId), [])
          assert.strictEqual(yield* Child.execute({ id: "shared" }), "child 2")
        })
      )
    }))
}
