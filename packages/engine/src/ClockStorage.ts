/**
 * What a backend of clocks has to do, in plain values. `ClockStore` is made of it, and knows no database; backends know
 * no Schemas.
 *
 * @since 0.1.0
 */
import type { DurableWriter, WriteTransaction } from "@strata/durable/DurableWriter"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Migrator from "effect/sql/Migrator"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import * as Memory from "./internal/clockMemory.ts"
import * as Sql from "./internal/clockSql.ts"
import type { ClockOutcome } from "./StateEvents.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Names a clock.
 *
 * @since 0.1.0
 * @category models
 */
export interface ClockKey {
  readonly executionId: string
  readonly name: string
}

/**
 * A clock. Times are in whole milliseconds since the epoch.
 *
 * @since 0.1.0
 * @category models
 */
export interface StoredClock extends ClockKey {
  /** The deferred of the run that is completed when it fires. */
  readonly deferred: string
  readonly deadline: number
  readonly scheduledAt: number
  /** There together with `outcome`, when it fired or will not fire any more. */
  readonly completedAt: number | null
  readonly outcome: ClockOutcome | null
}

/**
 * Where time comes from: from Effect's `Clock`, or from the database, so that machines whose clocks differ agree.
 *
 * @since 0.1.0
 * @category models
 */
export interface ClockStorageOptions {
  /** Default: `database` on Postgres, and `effect` elsewhere, where nothing else is possible. */
  readonly clock?: "effect" | "database" | undefined
}

// ---------------------------------------------------------------------------------------------------------------------
// service
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A backend.
 *
 * @since 0.1.0
 * @category services
 */
export class ClockStorage extends Context.Service<
  ClockStorage,
  {
    /** Milliseconds since the epoch. */
    readonly now: Effect.Effect<number, SqlError>
    /** The least deadline of those that are not completed, and the time. */
    readonly next: Effect.Effect<{ readonly now: number; readonly deadline: number | null }, SqlError>

    /** Keeps those that are not there, and gives their keys. Of two with one key the first one is kept. */
    readonly insert: (
      rows: ReadonlyArray<StoredClock>
    ) => Effect.Effect<ReadonlyArray<ClockKey>, SqlError, WriteTransaction>
    /** Completes those whose deadline has come and that are not completed, oldest deadline first, and gives them. */
    readonly fire: (now: number, limit: number) => Effect.Effect<ReadonlyArray<StoredClock>, SqlError, WriteTransaction>
    /** Completes those of these that are not completed, and gives them. */
    readonly complete: (
      now: number,
      outcome: ClockOutcome,
      keys: ReadonlyArray<ClockKey>
    ) => Effect.Effect<ReadonlyArray<StoredClock>, SqlError, WriteTransaction>
    /** Completes those of these runs that are not completed, and gives them. */
    readonly completeOf: (
      now: number,
      outcome: ClockOutcome,
      executionIds: ReadonlyArray<string>
    ) => Effect.Effect<ReadonlyArray<StoredClock>, SqlError, WriteTransaction>

    readonly find: (keys: ReadonlyArray<ClockKey>) => Effect.Effect<ReadonlyArray<StoredClock>, SqlError>
    /** Those of a run. */
    readonly ofRun: (executionId: string) => Effect.Effect<ReadonlyArray<StoredClock>, SqlError>

    /** Sets rows, whether they are there or not. */
    readonly put: (rows: ReadonlyArray<StoredClock>) => Effect.Effect<void, SqlError, WriteTransaction>
    readonly remove: (keys: ReadonlyArray<ClockKey>) => Effect.Effect<void, SqlError, WriteTransaction>
    /** Removes all of these runs, and gives how many there were. */
    readonly removeOf: (executionIds: ReadonlyArray<string>) => Effect.Effect<number, SqlError, WriteTransaction>
    readonly removeAll: Effect.Effect<void, SqlError, WriteTransaction>
  }
>()("@strata/engine/ClockStorage") {}

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Clocks in memory: for tests, and where nothing has to survive the process. Goes with `DurableWriter.layerMemory`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerMemory: Layer.Layer<ClockStorage, never, DurableWriter> = Layer.effect(ClockStorage, Memory.make)

/**
 * Clocks on SQLite or Postgres, whichever the `SqlClient` in context is of. Creates what is missing of the tables.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerSql = (
  options?: ClockStorageOptions
): Layer.Layer<ClockStorage, SqlError | Migrator.MigrationError, SqlClient.SqlClient> =>
  Layer.effect(ClockStorage, Sql.make(options))
