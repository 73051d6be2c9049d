/**
 * Keeps the database of workflows from growing: runs that settled long ago, or that are more than is to be kept, are
 * removed with all there is of them. Row, outcomes, stream of the journal with its floor and archive, clocks and deferreds
 * of a run go in one write, so that whatever remains can still be explained and rebuilt.
 *
 * A removed run is as if it had never been: executing it again runs it again. A run stays for as long as a run that has
 * waited for it has not settled, as that asks for its result again whenever it is replayed. Deferreds that were completed
 * of runs which there are not go by age too.
 *
 * @since 0.1.0
 */
import type { DurableWriter } from "@strata/durable/DurableWriter"
import type { Compaction } from "@strata/journal/Compaction"
import type { Entry, Journal, JournalError } from "@strata/journal/Journal"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { SqlError } from "effect/sql/SqlError"
import type * as Stream from "effect/Stream"
import type { ClockStore, DurableClock } from "./ClockStore.ts"
import type { Completion, DeferredStore } from "./DeferredStore.ts"
import * as Sweeping from "./internal/sweeping.ts"
import type { ActivityOutcome, RunStore, StoredRun } from "./RunStore.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A run that is about to be removed, with all there is of it.
 *
 * @since 0.1.0
 * @category models
 */
export interface ArchivableRun {
  readonly run: StoredRun
  readonly outcomes: ReadonlyArray<ActivityOutcome>
  readonly clocks: ReadonlyArray<DurableClock>
  readonly deferreds: ReadonlyArray<Completion>
  /** Of its stream, in order, from the floor on. A page at a time is read, when it is asked for. */
  readonly entries: Stream.Stream<Entry, SqlError | JournalError>
}

/**
 * Which runs stay, and how the others are removed.
 *
 * @since 0.1.0
 * @category models
 */
export interface RetentionOptions<E = never, R = never> {
  /** How long a run stays after it has settled. Default 30 days. */
  readonly maxAge?: Duration.Input | undefined
  /** How many settled runs stay: those that settled last. Default 100,000. */
  readonly maxRuns?: number | undefined
  /**
   * How long a run stays in any case, so that whoever waits for its result, in this or another process, has got it.
   * Default 1 minute.
   */
  readonly grace?: Duration.Input | undefined
  /** How many runs go in one write at most. Default 50. */
  readonly batchRuns?: number | undefined
  /**
   * How many entries of the journal go in one write, about: other writers wait meanwhile. A run that has more is a write
   * of its own. Default 2,000.
   */
  readonly batchEntries?: number | undefined
  /**
   * Keeps runs elsewhere. It runs before the write that removes them, and when it fails they stay. It gets a run again
   * when that was changed meanwhile, or its removal failed.
   */
  readonly archive?: ((runs: ReadonlyArray<ArchivableRun>) => Effect.Effect<void, E, R>) | undefined
}

/**
 * How runs are removed all the time.
 *
 * @since 0.1.0
 * @category models
 */
export interface RetentionLayerOptions<E = never, R = never> extends RetentionOptions<E, R> {
  /** How long to wait between two sweeps. Default 1 minute. */
  readonly interval?: Duration.Input | undefined
}

/**
 * What a sweep removed, or would remove.
 *
 * @since 0.1.0
 * @category models
 */
export interface Swept {
  readonly runs: number
  /**
   * Runs that there are not: their deferreds were completed, longer ago than `maxAge`, before they were started, or after
   * they were removed.
   */
  readonly strays: number
  /** Of the journal. */
  readonly entries: number
  readonly clocks: number
  readonly deferreds: number
  /** Runs that would go, but that a run which has not settled has waited for. */
  readonly needed: number
}

/**
 * What a sweep works on, all in one database.
 *
 * @since 0.1.0
 * @category models
 */
export type Services = RunStore | ClockStore | DeferredStore | Journal | Compaction | DurableWriter

// ---------------------------------------------------------------------------------------------------------------------
// sweeping
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Removes what need not stay, oldest first, a bounded number of runs in a write, then completions without a run. What was
 * removed stays so when it fails or is interrupted on the way. With `dryRun` it does each write and takes it back, so that
 * it counts exactly what would go, and archives nothing.
 *
 * As every compaction, it needs the folds over all streams that have states, see `Compaction.remove`.
 *
 * @since 0.1.0
 * @category sweeping
 */
export const sweep: <E = never, R = never>(
  options?: RetentionOptions<E, R> & { readonly dryRun?: boolean | undefined }
) => Effect.Effect<Swept, E | SqlError | JournalError, R | Services> = Sweeping.sweep

/**
 * Sweeps again and again, for as long as it is run. A failure is logged, and the next sweep tries again. For completions
 * without a run it looks at 500 streams each time.
 *
 * @since 0.1.0
 * @category sweeping
 */
export const run: <E = never, R = never>(
  options?: RetentionLayerOptions<E, R>
) => Effect.Effect<never, never, R | Services> = Sweeping.run

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Sweeps in the background, see {@link run}. Any number of processes can do so on one database.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = <E = never, R = never>(
  options?: RetentionLayerOptions<E, R>
): Layer.Layer<never, never, R | Services> => Layer.effectDiscard(Effect.forkScoped(run(options)))
