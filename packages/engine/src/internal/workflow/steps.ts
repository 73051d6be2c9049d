import * as Digest from "@strata/durable/Digest"
import { afterCommit, type WriteTransaction } from "@strata/durable/DurableWriter"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import type { SqlError } from "effect/sql/SqlError"
import type * as Activity from "effect/workflow/Activity"
import * as Workflow from "effect/workflow/Workflow"
import { type Encoded, WorkflowInstance } from "effect/workflow/WorkflowEngine"
import { Cached } from "../../ActivityCache.ts"
import type { DurableClock } from "../../ClockStore.ts"
import type { Completion as Stored, DeferredStore } from "../../DeferredStore.ts"
import type { RunStore, StoredRun, Waker } from "../../RunStore.ts"
import { DuplicateName, NoStepCache, OutsideRun, StorageFailed, WorkflowError } from "../../WorkflowError.ts"
import { isName } from "../names.ts"
import * as CachedActivity from "./cached.ts"
import { type Commits, type Failure, isRefusal } from "./commits.ts"
import * as Exits from "./exits.ts"
import type { Completion, Live, Pass } from "./live.ts"
import { CurrentRun, stepKey } from "./live.ts"
import * as Names from "./names.ts"
import type { Runs } from "./runs.ts"

/* What a body does: activities, deferreds and clocks. */

export { stepKey } from "./live.ts"

export interface Parts {
  readonly commits: Commits
  readonly runs: Runs
  readonly deferreds: DeferredStore["Service"]
  readonly store: RunStore["Service"]
  readonly waker: () => Waker
  readonly woken: (run: StoredRun) => void
  /** What activities that are cached need; `undefined` without a step cache. */
  readonly cache: CachedActivity.Services | undefined
  readonly signalled: (executionId: string, deferred: string) => void
}

export const make = (
  parts: Parts
): Pick<Encoded, "activityExecute" | "deferredResult" | "deferredDone" | "scheduleClock"> & {
  /** Wakes the runs of clocks in the write that fires them. */
  readonly fired: (clocks: ReadonlyArray<DurableClock>) => Effect.Effect<void, SqlError, WriteTransaction>
} => ({
  activityExecute: activityExecute(parts),
  deferredResult: deferredResult(parts),
  deferredDone: deferredDone(parts),
  scheduleClock: scheduleClock(parts),
  fired: fired(parts)
})

/** The run that `executionId` names, if the fiber with this context is part of it. */
const runIn = (context: Context.Context<never>, executionId: string): CurrentRun["Service"] | undefined => {
  const current = Context.getOrUndefined(context, CurrentRun)
  return current?.live.executionId === executionId ? current : undefined
}

const currentRun = (executionId: string): Effect.Effect<CurrentRun["Service"] | undefined> =>
  Effect.contextWith((context) => Effect.succeed(runIn(context, executionId)))

/** Whether an instance is the body's own, or a copy of it, and not that of an activity. */
const isBody = (pass: Pass, instance: WorkflowInstance["Service"]): boolean => pass.instance.scope === instance.scope

/** Ends the body from within; the driver of the run goes on from there. */
const cutOff = (f: () => void): Effect.Effect<never> =>
  Effect.suspend(() => {
    f()
    return Effect.andThen(Effect.yieldNow, Effect.interrupt)
  })

// ---------------------------------------------------------------------------------------------------------------------
// activities
// ---------------------------------------------------------------------------------------------------------------------

const activityExecute =
  (parts: Parts): Encoded["activityExecute"] =>
  (activity, attempt) =>
    Effect.contextWith((context: Context.Context<WorkflowInstance>) => {
      const instance = Context.get(context, WorkflowInstance)
      const { executionId, workflow } = instance
      const refuse = (reason: WorkflowError["reason"]) =>
        Effect.die(new WorkflowError({ workflow: workflow._tag, executionId, reason }))
      const current = runIn(context, executionId)
      if (current === undefined) return refuse(new OutsideRun({}))
      if (!isName(activity.name)) return Names.refuse(workflow._tag, executionId, activity.name)
      const { live, pass } = current
      const key = stepKey(activity.name, attempt)
      const own = isBody(pass, instance)
      if (own) {
        if (pass.used.has(key)) return refuse(new DuplicateName({ kind: "activity", name: activity.name, attempt }))
        pass.used.add(key)
      }
      const stored = live.outcomes?.get(key)
      if (stored !== undefined) return Effect.succeed(new Workflow.Complete({ exit: Exits.activity.decode(stored) }))
      // A pending interruption replays the body only to have its compensations, so that nothing new may run. These run
      // once it has taken effect.
      if (live.lost || (live.interrupted !== "none" && !instance.interrupted)) {
        return Effect.succeed(new Workflow.Suspended({}))
      }
      const inner = WorkflowInstance.initial(workflow, executionId)
      inner.interrupted = instance.interrupted
      const result = Effect.onExitPrimitive(run(parts, activity, inner), (exit) => {
        // Another branch of this body, or its retry, may run it again when it left no outcome.
        if (own && (Exit.isFailure(exit) || exit.value._tag === "Suspended")) pass.used.delete(key)
        return undefined
      })
      return Effect.flatMap(result, (result) =>
        result._tag === "Suspended"
          ? Effect.succeed(result)
          : keep(parts, live, { name: activity.name, attempt, workflow: workflow._tag }, result)
      )
    })

/** Commits the outcome of an activity, and gives what replays of the body will find. */
const keep = (
  { commits, runs }: Parts,
  live: Live,
  { attempt, name, workflow }: { readonly name: string; readonly attempt: number; readonly workflow: string },
  result: Workflow.Complete<unknown, unknown>
): Effect.Effect<Workflow.Result<unknown, unknown>> => {
  const { executionId } = live
  const exit = Exits.activity.encode(result.exit)
  const digest = Digest.sha256(exit)
  const recorded = commits.record({
    executionId,
    outcome: { id: live.id, fence: live.run.fence, name, attempt, exit, digest },
    how: Exits.outcome(result.exit),
    consumed: takeConsumed(live)
  })
  const remembered = Effect.map(recorded, (kept) => {
    if (kept) live.outcomes?.set(stepKey(name, attempt), exit)
    return kept
  })
  return Effect.matchEffect(Effect.uninterruptible(remembered), {
    onFailure: stallOrFail(runs, live, workflow, executionId, "activityExecute"),
    onSuccess: (kept) => {
      if (!kept) return cutOff(() => runs.lose(live))
      // A replay gets what is stored, so the first run does too.
      return Effect.succeed(
        Exit.isSuccess(result.exit) ? result : new Workflow.Complete({ exit: Exits.activity.decode(exit) })
      )
    }
  })
}

const run = (parts: Parts, activity: Activity.Any, instance: WorkflowInstance["Service"]) =>
  Effect.provideService(Workflow.intoResult(bodyOf(parts, activity, instance)), WorkflowInstance, instance)

const bodyOf = (
  { cache }: Parts,
  activity: Activity.Any,
  { executionId, workflow }: WorkflowInstance["Service"]
): Effect.Effect<unknown, unknown> => {
  const options = Context.get(activity.annotations, Cached)
  if (options === undefined) return activity.executeEncoded as Effect.Effect<unknown, unknown>
  if (cache !== undefined) return CachedActivity.run(cache, activity, executionId, options)
  const reason = new NoStepCache({ activity: activity.name })
  return Effect.die(new WorkflowError({ workflow: workflow._tag, executionId, reason }))
}

const takeConsumed = (live: Live): ReadonlyArray<string> => {
  if (live.consumed.size === 0) return []
  const names = [...live.consumed]
  live.consumed.clear()
  return names
}

// ---------------------------------------------------------------------------------------------------------------------
// deferreds
// ---------------------------------------------------------------------------------------------------------------------

const deferredResult =
  (parts: Parts): Encoded["deferredResult"] =>
  (deferred) =>
    Effect.contextWith((context: Context.Context<WorkflowInstance>) => {
      const { executionId, workflow } = Context.get(context, WorkflowInstance)
      if (!isName(deferred.name)) return Names.refuse(workflow._tag, executionId, deferred.name)
      const live = runIn(context, executionId)?.live
      const known = live?.deferreds.get(deferred.name)
      return live !== undefined && known !== undefined
        ? Effect.succeed(Option.some(consume(live, deferred.name, known)))
        : storedResult(parts, live, workflow._tag, executionId, deferred.name)
    })

const storedResult = Effect.fnUntraced(function* (
  { deferreds, runs }: Parts,
  live: Live | undefined,
  workflow: string,
  executionId: string,
  name: string
) {
  const stored = yield* deferreds
    .get({ executionId, name })
    .pipe(Effect.catch(stallOrFail(runs, live, workflow, executionId, "deferredResult")))
  if (Option.isNone(stored)) return Option.none()
  const completion = toCompletion(stored.value)
  live?.deferreds.set(name, completion)
  return Option.some(live === undefined ? completion.exit : consume(live, name, completion))
})

export const toCompletion = (stored: Stored): Completion => ({
  exit: Exits.deferred.decode(stored.exit),
  consumed: stored.consumedAt !== undefined
})

const consume = (live: Live, name: string, completion: Completion): Exit.Exit<unknown, unknown> => {
  if (!completion.consumed) {
    completion.consumed = true
    live.consumed.add(name)
  }
  return completion.exit
}

/** The completion commits together with the wake of the run, which is not waited for. */
const deferredDone = ({ commits }: Parts): Encoded["deferredDone"] =>
  Effect.fnUntraced(function* ({ deferredName, executionId, exit, workflowName }) {
    yield* Names.check(workflowName, executionId, [executionId, deferredName])
    yield* commits
      .signal({ executionId, name: deferredName, exit: Exits.deferred.encode(exit) })
      .pipe(Effect.catch(storageFailed(workflowName, executionId, "deferredDone")))
  })

const scheduleClock = ({ commits, runs }: Parts): Encoded["scheduleClock"] =>
  Effect.fnUntraced(function* (workflow, { clock, executionId }) {
    yield* Names.check(workflow._tag, executionId, [executionId, clock.name, clock.deferred.name])
    const current = yield* currentRun(executionId)
    const instance = yield* Effect.serviceOption(WorkflowInstance)
    if (current !== undefined && Option.isSome(instance) && isBody(current.pass, instance.value)) {
      const key = `clock/${clock.name}`
      if (current.pass.used.has(key)) {
        const reason = new DuplicateName({ kind: "clock", name: clock.name })
        return yield* Effect.die(new WorkflowError({ workflow: workflow._tag, executionId, reason }))
      }
      current.pass.used.add(key)
    }
    const live = current?.live ?? runs.lives.get(executionId)
    // A replay: it was set, and has fired.
    if (live?.deferreds.has(clock.deferred.name) === true) return
    if (live !== undefined) live.clocks = true
    yield* commits
      .schedule({ executionId, name: clock.name, deferred: clock.deferred.name, duration: clock.duration })
      .pipe(Effect.catch(stallOrFail(runs, current?.live, workflow._tag, executionId, "scheduleClock")))
  })

const fired = ({ signalled, store, waker, woken }: Parts) =>
  Effect.fnUntraced(function* (fired: ReadonlyArray<DurableClock>) {
    const wakes = fired.map(({ executionId }) => ({ executionId, explicit: false }))
    const rows = yield* store.wake(yield* Clock.currentTimeMillis, wakes, waker())
    const { owner } = waker()
    if (rows.some((row) => row.status === "running" && row.owner !== owner)) yield* store.announce
    yield* afterCommit(
      Effect.sync(() => {
        for (const row of rows) woken(row)
        for (const { deferred, executionId } of fired) signalled(executionId, deferred)
      })
    )
  })

/** A run waits for storage that fails. What is refused is a defect, as it is for those that are no part of a run. */
const stallOrFail =
  (runs: Runs, live: Live | undefined, workflow: string, executionId: string, operation: string) =>
  (cause: Failure): Effect.Effect<never> =>
    live === undefined || isRefusal(cause)
      ? storageFailed(workflow, executionId, operation)(cause)
      : cutOff(() => runs.stall(live, cause))

const storageFailed = (workflow: string, executionId: string, operation: string) => (cause: Failure) =>
  Effect.die(new WorkflowError({ workflow, executionId, reason: new StorageFailed({ operation, cause }) }))
