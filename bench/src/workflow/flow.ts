/** Workflows of five trivial activities, on whichever engine is in context. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Activity from "effect/workflow/Activity"
import * as DurableClock from "effect/workflow/DurableClock"
import * as DurableDeferred from "effect/workflow/DurableDeferred"
import * as Workflow from "effect/workflow/Workflow"

export const Five = Workflow.make("Five", {
  payload: { id: Schema.String },
  success: Schema.Finite,
  idempotencyKey: ({ id }) => id
})

/** Gives how late it woke, in milliseconds. */
export const Nap = Workflow.make("Nap", {
  payload: { id: Schema.String, start: Schema.Finite },
  success: Schema.Finite,
  idempotencyKey: ({ id }) => id
})

export const Gate = DurableDeferred.make("gate")

export const Long = Workflow.make("Long", {
  payload: { id: Schema.String, steps: Schema.Int },
  success: Schema.Finite,
  idempotencyKey: ({ id }) => id
})

export const layer = Layer.mergeAll(
  Five.toLayer(
    Effect.fnUntraced(function* () {
      let sum = 0
      for (let i = 0; i < 5; i++) {
        sum += yield* Activity.make({ name: `step ${i}`, success: Schema.Finite, execute: Effect.succeed(i) })
      }
      return sum
    })
  ),
  Nap.toLayer(
    Effect.fnUntraced(function* ({ start }) {
      yield* DurableClock.sleep({ name: "nap", duration: "1 second", inMemoryThreshold: 0 })
      return yield* Activity.make({
        name: "awake",
        success: Schema.Finite,
        execute: Effect.sync(() => Date.now() - start - 1000)
      })
    })
  ),
  Long.toLayer(
    Effect.fnUntraced(function* ({ steps }) {
      let sum = 0
      for (let i = 0; i < steps; i++) {
        sum += yield* Activity.make({ name: `step ${i}`, success: Schema.Finite, execute: Effect.succeed(1) })
      }
      yield* DurableDeferred.await(Gate)
      return sum
    })
  )
)
