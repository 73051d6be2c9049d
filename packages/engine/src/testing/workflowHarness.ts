import { assert, it } from "@effect/vitest"
import type { ChangeSignal } from "@strata/dirty-queue/ChangeSignal"
import type { DurableWriter } from "@strata/durable/DurableWriter"
import { Journal } from "@strata/journal/Journal"
import type { JournalStorage } from "@strata/journal/JournalStorage"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import * as DurableDeferred from "effect/workflow/DurableDeferred"
import * as Workflow from "effect/workflow/Workflow"
import type { WorkflowEngine } from "effect/workflow/WorkflowEngine"
import type { ClockStorage } from "../ClockStorage.ts"
import type { ClockStore } from "../ClockStore.ts"
import type { DeferredStorage } from "../DeferredStorage.ts"
import type { DeferredStore } from "../DeferredStore.ts"
import type { RunStore } from "../RunStore.ts"
import * as RunStream from "../RunStream.ts"
import * as WorkflowEngineSql from "../WorkflowEngineSql.ts"

/**
 * The stores of an engine.
 *
 * @since 0.1.0
 * @category models
 */
export type Stores =
  | RunStore
  | ClockStore
  | ClockStorage
  | DeferredStore
  | DeferredStorage
  | Journal
  | JournalStorage
  | DurableWriter
  | ChangeSignal

/**
 * A tier of the engine. Each build of the layer that `database` gives is another process on one database, new for each
 * run of `database`. Its clock is Effect's.
 *
 * @since 0.1.0
 * @category models
 */
export interface WorkflowTier<E> {
  readonly database: Effect.Effect<Layer.Layer<Stores, E>, E, Scope.Scope>
}

/** A process that runs workflows until it is stopped, or its test has ended. */
export interface Process {
  readonly run: <A, E>(effect: Effect.Effect<A, E, Stores | WorkflowEngine>) => Effect.Effect<A, E>
  readonly stop: Effect.Effect<void>
}

export interface Database {
  readonly start: (
    workflows?: Layer.Layer<never, never, WorkflowEngine>,
    options?: WorkflowEngineSql.WorkflowEngineOptions
  ) => Effect.Effect<Process>
}

/** A test on a database of its own. */
export const makeTest =
  <E>(tier: WorkflowTier<E>) =>
  (title: string, body: (database: Database) => Effect.Effect<void, unknown>): void =>
    it.effect(title, () =>
      Effect.gen(function* () {
        const scope = yield* Effect.scope
        const stores = yield* tier.database
        yield* body({
          start: (workflows = Layer.empty, options) =>
            Effect.gen(function* () {
              const own = yield* Scope.fork(scope)
              const context = yield* Layer.buildWithScope(
                Layer.fresh(
                  workflows.pipe(Layer.provideMerge(WorkflowEngineSql.layer(options)), Layer.provideMerge(stores))
                ),
                own
              )
              return {
                run: (effect) => Effect.provideContext(effect, context),
                stop: Scope.close(own, Exit.void)
              } satisfies Process
            }).pipe(Effect.orDie)
        })
      })
    )

// ---------------------------------------------------------------------------------------------------------------------
// waiting
// ---------------------------------------------------------------------------------------------------------------------

/** Lets what is asynchronous outside of the test's clock happen. */
export const moment = TestClock.withLive(Effect.sleep(3))

/** Looks until it finds what it looks for, for a while of real time in which the clock of the test stands still. */
export const until = <A, E, R>(
  what: string,
  look: Effect.Effect<A, E, R>,
  found: (value: A) => boolean
): Effect.Effect<A, E, R> =>
  Effect.gen(function* () {
    for (let i = 0; i < 3000; i++) {
      const value = yield* look
      if (found(value)) return value
      yield* moment
    }
    return assert.fail(`never happened: ${what}`)
  })

interface Polled<A, E> {
  readonly _tag: string
  readonly poll: (executionId: string) => Effect.Effect<Option.Option<Workflow.Result<A, E>>, never, WorkflowEngine>
}

export const suspended = <A, E>(workflow: Polled<A, E>, executionId: string) =>
  Effect.map(
    until(
      `${workflow._tag} is suspended`,
      workflow.poll(executionId),
      (found) => Option.isSome(found) && found.value._tag === "Suspended"
    ),
    (found) => Option.getOrThrow(found) as Workflow.Suspended
  )

export const completed = <A, E>(workflow: Polled<A, E>, executionId: string) =>
  Effect.map(
    until(
      `${workflow._tag} is completed`,
      workflow.poll(executionId),
      (found) => Option.isSome(found) && found.value._tag === "Complete"
    ),
    (found) => {
      const result = Option.getOrThrow(found)
      return result._tag === "Complete" ? result.exit : assert.fail("not complete")
    }
  )

export const eventually = (what: string, condition: () => boolean): Effect.Effect<void> =>
  Effect.asVoid(until(what, Effect.sync(condition), Boolean))

// ---------------------------------------------------------------------------------------------------------------------
// workflows
// ---------------------------------------------------------------------------------------------------------------------

/** A workflow of text, named by the test. */
export const define = (tag: string) =>
  Workflow.make(tag, {
    payload: { id: Schema.String },
    success: Schema.String,
    error: Schema.String,
    idempotencyKey: ({ id }) => id
  })

export const gate = (name: string) => DurableDeferred.make(name, { success: Schema.String })

export const open = (deferred: ReturnType<typeof gate>, workflow: Workflow.Any, executionId: string, value: string) =>
  DurableDeferred.succeed(deferred, {
    token: DurableDeferred.tokenFromExecutionId(deferred, { workflow, executionId }),
    value
  })

/** What the journal tells of a run. */
export const told = (executionId: string) =>
  Effect.flatMap(Journal, (journal) =>
    Effect.map(journal.read({ stream: RunStream.of(executionId) }), (entries) => entries.map(({ type }) => type))
  )
