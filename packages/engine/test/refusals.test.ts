import { assert, it } from "@effect/vitest"
import { ClockStore } from "@strata/engine/ClockStore"
import { InvalidName, StateError } from "@strata/engine/StateError"
import * as WorkflowEngineSql from "@strata/engine/WorkflowEngineSql"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as DurableClock from "effect/workflow/DurableClock"
import * as Workflow from "effect/workflow/Workflow"
import { memory } from "./workflowTiers.ts"

const Flow = Workflow.make("Refused", { payload: { id: Schema.String }, idempotencyKey: ({ id }) => id })

/** A store that takes no clock. */
const refusing = Layer.effect(
  ClockStore,
  Effect.map(ClockStore, (store) => ({
    ...store,
    schedule: () => Effect.fail(new StateError({ reason: new InvalidName({ kind: "clock", name: "nap" }) }))
  }))
)

it.effect("what the storage would refuse each time is a defect of the run, which does not wait for it", () =>
  Effect.gen(function* () {
    const stores = yield* memory.database
    const engine = Flow.toLayer(() => DurableClock.sleep({ name: "nap", duration: "1 hour" })).pipe(
      Layer.provideMerge(WorkflowEngineSql.layer()),
      Layer.provideMerge(Layer.provideMerge(refusing, stores))
    )
    const exit = yield* Effect.exit(Flow.execute({ id: "a" })).pipe(Effect.provide(Layer.fresh(engine)))
    const defect = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
    assert.include(defect instanceof Error ? defect.message : "", "The storage failed in scheduleClock")
  })
)
