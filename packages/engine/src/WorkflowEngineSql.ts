/**
 * Durable workflows on one SQLite file, or on Postgres: a `WorkflowEngine` for `effect/workflow` that needs no cluster.
 * What a run has done is committed together with the journal entries that tell it, so a run goes on where it was when
 * its process dies: completed activities do not run again, clocks keep their deadlines, deferreds their completions.
 *
 * Several processes may share a database. A run has one owner at a time, which holds a lease; when the owner dies, another
 * process that has registered the workflow takes the run over.
 *
 * @since 0.1.0
 */
import type { ChangeSignal } from "@strata/dirty-queue/ChangeSignal"
import type { DurableWriter } from "@strata/durable/DurableWriter"
import type { Journal } from "@strata/journal/Journal"
import type * as Duration from "effect/Duration"
import * as Layer from "effect/Layer"
import type * as Migrator from "effect/sql/Migrator"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { WorkflowEngine } from "effect/workflow/WorkflowEngine"
import type { ClockStorage, ClockStorageOptions } from "./ClockStorage.ts"
import * as ClockStore from "./ClockStore.ts"
import type { DeferredStorage } from "./DeferredStorage.ts"
import * as DeferredStore from "./DeferredStore.ts"
import * as Engine from "./internal/workflow/engine.ts"
import * as RunStore from "./RunStore.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * What the engine needs: the stores of its state, all in one database.
 *
 * @since 0.1.0
 * @category models
 */
export type Services = Engine.Services

/**
 * The stores that {@link layerSql} and {@link layerMemory} offer beside the engine.
 *
 * @since 0.1.0
 * @category models
 */
export type Stores =
  | RunStore.RunStore
  | ClockStore.ClockStore
  | ClockStorage
  | DeferredStore.DeferredStore
  | DeferredStorage

/**
 * How the engine works.
 *
 * @since 0.1.0
 * @category models
 */
export interface WorkflowEngineOptions {
  /**
   * For how long this process may be unable to write until others take its runs over. A process of the same machine that
   * was started after this one had died does not wait for it. Default 30 seconds.
   */
  readonly lease?: Duration.Input | undefined
  /**
   * How long a suspended run keeps its place in memory, with the resources of its scope, for when it is woken soon.
   * Default 10 seconds.
   */
  readonly residentFor?: Duration.Input | undefined
  /** How many suspended runs do so at most. Default 1,000. */
  readonly residents?: number | undefined
}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The engine, for the life of the scope. When that closes, runs are given up where they are, without their
 * compensations, and any process can go on with them.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = Engine.make

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The engine over the stores in context, see {@link make}.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options?: WorkflowEngineOptions): Layer.Layer<WorkflowEngine, SqlError, Services> =>
  Layer.effect(WorkflowEngine, make(options))

/**
 * The engine with its stores on SQLite or Postgres, whichever the `SqlClient` in context is of. Creates what is missing of
 * their tables. The `ChangeSignal` is to tell of the commits of other processes, if there are some.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerSql = (
  options?: WorkflowEngineOptions & ClockStorageOptions
): Layer.Layer<
  WorkflowEngine | Stores,
  SqlError | Migrator.MigrationError,
  SqlClient.SqlClient | DurableWriter | Journal | ChangeSignal
> =>
  layer(options).pipe(
    Layer.provideMerge(Layer.mergeAll(RunStore.layerSql, ClockStore.layerSql({ clock: options?.clock }))),
    Layer.provideMerge(DeferredStore.layerSql)
  )

/**
 * The engine with its stores in memory: for tests, and where nothing has to survive the process.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerMemory = (
  options?: WorkflowEngineOptions
): Layer.Layer<WorkflowEngine | Stores, SqlError, DurableWriter | Journal | ChangeSignal> =>
  layer(options).pipe(
    Layer.provideMerge(Layer.mergeAll(RunStore.layerMemory, ClockStore.layerMemory)),
    Layer.provideMerge(DeferredStore.layerMemory)
  )
