import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import type * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import type * as Effect from "effect/Effect"
import type * as Workflow from "effect/workflow/Workflow"
import type { WorkflowEngine, WorkflowInstance } from "effect/workflow/WorkflowEngine"
import type { Interruption, StoredRun } from "../../RunStore.ts"
import type { Failure } from "./commits.ts"

export type Instance = WorkflowInstance["Service"]

/** A workflow that this process runs. */
export interface Registered {
  readonly workflow: Workflow.Any
  readonly execute: (
    payload: object,
    executionId: string
  ) => Effect.Effect<unknown, unknown, WorkflowInstance | WorkflowEngine>
  /** The services of its Schemas. */
  readonly context: Context.Context<never>
}

/** A completed deferred. */
export interface Completion {
  /** Of encoded values. */
  readonly exit: Exit.Exit<unknown, unknown>
  /** Whether its run has seen it. */
  consumed: boolean
}

/** One run of the body, from its beginning to its end or suspension. */
export interface Pass {
  readonly instance: Instance
  /** Once it has begun. */
  fiber: Fiber.Fiber<Workflow.Result<unknown, unknown>> | undefined
  /** Activities that were begun, and clocks that were set, by the body itself. */
  readonly used: Set<string>
  /** It was cut off by `interruptUnsafe`. */
  cut: boolean
}

/**
 * A run in the memory of the process that has claimed it: `driving` while it runs, `resting` after it was suspended, when
 * it is kept for a while, as nobody else may have run it until it is woken. It is `lost` when somebody else has it: then
 * it ends without leaving a trace.
 */
export interface Live {
  readonly registered: Registered
  readonly executionId: string
  readonly id: number
  run: StoredRun
  state: "driving" | "resting" | "ended"
  lost: boolean
  /** Its suspension or its result is being committed. */
  ending: boolean
  /** What is known of its wakes. */
  wakes: number
  calls: number
  interrupted: Interruption
  /** What was known of them when the body began the last time. */
  seen: { readonly wakes: number; readonly calls: number }
  /** Scopes of all passes are below it. Those that suspended keep what they have until the run ends. */
  readonly scope: Scope.Closeable
  readonly instances: Array<Instance>
  /** By attempt and name, once they are loaded. */
  outcomes: Map<string, string> | undefined
  deferreds: Map<string, Completion>
  /** Deferreds that it has seen for the first time, and has not yet told. */
  consumed: Set<string>
  clocks: boolean
  pass: Pass | undefined
  /** A later claim of it by this process, to be taken up when this one ends. */
  next: StoredRun | undefined
  /** With its suspension or result, for those that wait for it here. */
  outcome: Deferred.Deferred<Outcome>
  restingSince: number
  /** Why the storage failed the body. */
  stalled: Failure | undefined
  /** Ends the wait before the storage is tried again. */
  retry: Deferred.Deferred<void> | undefined
}

/** `undefined`: it was lost, look into the store. */
export type Outcome = StoredRun | undefined

export const make = (registered: Registered, run: StoredRun): Live => ({
  registered,
  executionId: run.executionId,
  id: run.id,
  run,
  state: "driving",
  lost: false,
  ending: false,
  wakes: run.wakes,
  calls: run.calls,
  interrupted: run.interrupted,
  seen: { wakes: run.wakes, calls: run.calls },
  scope: Scope.makeUnsafe(),
  instances: [],
  // A run that was started by this claim has no past.
  outcomes: run.fence === 1 ? new Map() : undefined,
  deferreds: new Map(),
  consumed: new Set(),
  clocks: run.fence !== 1,
  pass: undefined,
  next: undefined,
  outcome: Deferred.makeUnsafe(),
  restingSince: 0,
  stalled: undefined,
  retry: undefined
})

/** Takes over what a row tells of a run. */
export const learn = (live: Live, run: Pick<StoredRun, "wakes" | "calls" | "interrupted">): void => {
  live.wakes = Math.max(live.wakes, run.wakes)
  live.calls = Math.max(live.calls, run.calls)
  live.interrupted = run.interrupted
}

export const stepKey = (name: string, attempt: number): string => `${attempt}/${name}`

/** The run that a fiber is part of. */
export class CurrentRun extends Context.Service<CurrentRun, { readonly live: Live; readonly pass: Pass }>()(
  "@strata/engine/internal/CurrentRun"
) {}
