/**
 * What became of runs, and changing it: a run is taken back to an entry of its stream, or another run is started with
 * what it had done up to there; it is resumed, or cancelled. None of this needs the run's workflow: the process that has
 * registered it picks the run up.
 *
 * @since 0.1.0
 */
import type { ChangeSignal } from "@strata/dirty-queue/ChangeSignal"
import type { DurableWriter } from "@strata/durable/DurableWriter"
import type { Folds } from "@strata/journal/Folds"
import type { Journal, JournalError } from "@strata/journal/Journal"
import type { JournalStorage } from "@strata/journal/JournalStorage"
import * as Projections from "@strata/journal/Projections"
import * as Rewind from "@strata/journal/Rewind"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { SqlError } from "effect/sql/SqlError"
import type { ClockStorage } from "./ClockStorage.ts"
import type { ClockStore } from "./ClockStore.ts"
import * as DeferredClockFold from "./DeferredClockFold.ts"
import type { DeferredStorage } from "./DeferredStorage.ts"
import type { FoldIncomplete } from "./FoldIncomplete.ts"
import * as Changing from "./internal/historyService.ts"
import * as RunProjection from "./internal/runProjection.ts"
import type { RunHistoryError } from "./RunHistoryError.ts"
import type { RunStore, StoredRun } from "./RunStore.ts"

export {
  /**
   * @since 0.1.0
   * @category errors
   */
  RunHistoryError
} from "./RunHistoryError.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * How a run is taken back.
 *
 * @since 0.1.0
 * @category models
 */
export interface RewindOptions {
  readonly executionId: string
  /** Of the last entry of its stream that stays. */
  readonly seq: number
  /** Whether the run goes on at once. Default: it is held until it is resumed. */
  readonly resume?: boolean | undefined
  /** Whether it may be taken from another process that runs it, see `OwnedElsewhere`. Default false. */
  readonly force?: boolean | undefined
}

/**
 * How a run is copied.
 *
 * @since 0.1.0
 * @category models
 */
export interface ForkOptions {
  readonly executionId: string
  /** Of the last entry that the new run has. Default: the last one before the result. */
  readonly seq?: number | undefined
  /** The execution id of the new run. Default: that of the first one, with something random behind it. */
  readonly to?: string | undefined
  /** Whether the new run goes on at once. Default: it is held until it is resumed. */
  readonly resume?: boolean | undefined
}

/**
 * What the history of runs is made of, all in one database.
 *
 * @since 0.1.0
 * @category models
 */
export type Services =
  | RunStore
  | ClockStore
  | ClockStorage
  | DeferredStorage
  | Journal
  | JournalStorage
  | DurableWriter
  | ChangeSignal

type Failure = RunHistoryError | SqlError | JournalError

// ---------------------------------------------------------------------------------------------------------------------
// service
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Changing of histories.
 *
 * @since 0.1.0
 * @category services
 */
export class RunHistory extends Context.Service<
  RunHistory,
  {
    /**
     * Takes a run back to an entry: what came behind it goes into the archive of the journal, and the rows that it
     * explains go with it, in one write: outcomes of activities, the result, clocks and deferreds. Gives the run, and how
     * many entries went; with none to go the run stays as it is, unless it is to be resumed.
     *
     * Whoever runs it abandons it, without its compensations, and what that still has to say is refused. Runs that it
     * has started stay: it finds them again.
     *
     * Fails with `UnknownRun`; with `SeqOutOfRange` when the run has no such entry, or would not have been started any
     * more; with `BelowFloor` when the entry was compacted; and with `OwnedElsewhere`, unless it is to be forced.
     */
    readonly rewind: (
      options: RewindOptions
    ) => Effect.Effect<{ readonly run: StoredRun; readonly archived: number }, Failure>
    /**
     * Starts a run of the same workflow and payload that has done what another one had done up to an entry, which it has
     * copies of. Clocks keep their deadlines. It has no parent; runs that the other one has started are also its own.
     *
     * Fails as `rewind`, and with `ExecutionIdTaken` and `InvalidExecutionId`; with `FoldIncomplete` as
     * `DeferredClockFold.capture`. The entry has to be before the result.
     */
    readonly fork: (options: ForkOptions) => Effect.Effect<StoredRun, Failure | FoldIncomplete>
    /** Lets a run go on that is suspended or held. Fails with `UnknownRun` and `RunSettled`. */
    readonly resume: (executionId: string) => Effect.Effect<StoredRun, Failure>
    /**
     * Asks a run to end: what it had completed is compensated. Without `unsafe` an activity that is under way may finish
     * first. Fails with `UnknownRun` and `RunSettled`.
     */
    readonly cancel: (
      executionId: string,
      options?: { readonly unsafe?: boolean | undefined }
    ) => Effect.Effect<StoredRun, Failure>
  }
>()("@strata/engine/RunHistory") {}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The history over the stores in context. Rows follow a rewind by the projections that are registered, see {@link layer}.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make: Effect.Effect<RunHistory["Service"], never, Services | Rewind.Rewind> = Changing.make

/**
 * Makes the rows of runs follow when entries of them are rewound: outcomes, result and interruption are those that the
 * entries which remain tell of, and the run is nobody's and held, unless it still has its result.
 *
 * @since 0.1.0
 * @category constructors
 */
export const projection: Effect.Effect<Projections.Projection, never, RunStore | Journal> = RunProjection.make

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The history over the stores in context, with the fold and the projections that it needs, see `DeferredClockFold.layer`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<RunHistory, JournalError, Services | Folds | Projections.Projections> = Layer.effect(
  RunHistory,
  make
).pipe(
  Layer.provide(Rewind.layer),
  Layer.merge(DeferredClockFold.layer),
  Layer.merge(Layer.unwrap(Effect.map(projection, (made) => Projections.register(made))))
)
