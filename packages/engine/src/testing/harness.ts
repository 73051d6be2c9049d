/**
 * What the suites of clocks, deferreds and their fold have in common: how a tier is given to them, and what they work
 * with.
 *
 * @since 0.1.0
 */
import { assert } from "@effect/vitest"
import { type DurableWriter, write } from "@strata/durable/DurableWriter"
import * as Checkpoint from "@strata/journal/Checkpoint"
import * as Compaction from "@strata/journal/Compaction"
import * as Folds from "@strata/journal/Folds"
import * as Journal from "@strata/journal/Journal"
import type { JournalError } from "@strata/journal/JournalError"
import type { JournalStorage } from "@strata/journal/JournalStorage"
import * as Projections from "@strata/journal/Projections"
import * as Rewind from "@strata/journal/Rewind"
import * as Clock from "effect/Clock"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { ClockStorage } from "../ClockStorage.ts"
import * as ClockStore from "../ClockStore.ts"
import * as DeferredClockFold from "../DeferredClockFold.ts"
import { DeferredStorage } from "../DeferredStorage.ts"
import * as DeferredStore from "../DeferredStore.ts"
import * as RunStream from "../RunStream.ts"
import { RunStore } from "../RunStore.ts"

// ---------------------------------------------------------------------------------------------------------------------
// tiers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * What a tier brings. Its clock storage takes the time from Effect's `Clock`.
 *
 * @since 0.1.0
 * @category models
 */
export type Storages = ClockStorage | DeferredStorage | DurableWriter | JournalStorage | RunStore

/**
 * A tier to be tested.
 *
 * @since 0.1.0
 * @category models
 */
export interface Tier<E> {
  /** Over an empty store. */
  readonly layer: Layer.Layer<Storages, E>
  /** Two independent ones over one empty store; a tier without a store outside the process has none. */
  readonly twoConnections?:
    | (() => Effect.Effect<readonly [Context.Context<Storages>, Context.Context<Storages>], E, Scope.Scope>)
    | undefined
}

/**
 * What tests work with.
 *
 * @since 0.1.0
 * @category models
 */
export type Services =
  | Storages
  | Checkpoint.Checkpoints
  | ClockStore.ClockStore
  | Compaction.Compaction
  | DeferredStore.DeferredStore
  | Folds.Folds
  | Journal.Journal
  | Projections.Projections
  | Rewind.Rewind

/**
 * The services over the storages of a tier. The fold of clocks and deferreds is registered, unless `fold` is false.
 *
 * @since 0.1.0
 * @category layers
 */
export const services = (options?: {
  readonly fold?: boolean | undefined
}): Layer.Layer<Services, JournalError, Storages> =>
  Layer.mergeAll(
    Checkpoint.layer,
    Compaction.layer,
    Rewind.layer,
    options?.fold === false ? Layer.empty : DeferredClockFold.layer
  ).pipe(
    Layer.provideMerge(ClockStore.layer),
    Layer.provideMerge(DeferredStore.layer),
    Layer.provideMerge(Journal.layer()),
    Layer.provideMerge(Layer.mergeAll(Folds.layer, Projections.layer)),
    Layer.provideMerge(Layer.effectContext(Effect.context<Storages>()))
  )

// ---------------------------------------------------------------------------------------------------------------------
// operations
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Starts runs, with a row each.
 *
 * @since 0.1.0
 * @category operations
 */
export const start = (...executionIds: ReadonlyArray<string>) => startChildren(null, ...executionIds)

/**
 * Starts runs that a parent waits for, with a row each.
 *
 * @since 0.1.0
 * @category operations
 */
export const startChildren = (parent: string | null, ...executionIds: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const runs = executionIds.map((executionId) => ({
      executionId,
      workflow: "test",
      parent,
      payload: "{}",
      owner: null
    }))
    yield* write(RunStore.use((store) => store.start(now, runs)))
  })

/**
 * @since 0.1.0
 * @category operations
 */
export const schedule = (executionId: string, name: string, millis: number) =>
  Effect.map(
    write(
      ClockStore.ClockStore.use((store) =>
        store.schedule([{ executionId, name, deferred: deferredOf(name), duration: millis }])
      )
    ),
    ([scheduled]) => scheduled!
  )

/**
 * The deferred that a clock of these suites completes.
 *
 * @since 0.1.0
 * @category operations
 */
export const deferredOf = (clock: string): string => `clock/${clock}`

/**
 * @since 0.1.0
 * @category operations
 */
export const complete = (executionId: string, name: string, exit: Schema.Json, metadata?: Schema.Json) =>
  Effect.map(
    write(DeferredStore.DeferredStore.use((store) => store.complete([{ executionId, name, exit, metadata }]))),
    ([completed]) => completed!
  )

/**
 * @since 0.1.0
 * @category operations
 */
export const consume = (executionId: string, ...names: ReadonlyArray<string>) =>
  Effect.map(
    write(DeferredStore.DeferredStore.use((store) => store.consume(names.map((name) => ({ executionId, name }))))),
    (keys) => keys.map(({ name }) => name)
  )

/**
 * Fires what is due, and gives the names of the clocks.
 *
 * @since 0.1.0
 * @category operations
 */
export const fire = (limit?: number) =>
  Effect.map(write(ClockStore.ClockStore.use((store) => store.fire({ limit }))), ({ fired }) =>
    fired.map(({ name }) => name)
  )

/**
 * Rewinds the stream of a run.
 *
 * @since 0.1.0
 * @category operations
 */
export const rewind = (executionId: string, after: number) =>
  Rewind.Rewind.use((service) => service.rewind({ stream: RunStream.of(executionId), after }))

/**
 * Deletes the clock table, and all stamps of these runs.
 *
 * @since 0.1.0
 * @category operations
 */
export const wipe = Effect.fnUntraced(function* (...executionIds: ReadonlyArray<string>) {
  const clocks = yield* ClockStorage
  const deferreds = yield* DeferredStorage
  yield* write(
    Effect.gen(function* () {
      yield* clocks.removeAll
      for (const executionId of executionIds) {
        const found = yield* deferreds.ofRun(executionId)
        yield* deferreds.stamp(found.map(({ name }) => ({ executionId, name, completedAt: null, consumedAt: null })))
      }
    })
  )
})

// ---------------------------------------------------------------------------------------------------------------------
// looks
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The entries of a run: types and names.
 *
 * @since 0.1.0
 * @category looks
 */
export const story = (executionId: string) =>
  Effect.map(
    Journal.Journal.use((journal) => journal.read({ stream: RunStream.of(executionId) })),
    (entries) =>
      entries.map(({ payload, type }) =>
        typeof payload === "object" && payload !== null && "name" in payload
          ? `${type} ${String(payload["name"])}`
          : type
      )
  )

/**
 * The rows of runs, in an order that does not depend on the store.
 *
 * @since 0.1.0
 * @category looks
 */
export const rows = Effect.fnUntraced(function* (...executionIds: ReadonlyArray<string>) {
  const clocks = yield* ClockStorage
  const deferreds = yield* DeferredStorage
  return yield* Effect.forEach(executionIds, (executionId) =>
    Effect.gen(function* () {
      return {
        clocks: byName(yield* clocks.ofRun(executionId)),
        deferreds: byName(yield* deferreds.ofRun(executionId))
      }
    })
  )
})

const byName = <A extends { readonly name: string }>(rows: ReadonlyArray<A>): ReadonlyArray<A> =>
  rows.toSorted((a, b) => (a.name < b.name ? -1 : 1))

/**
 * Looks until it holds, for a while of real time in which the clock of the test stands still.
 *
 * @since 0.1.0
 * @category looks
 */
export const eventually = <E, R>(look: Effect.Effect<boolean, E, R>): Effect.Effect<void, E, R> =>
  Effect.gen(function* () {
    for (let i = 0; i < 3000; i++) {
      if (yield* look) return
      yield* TestClock.withLive(Effect.sleep(3))
    }
    assert.fail("it never holds")
  })
