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
import type * as Duration from "effect/Duration"
import * as Layer from "effect/Layer"
import type { SqlError } from "effect/sql/SqlError"
import { WorkflowEngine } from "effect/workflow/WorkflowEngine"
import * as Engine from "./internal/workflow/engine.ts"

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
