import { StepCache } from "@strata/cache/StepCache"
import { ChangeSignal } from "@strata/dirty-queue/ChangeSignal"
import { DurableWriter, insideWrite } from "@strata/durable/DurableWriter"
import type { NewEvent } from "@strata/journal/Event"
import { Journal } from "@strata/journal/Journal"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { SqlError } from "effect/sql/SqlError"
import type * as Workflow from "effect/workflow/Workflow"
import * as WorkflowEngine from "effect/workflow/WorkflowEngine"
import * as ClockDriver from "../../ClockDriver.ts"
import { ClockStore } from "../../ClockStore.ts"
import { DeferredStore } from "../../DeferredStore.ts"
import * as RunEvents from "../../RunEvents.ts"
import { RunStore, type StoredRun, type Wake } from "../../RunStore.ts"
import { OtherWorkflow, WorkflowError } from "../../WorkflowError.ts"
import type { WorkflowEngineOptions } from "../../WorkflowEngineSql.ts"
import * as Codecs from "./codecs.ts"
import * as Commits from "./commits.ts"
import * as Completions from "./completions.ts"
import * as DeferredExits from "./deferredExits.ts"
import type { Live, Registered } from "./live.ts"
import * as Names from "./names.ts"
import * as Ownership from "./ownership.ts"
import * as Runs from "./runs.ts"
import * as Steps from "./steps.ts"
import * as Waiting from "./waiting.ts"

export type Services = RunStore | ClockStore | DeferredStore | Journal | DurableWriter | ChangeSignal

export const make = Effect.fnUntraced(function* (
  options: WorkflowEngineOptions = {}
): Effect.fn.Return<WorkflowEngine.WorkflowEngine["Service"], SqlError, Services | Scope.Scope> {
  const store = yield* RunStore
  const clocks = yield* ClockStore
  const deferreds = yield* DeferredStore
  const journal = yield* Journal
  const plainWriter = yield* DurableWriter
  let doubt = (): void => {}
  const writer = oneAtATime(plainWriter, () => doubt())
  const signal = yield* ChangeSignal
  const context = yield* Effect.context<never>()
  const fork = (effect: Effect.Effect<void>): void => void Effect.runForkWith(context)(effect)

  const cache = Option.getOrUndefined(
    Option.map(yield* Effect.serviceOption(StepCache), (steps) =>
      Context.make(StepCache, steps).pipe(Context.add(Journal, journal), Context.add(DurableWriter, plainWriter))
    )
  )
  const workflows = new Map<string, Registered>()
  let closed = false
  const ended = Deferred.makeUnsafe<void>()
  const untilStored = Waiting.untilStored(ended)

  /** Runs what this process has claimed. */
  const woken = (run: StoredRun): void => {
    if (run.status === "running" && run.owner === ownership.waker().owner) runs.begin(run)
  }
  const signalled = (executionId: string, deferred: string): void => {
    const live = runs.lives.get(executionId)
    if (live !== undefined) runs.preempt(live, deferred)
  }
  const waker = () => ownership.waker()

  const commits = Commits.make({ store, journal, writer, clocks, deferreds, waker, woken, signalled, fork })

  const runs = Runs.make({
    commits,
    engine: () => engine,
    registered: (workflow) => workflows.get(workflow),
    load: Effect.fnUntraced(function* (live) {
      if (live.outcomes !== undefined) return
      const outcomes = new Map<string, string>()
      for (const { attempt, exit, name } of yield* store.outcomes(live.id)) {
        outcomes.set(Steps.stepKey(name, attempt), exit)
      }
      for (const stored of yield* deferreds.ofRun(live.executionId)) {
        if (!live.deferreds.has(stored.name)) live.deferreds.set(stored.name, Steps.toCompletion(stored))
      }
      live.outcomes = outcomes
    }),
    release: (claims) =>
      Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        yield* writer.write(Effect.andThen(store.release(now, claims), store.announce), {
          isolation: "read committed"
        })
      }).pipe(Effect.catchCause((cause) => Effect.logWarning("The engine could not give up runs", cause))),
    fork,
    residentFor: Duration.toMillis(Duration.fromInputUnsafe(options.residentFor ?? "10 seconds")),
    residents: options.residents ?? 1000,
    settled: (run) => completions.notify(run.executionId)
  })

  const isHere = (executionId: string): boolean => runs.lives.get(executionId)?.state === "driving"
  const completions = Completions.make(store, isHere)

  const ownership = yield* Ownership.make({
    store,
    writer,
    signal,
    workflows: () => [...workflows.keys()],
    runs,
    nudge: Effect.fnUntraced(function* (live: Live) {
      const awaited = [...(live.pass?.instance.awaitedDeferreds.keys() ?? [])]
      const completed = new Set((yield* deferreds.ofRun(live.executionId)).map(({ name }) => name))
      for (const name of awaited) if (completed.has(name)) runs.preempt(live, name)
    }),
    completions: completions.check,
    lease: Duration.toMillis(Duration.fromInputUnsafe(options.lease ?? "30 seconds"))
  })
  doubt = ownership.doubt

  const wake = (workflow: Workflow.Any, wake: Wake, event: NewEvent): Effect.Effect<void> =>
    Effect.catch(
      commits.wake({ wake, event }),
      Waiting.failed({ workflow: workflow._tag, executionId: wake.executionId, operation: "wake" })
    )

  const interrupt = (workflow: Workflow.Any, executionId: string, mode: "safe" | "unsafe"): Effect.Effect<void> =>
    Effect.tap(
      wake(workflow, { executionId, explicit: true, interrupt: mode }, RunEvents.Interrupted.make({ mode })),
      () =>
        Effect.sync(() => {
          const live = runs.lives.get(executionId)
          if (mode === "unsafe" && live !== undefined) runs.cut(live)
        })
    )

  /** Interrupts what is called after, or fails by, the end of the engine. */
  const guarded = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.suspend(() => (closed ? Effect.interrupt : effect)).pipe(
      Effect.catchCause((cause) => (closed ? Effect.interrupt : Effect.failCause(cause)))
    )

  const ofWorkflow = (workflow: Workflow.Any, run: StoredRun | undefined): Effect.Effect<StoredRun | undefined> =>
    run !== undefined && run.workflow !== workflow._tag
      ? Effect.die(
          new WorkflowError({
            workflow: workflow._tag,
            executionId: run.executionId,
            reason: new OtherWorkflow({ actual: run.workflow })
          })
        )
      : Effect.succeed(run)

  /** Starts the run unless there is one. */
  const start = Effect.fnUntraced(function* (
    workflow: Workflow.Any,
    executionId: string,
    payload: object,
    parent: string | null
  ) {
    const encoded = yield* asDefect(Codecs.of(workflow).encodePayload(payload, executionId))
    const started = Effect.suspend(() => {
      const owner = workflows.has(workflow._tag) ? waker().owner : null
      return commits.start({ executionId, workflow: workflow._tag, parent, payload: encoded, owner })
    })
    yield* untilStored({ workflow: workflow._tag, executionId, operation: "execute" }, started)
  })

  /** Has the run wake a parent that it was not started by. Gives whether it will. */
  const awaitFor = (call: Waiting.Call, run: StoredRun, parent: string | null): Effect.Effect<boolean> =>
    parent === null || run.parent === parent
      ? Effect.succeed(true)
      : untilStored(call, writer.write(store.await(run.executionId, parent), { isolation: "read committed" }))

  /** Keeps a completed run for a parent that it was not started by. Gives whether it is still there. */
  const keepFor = (call: Waiting.Call, run: StoredRun, parent: string | null): Effect.Effect<boolean> =>
    parent === null || run.parent === parent
      ? Effect.succeed(true)
      : Effect.map(
          untilStored(
            call,
            writer.write(Effect.andThen(store.await(run.executionId, parent), store.find([run.executionId])), {
              isolation: "read committed"
            })
          ),
          ([found]) => found?.id === run.id
        )

  const execute: WorkflowEngine.Encoded["execute"] = Effect.fnUntraced(function* (workflow, options) {
    const { executionId } = options
    const call: Waiting.Call = { workflow: workflow._tag, executionId, operation: "execute" }
    yield* Names.check(workflow._tag, executionId, [executionId, workflow._tag])
    const parent = options.detached === true ? null : (options.parent?.executionId ?? null)
    const ensure = Effect.suspend(() =>
      isHere(executionId) ? Effect.void : start(workflow, executionId, options.payload, parent)
    )
    yield* ensure
    if (options.discard) return
    while (true) {
      const live = runs.lives.get(executionId)
      let run: StoredRun | undefined
      let kept = false
      if (live !== undefined && live.state === "driving" && live.registered.workflow._tag === workflow._tag) {
        if (!(yield* awaitFor(call, live.run, parent))) continue
        kept = true
        run = yield* Deferred.await(live.outcome)
      }
      run ??= (yield* untilStored(call, store.find([executionId])))[0]
      yield* ofWorkflow(workflow, run)
      if (run === undefined) {
        // Somebody has removed it, see `Retention`.
        yield* ensure
        continue
      }
      if (run.result !== null) {
        if (!kept && !(yield* keepFor(call, run, parent))) continue
        return yield* asDefect(Codecs.complete(workflow, run.result, executionId))
      }
      if (isHere(executionId) && run.status === "running") continue
      if (yield* awaitFor(call, run, parent)) return yield* Codecs.suspended(run)
    }
  }) as WorkflowEngine.Encoded["execute"]

  const steps = Steps.make({ commits, runs, deferreds, store, waker, woken, signalled, cache })

  const encoded: WorkflowEngine.Encoded = {
    register: (workflow, execute) =>
      guarded(
        Effect.gen(function* () {
          const registered: Registered = { workflow, execute, context: yield* Effect.context<never>() }
          workflows.set(workflow._tag, registered)
          yield* Effect.addFinalizer(() => {
            if (workflows.get(workflow._tag) === registered) workflows.delete(workflow._tag)
            return runs.abandon(registered)
          })
          ownership.look()
        })
      ),
    execute: ((workflow: Workflow.Any, options: Parameters<typeof execute>[1]) =>
      guarded(execute(workflow, options))) as WorkflowEngine.Encoded["execute"],
    poll: (workflow, executionId) =>
      guarded(
        store.find([executionId]).pipe(
          Effect.catch(Waiting.failed({ workflow: workflow._tag, executionId, operation: "find" })),
          Effect.flatMap(([run]) => ofWorkflow(workflow, run)),
          Effect.flatMap((run) => (run === undefined ? Effect.succeedNone : asDefect(Codecs.resultOf(workflow, run))))
        )
      ),
    interrupt: (workflow, executionId) => guarded(interrupt(workflow, executionId, "safe")),
    interruptUnsafe: (workflow, executionId) => guarded(interrupt(workflow, executionId, "unsafe")),
    resume: (workflow, executionId) =>
      guarded(wake(workflow, { executionId, explicit: true }, RunEvents.Resumed.make({}))),
    awaitComplete: (workflow, executionId) =>
      guarded(
        untilStored(
          { workflow: workflow._tag, executionId, operation: "awaitComplete" },
          completions.await(executionId)
        )
      ),
    activityExecute: (activity, attempt) => guarded(steps.activityExecute(activity, attempt)),
    deferredResult: (deferred) => guarded(steps.deferredResult(deferred)),
    deferredDone: (options) => guarded(steps.deferredDone(options)),
    scheduleClock: (workflow, options) => guarded(steps.scheduleClock(workflow, options))
  }
  const engine = WorkflowEngine.WorkflowEngine.of({
    ...WorkflowEngine.makeUnsafe(encoded),
    deferredResult: DeferredExits.decoded(encoded.deferredResult)
  })

  yield* Effect.addFinalizer(() =>
    Effect.gen(function* () {
      closed = true
      Deferred.doneUnsafe(ended, Effect.void)
      completions.close()
      yield* runs.abandon()
      yield* ownership.leave
    })
  )
  yield* Effect.forkScoped(ownership.loop)
  yield* Effect.forkScoped(
    Effect.provideService(ClockDriver.run({ signal, onFired: steps.fired }), DurableWriter, writer)
  )
  return engine
})

/**
 * Writes of the engine come one after the other, so that on Postgres those of one process do not lock runs and streams of
 * the journal in different orders. A write inside of another one is a part of that. One that fails may have been committed.
 */
const oneAtATime = (writer: DurableWriter["Service"], doubt: () => void): DurableWriter["Service"] => {
  const semaphore = Semaphore.makeUnsafe(1)
  return {
    write: (effect, options) =>
      Effect.flatMap(insideWrite, (isInside) =>
        isInside
          ? writer.write(effect, options)
          : Effect.tapError(semaphore.withPermits(1)(writer.write(effect, options)), () => Effect.sync(doubt))
      )
  }
}

/**
 * Effect's interface of an engine has no failures but those of the workflow: what does not fit its Schemas, and what the
 * storage refuses, are defects with a `WorkflowError`.
 */
const asDefect: <A, R>(effect: Effect.Effect<A, WorkflowError, R>) => Effect.Effect<A, never, R> = Effect.orDie
