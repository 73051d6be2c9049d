/**
 * What a backend of deferreds has to do, in plain values: text, numbers, and exits as JSON text. `DeferredStore` is made
 * of it, and knows no database; backends know no Schemas.
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
import * as Memory from "./internal/deferredMemory.ts"
import * as Sql from "./internal/deferredSql.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Names a deferred.
 *
 * @since 0.1.0
 * @category models
 */
export interface DeferredKey {
  readonly executionId: string
  readonly name: string
}

/**
 * When a deferred was completed, and when its run went on with it, in milliseconds since the epoch. Absent when no entry
 * of the journal tells.
 *
 * @since 0.1.0
 * @category models
 */
export interface Stamps {
  readonly completedAt: number | null
  readonly consumedAt: number | null
}

/**
 * A deferred that is completed.
 *
 * @since 0.1.0
 * @category models
 */
export interface StoredDeferred extends DeferredKey, Stamps {
  /** Canonical JSON. */
  readonly exit: string
  /** Canonical JSON. */
  readonly metadata: string | null
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
export class DeferredStorage extends Context.Service<
  DeferredStorage,
  {
    /** Keeps those that are not there, and gives their keys. Of two with one key the first one is kept. */
    readonly insert: (
      rows: ReadonlyArray<StoredDeferred>
    ) => Effect.Effect<ReadonlyArray<DeferredKey>, SqlError, WriteTransaction>
    /** Sets when they were consumed, once, and gives the keys of those for which it did. */
    readonly consume: (
      now: number,
      keys: ReadonlyArray<DeferredKey>
    ) => Effect.Effect<ReadonlyArray<DeferredKey>, SqlError, WriteTransaction>

    readonly find: (keys: ReadonlyArray<DeferredKey>) => Effect.Effect<ReadonlyArray<StoredDeferred>, SqlError>
    /** Those of a run. */
    readonly ofRun: (executionId: string) => Effect.Effect<ReadonlyArray<StoredDeferred>, SqlError>
    /** How many there are, of all runs. */
    readonly count: Effect.Effect<number, SqlError>

    /** Sets the stamps of those that are there. */
    readonly stamp: (rows: ReadonlyArray<DeferredKey & Stamps>) => Effect.Effect<void, SqlError, WriteTransaction>
    readonly remove: (keys: ReadonlyArray<DeferredKey>) => Effect.Effect<void, SqlError, WriteTransaction>
    /** Removes all of these runs, and gives how many there were. */
    readonly removeOf: (executionIds: ReadonlyArray<string>) => Effect.Effect<number, SqlError, WriteTransaction>
  }
>()("@strata/engine/DeferredStorage") {}

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Deferreds in memory: for tests, and where nothing has to survive the process. Goes with `DurableWriter.layerMemory`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerMemory: Layer.Layer<DeferredStorage, never, DurableWriter> = Layer.effect(
  DeferredStorage,
  Memory.make
)

/**
 * Deferreds on SQLite or Postgres, whichever the `SqlClient` in context is of. Creates what is missing of the tables.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerSql: Layer.Layer<DeferredStorage, SqlError | Migrator.MigrationError, SqlClient.SqlClient> =
  Layer.effect(DeferredStorage, Sql.make)
