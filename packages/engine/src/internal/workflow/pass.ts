import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Workflow from "effect/workflow/Workflow"
import { WorkflowEngine, WorkflowInstance } from "effect/workflow/WorkflowEngine"
import * as Codecs from "./codecs.ts"
import * as Exits from "./exits.ts"
import type { Instance, Live, Pass } from "./live.ts"
import * as Lives from "./live.ts"

/** An end of the body: it is suspended, or has a result. */
export type Settled = Workflow.Suspended | Completed

export interface Completed extends Codecs.Settled {
  readonly _tag: "Completed"
}

/** Runs the body once, in an instance of its own whose scope is one of the run. Says nothing of use of a run that is lost. */
export const run = Effect.fnUntraced(function* (
  parts: {
    readonly engine: () => WorkflowEngine["Service"]
    readonly load: (live: Live) => Effect.Effect<void, unknown>
  },
  live: Live
): Effect.fn.Return<Settled, unknown> {
  const { executionId, registered } = live
  // Read first: whoever wakes it from here on may not be seen by this pass.
  live.seen = { wakes: live.wakes, calls: live.calls }
  yield* parts.load(live)
  const payload = yield* Effect.exit(
    Effect.provideContext(Codecs.of(registered.workflow).decodePayload(live.run), registered.context)
  )
  if (Exit.isFailure(payload)) {
    // Nothing is lost: it can be resumed when the code fits again.
    return new Workflow.Suspended({ failed: true, cause: Cause.die(Cause.squash(payload.cause)) })
  }
  const instance = WorkflowInstance.initial(registered.workflow, executionId, { scope: Scope.forkUnsafe(live.scope) })
  live.instances.push(instance)
  const pass: Pass = { instance, fiber: undefined, used: new Set(), cut: false }
  live.pass = pass
  if (live.lost) return completed(Exit.interrupt(), false)
  pass.fiber = yield* registered.execute(payload.value, executionId).pipe(
    Effect.onExit((exit) => applyInterruption(live, pass, exit)),
    Workflow.intoResult,
    // Added one by one, as merging contexts copies all that is there.
    Effect.updateContext((context: Context.Context<never>) =>
      context.pipe(
        Context.add(WorkflowEngine, parts.engine()),
        Context.add(WorkflowInstance, instance),
        Context.add(Lives.CurrentRun, { live, pass })
      )
    ),
    // It ends by what becomes of the body, however it is interrupted.
    Effect.forkDetach({ uninterruptible: true })
  )
  const exit = yield* Fiber.await(pass.fiber)
  live.pass = undefined
  if (Exit.isFailure(exit)) return completed(Exit.failCause(exit.cause), false)
  return exit.value._tag === "Suspended" ? exit.value : completed(exit.value.exit, true)
})

const completed = (exit: Exit.Exit<unknown, unknown>, captured: boolean): Completed => ({
  _tag: "Completed",
  exit,
  captured
})

/**
 * A pending interruption takes effect where the run would suspend; one that is unsafe also where it would complete. A
 * body that `interruptUnsafe` has cut off is replayed first, so that its compensations are there.
 */
const applyInterruption = (live: Live, pass: Pass, exit: Exit.Exit<unknown, unknown>): Effect.Effect<void> => {
  const { instance } = pass
  if (live.lost || live.stalled !== undefined || live.interrupted === "none") return Effect.void
  if (!wouldSuspend(instance, exit)) {
    if (live.interrupted === "safe") return Effect.void
    if (pass.cut && Exits.cutOff(exit)) {
      instance.suspended = true
      return Effect.void
    }
  }
  instance.interrupted = true
  instance.suspended = false
  return Effect.withFiber((fiber) => Effect.interruptible(Fiber.interrupt(fiber)))
}

const wouldSuspend = (instance: Instance, exit: Exit.Exit<unknown, unknown>): boolean =>
  instance.suspended || (Context.get(instance.workflow.annotations, Workflow.SuspendOnFailure) && Exit.isFailure(exit))

/** The result as it is stored. One that does not fit its Schema is the run's defect. */
export const encode = Effect.fnUntraced(function* (live: Live, settled: Completed) {
  const { executionId, registered } = live
  const codecs = Codecs.of(registered.workflow)
  const encoded = yield* Effect.exit(
    Effect.provideContext(codecs.encodeResult(settled, executionId), registered.context)
  )
  if (Exit.isSuccess(encoded)) return { exit: settled.exit, encoded: encoded.value }
  const exit = Exit.die(Cause.squash(encoded.cause))
  return { exit, encoded: yield* codecs.encodeResult({ exit, captured: true }, executionId) }
})
