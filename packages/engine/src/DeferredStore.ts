/**
 * Deferreds of runs: values that come from outside of a run, once. Completing one keeps its exit and tells the journal
 * in one write; the first completion is kept, and any later one gets that. That a run has gone on with an exit is kept
 * and journaled too.
 *
 * A run need not exist yet when its deferred is completed.
 *
 * @since 0.1.0
 */
import type { DurableWriter, WriteTransaction } from "@strata/durable/DurableWriter"
import type { Journal } from "@strata/journal/Journal"
import type { JournalError } from "@strata/journal/JournalError"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Option from "effect/Option"
import type * as Schema from "effect/Schema"
import type * as Migrator from "effect/sql/Migrator"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { DeferredKey } from "./DeferredStorage.ts"
import * as Storage from "./DeferredStorage.ts"
import * as Service from "./internal/deferredService.ts"
import type { StateError } from "./StateError.ts"

export type {
  /**
   * @since 0.1.0
   * @category models
   */
  DeferredKey
} from "./DeferredStorage.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A deferred that is to be completed.
 *
 * @since 0.1.0
 * @category models
 */
export interface NewCompletion extends DeferredKey {
  /** As its Schema encodes it. */
  readonly exit: Schema.Json
  /** What is to be known of the completion beside, such as who did it. */
  readonly metadata?: Schema.Json | undefined
}

/**
 * A deferred that is completed. Times are in milliseconds since the epoch.
 *
 * @since 0.1.0
 * @category models
 */
export interface Completion extends DeferredKey {
  readonly exit: Schema.Json
  readonly metadata: Schema.Json | undefined
  /** Absent when no entry of the journal tells. */
  readonly completedAt: number | undefined
  /** When its run first went on with the exit, if it has. */
  readonly consumedAt: number | undefined
}

/**
 * What a completion came to: `first` when its own exit was kept, and not that of an earlier one.
 *
 * @since 0.1.0
 * @category models
 */
export interface Completed extends Completion {
  readonly first: boolean
}

// ---------------------------------------------------------------------------------------------------------------------
// service
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The deferreds.
 *
 * @since 0.1.0
 * @category services
 */
export class DeferredStore extends Context.Service<
  DeferredStore,
  {
    /**
     * Completes deferreds in the write that is under way, and gives for each what is kept, in the order of the list. The
     * first completion wins, in the list too; a later one appends nothing to the journal.
     */
    readonly complete: (
      completions: ReadonlyArray<NewCompletion>
    ) => Effect.Effect<ReadonlyArray<Completed>, SqlError | JournalError | StateError, WriteTransaction>
    /**
     * Says that their runs went on with the exits, in the write that is under way, and gives the keys of those of which
     * nobody had said it before. Passes over deferreds that are not completed.
     */
    readonly consume: (
      keys: ReadonlyArray<DeferredKey>
    ) => Effect.Effect<ReadonlyArray<DeferredKey>, SqlError | JournalError | StateError, WriteTransaction>
    /** A deferred, if it is completed. */
    readonly get: (key: DeferredKey) => Effect.Effect<Option.Option<Completion>, SqlError>
    /** The completed deferreds of a run. */
    readonly ofRun: (executionId: string) => Effect.Effect<ReadonlyArray<Completion>, SqlError>
    /**
     * Removes the deferreds of runs, and gives how many there were. The journal is told nothing: it is for runs of which
     * the streams go in the same write, see `Retention`.
     */
    readonly removeOf: (executionIds: ReadonlyArray<string>) => Effect.Effect<number, SqlError, WriteTransaction>
  }
>()("@strata/engine/DeferredStore") {}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The deferreds over the storage and the journal in context.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make: Effect.Effect<DeferredStore["Service"], never, Storage.DeferredStorage | Journal> = Service.make

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The deferreds over the storage and the journal in context.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<DeferredStore, never, Storage.DeferredStorage | Journal> = Layer.effect(
  DeferredStore,
  make
)

/**
 * Deferreds in memory, with their storage, see `DeferredStorage.layerMemory`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerMemory: Layer.Layer<DeferredStore | Storage.DeferredStorage, never, DurableWriter | Journal> =
  layer.pipe(Layer.provideMerge(Storage.layerMemory))

/**
 * Deferreds on SQLite or Postgres, with their storage, see `DeferredStorage.layerSql`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerSql: Layer.Layer<
  DeferredStore | Storage.DeferredStorage,
  SqlError | Migrator.MigrationError,
  SqlClient.SqlClient | Journal
> = layer.pipe(Layer.provideMerge(Storage.layerSql))
