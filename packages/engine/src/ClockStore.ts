/**
 * Clocks of runs: sleeps that survive the process. A clock has a deadline, which its first schedule sets for good. When
 * the deadline has come, one write completes the clock and its deferred, and tells the journal of both; a clock that was
 * completed early never fires. What waits for deadlines is `ClockDriver`.
 *
 * @since 0.1.0
 */
import type { ChangeSignal } from "@strata/dirty-queue/ChangeSignal"
import type { DurableWriter, WriteTransaction } from "@strata/durable/DurableWriter"
import type { Journal } from "@strata/journal/Journal"
import type { JournalError } from "@strata/journal/JournalError"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Option from "effect/Option"
import type * as Migrator from "effect/sql/Migrator"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { ClockKey } from "./ClockStorage.ts"
import * as Storage from "./ClockStorage.ts"
import type { DeferredStorage } from "./DeferredStorage.ts"
import * as Service from "./internal/clockService.ts"
import type { StateError } from "./StateError.ts"
import type { ClockOutcome } from "./StateEvents.ts"

export type {
  /**
   * @since 0.1.0
   * @category models
   */
  ClockKey
} from "./ClockStorage.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A clock that is to be scheduled.
 *
 * @since 0.1.0
 * @category models
 */
export interface NewClock extends ClockKey {
  /** The deferred of the run that is completed when it fires. */
  readonly deferred: string
  /** From now. What is not a whole number of milliseconds is rounded up: a clock is never early. */
  readonly duration: Duration.Input
}

/**
 * A clock. Times are in whole milliseconds since the epoch.
 *
 * @since 0.1.0
 * @category models
 */
export interface DurableClock extends ClockKey {
  readonly deferred: string
  /** `Number.MAX_SAFE_INTEGER` for one that never fires. */
  readonly deadline: number
  readonly scheduledAt: number
  /** There together with `outcome`, when it fired or will not fire any more. */
  readonly completedAt: number | undefined
  readonly outcome: ClockOutcome | undefined
}

/**
 * What a schedule came to: `first` when there was no clock of that name.
 *
 * @since 0.1.0
 * @category models
 */
export interface Scheduled extends DurableClock {
  readonly first: boolean
}

// ---------------------------------------------------------------------------------------------------------------------
// service
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The clocks.
 *
 * @since 0.1.0
 * @category services
 */
export class ClockStore extends Context.Service<
  ClockStore,
  {
    /**
     * Schedules clocks in the write that is under way, and gives for each what is kept, in the order of the list: one
     * that is there already keeps its deadline, whatever it has come to.
     */
    readonly schedule: (
      clocks: ReadonlyArray<NewClock>
    ) => Effect.Effect<ReadonlyArray<Scheduled>, SqlError | JournalError | StateError, WriteTransaction>
    /**
     * Completes clocks early, in the write that is under way, so that they do not fire, and gives those that it
     * completed. Their deferreds stay as they are.
     */
    readonly cancel: (
      keys: ReadonlyArray<ClockKey>
    ) => Effect.Effect<ReadonlyArray<DurableClock>, SqlError | JournalError | StateError, WriteTransaction>
    /**
     * Completes the clocks of runs that have settled, in the write that is under way, and gives those that it completed.
     * Journal the end of the run first: a rewind to an entry between the two leaves an ended run with a clock, and not a
     * run that waits for a clock which never fires.
     */
    readonly settle: (
      executionIds: ReadonlyArray<string>
    ) => Effect.Effect<ReadonlyArray<DurableClock>, SqlError | JournalError | StateError, WriteTransaction>
    /**
     * Fires clocks whose deadline has come, oldest first, at most `limit` (default 16), in the write that is under way:
     * clock and deferred are completed, and both journaled. Gives those that it fired, and whether more may be due. A
     * deferred that was completed before keeps its exit.
     */
    readonly fire: (options?: {
      readonly limit?: number | undefined
    }) => Effect.Effect<
      { readonly fired: ReadonlyArray<DurableClock>; readonly more: boolean },
      SqlError | JournalError | StateError,
      WriteTransaction
    >

    /** The next deadline and how many milliseconds are left until then, 0 when it has come; `None` without a clock. */
    readonly next: Effect.Effect<Option.Option<{ readonly deadline: number; readonly left: number }>, SqlError>
    readonly get: (key: ClockKey) => Effect.Effect<Option.Option<DurableClock>, SqlError>
    /** The clocks of a run. */
    readonly ofRun: (executionId: string) => Effect.Effect<ReadonlyArray<DurableClock>, SqlError>
    /**
     * Removes the clocks of runs, and gives how many there were. The journal is told nothing: it is for runs of which
     * the streams go in the same write, see `Retention`.
     */
    readonly removeOf: (executionIds: ReadonlyArray<string>) => Effect.Effect<number, SqlError, WriteTransaction>
    /** Notified after each commit of this process that may have brought an earlier deadline. */
    readonly changes: ChangeSignal["Service"]
  }
>()("@strata/engine/ClockStore") {}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The clocks over the storage, the deferreds and the journal in context.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make: Effect.Effect<ClockStore["Service"], never, Storage.ClockStorage | DeferredStorage | Journal> =
  Service.make

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The clocks over the storage, the deferreds and the journal in context.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<ClockStore, never, Storage.ClockStorage | DeferredStorage | Journal> = Layer.effect(
  ClockStore,
  make
)

/**
 * Clocks in memory, with their storage, see `ClockStorage.layerMemory`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerMemory: Layer.Layer<
  ClockStore | Storage.ClockStorage,
  never,
  DurableWriter | DeferredStorage | Journal
> = layer.pipe(Layer.provideMerge(Storage.layerMemory))

/**
 * Clocks on SQLite or Postgres, with their storage, see `ClockStorage.layerSql`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerSql = (
  options?: Storage.ClockStorageOptions
): Layer.Layer<
  ClockStore | Storage.ClockStorage,
  SqlError | Migrator.MigrationError,
  SqlClient.SqlClient | DeferredStorage | Journal
> => layer.pipe(Layer.provideMerge(Storage.layerSql(options)))
