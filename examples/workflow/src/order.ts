/** An order that reserves goods, gives its customer time to think, asks for an approval, and charges. */
import { Console, Effect, Schema } from "effect"
import { Activity, DurableClock, DurableDeferred, Workflow } from "effect/workflow"

export class Rejected extends Schema.TaggedError<Rejected>("order/Rejected")("Rejected", { id: Schema.String }) {}

export const Order = Workflow.make("Order", {
  payload: { id: Schema.String, amount: Schema.Int },
  success: Schema.String,
  error: Rejected,
  idempotencyKey: ({ id }) => id
})

/** Somebody says yes or no, from whatever process. */
export const Approval = DurableDeferred.make("approval", { success: Schema.Boolean })

export const approve = Effect.fnUntraced(function* (id: string, approved: boolean) {
  // The id of a run is made of the order's id alone.
  const executionId = yield* Order.executionId({ id, amount: 0 })
  const token = DurableDeferred.tokenFromExecutionId(Approval, { workflow: Order, executionId })
  yield* DurableDeferred.succeed(Approval, { token, value: approved })
})

export const layer = Order.toLayer(
  Effect.fnUntraced(function* ({ amount, id }) {
    // Completed activities do not run again, however often the process dies.
    yield* Activity.make({ name: "reserve", execute: Console.log(`reserved ${id}`) }).pipe(
      // Undone when the run fails later, or is interrupted.
      Order.withCompensation(() => Activity.make({ name: "release", execute: Console.log(`released ${id}`) }))
    )
    // Nothing waits in memory meanwhile, and the deadline is that of the first start.
    yield* DurableClock.sleep({ name: "think it over", duration: "2 seconds", inMemoryThreshold: 0 })
    yield* Activity.make({ name: "ask", execute: Console.log(`asked for the approval of ${id}`) })
    if (!(yield* DurableDeferred.await(Approval))) return yield* new Rejected({ id })
    return yield* Activity.make({
      name: "charge",
      success: Schema.String,
      execute: Effect.as(Console.log(`charged ${amount} for ${id}`), `${id}: ${amount} paid`)
    })
  })
)
