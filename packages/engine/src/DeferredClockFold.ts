/**
 * What the journal says of the clocks and deferreds of a run. From it their rows are made again: clocks entirely, and of
 * deferreds the stamps, while their values are in their rows only, and are joined by digest.
 *
 * Register it, see {@link layer}, in every process that compacts or rewinds streams of runs: then its state goes into
 * each checkpoint, and the rows follow a rewind.
 *
 * @since 0.1.0
 */
import type { Digest } from "@strata/durable/Digest"
import type { DurableWriter } from "@strata/durable/DurableWriter"
import type * as Event from "@strata/journal/Event"
import type * as Fold from "@strata/journal/Fold"
import * as Folds from "@strata/journal/Folds"
import type { JournalError } from "@strata/journal/JournalError"
import type { JournalStorage } from "@strata/journal/JournalStorage"
import * as Projections from "@strata/journal/Projections"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import type { SqlError } from "effect/sql/SqlError"
import type { ClockStorage } from "./ClockStorage.ts"
import type { ClockStore } from "./ClockStore.ts"
import type { DeferredStorage } from "./DeferredStorage.ts"
import type { FoldIncomplete } from "./FoldIncomplete.ts"
import * as Folding from "./internal/folding.ts"
import * as Projecting from "./internal/foldProjection.ts"
import * as Rebuilding from "./internal/foldRebuild.ts"
import type { RunStore } from "./RunStore.ts"
import * as StateEvents from "./StateEvents.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A clock, as the journal has it. Times are in milliseconds since the epoch.
 *
 * @since 0.1.0
 * @category models
 */
export interface FoldedClock {
  readonly deferred: string
  readonly deadline: number
  readonly scheduledAt: number
  readonly completedAt: number | null
  readonly outcome: StateEvents.ClockOutcome | null
}

/**
 * A completed deferred, as the journal has it. Times are in milliseconds since the epoch.
 *
 * @since 0.1.0
 * @category models
 */
export interface FoldedDeferred {
  readonly exit: Digest
  readonly metadata: Digest | null
  readonly completedAt: number
  readonly consumedAt: number | null
}

/**
 * The clocks and the completed deferreds of a run, by name.
 *
 * @since 0.1.0
 * @category models
 */
export interface State {
  readonly clocks: Map<string, FoldedClock>
  readonly deferreds: Map<string, FoldedDeferred>
}

/**
 * An entry that the fold looks at.
 *
 * @since 0.1.0
 * @category models
 */
export type FoldedEvent = Event.Typed<(typeof StateEvents.all)[number]>

/**
 * States of folds by their keys, as JSON.
 *
 * @since 0.1.0
 * @category models
 */
export type CheckpointState = Readonly<Record<string, Schema.Json>>

/**
 * What a rebuild did, or would do.
 *
 * @since 0.1.0
 * @category models
 */
export interface RebuildReport {
  /** Runs of which the journal has a stream. */
  readonly runs: number
  /** Clocks that are in the table now, as the journal has them. */
  readonly clocks: number
  /** Completions that have their stamps from the journal. */
  readonly deferreds: number
  /** Completions that no entry explains; they were left as they are. */
  readonly unexplained: number
}

// ---------------------------------------------------------------------------------------------------------------------
// folding
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The types of the events that the fold looks at.
 *
 * @since 0.1.0
 * @category folding
 */
export const eventTypes: ReadonlyArray<string> = StateEvents.all.map(({ type }) => type)

/**
 * The name of the fold's state in checkpoints.
 *
 * @since 0.1.0
 * @category folding
 */
export const checkpointKey: string = Folding.checkpointKey

/**
 * The state of a run without entries.
 *
 * @since 0.1.0
 * @category folding
 */
export const initial: () => State = Folding.initial

/**
 * Takes an entry in, changing the state in place, and gives the state. As in the rows, the first schedule, the first
 * completion and the first consumption of a name win; the completion of an unknown clock and the consumption of an
 * unknown deferred are passed over.
 *
 * @since 0.1.0
 * @category folding
 */
export const reduce: (state: State, event: FoldedEvent) => State = Folding.reduce

/**
 * The fold, of one stream.
 *
 * @since 0.1.0
 * @category folding
 */
export const fold: Fold.Fold<State, "stream"> = Folding.fold

// ---------------------------------------------------------------------------------------------------------------------
// checkpoints
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A state as JSON, for a checkpoint.
 *
 * @since 0.1.0
 * @category checkpoints
 */
export const encode = (state: State): Result.Result<Schema.Json, JournalError> =>
  Result.map(fold.encode(state), (text) => JSON.parse(text) as Schema.Json)

/**
 * The state of the fold in a checkpoint; `None` when it has none. Fails with `StateFailed` when what is under its key is
 * no state of it.
 *
 * @since 0.1.0
 * @category checkpoints
 */
export const fromCheckpoint = (checkpoint: CheckpointState): Result.Result<Option.Option<State>, JournalError> => {
  const encoded = Object.hasOwn(checkpoint, checkpointKey) ? checkpoint[checkpointKey] : undefined
  return encoded === undefined
    ? Result.succeed(Option.none())
    : Result.map(fold.begin(encoded), (accumulator) => Option.some(accumulator.state()))
}

/**
 * The state of a run up to and with the entry `upTo` (default: to its end), from the checkpoint at the floor on. Fails
 * with `FoldIncomplete` when the stream was compacted and the checkpoint lacks the state, also where the run never had a
 * clock; with `BelowFloor` when the entry was compacted.
 *
 * @since 0.1.0
 * @category checkpoints
 */
export const capture: (
  executionId: string,
  upTo?: number
) => Effect.Effect<State, SqlError | JournalError | FoldIncomplete, JournalStorage> = Folding.capture

/**
 * As {@link capture}, put under the fold's key into `base` (default: nothing), of which the rest is kept.
 *
 * @since 0.1.0
 * @category checkpoints
 */
export const checkpointState = Effect.fn("DeferredClockFold.checkpointState")(function* (
  executionId: string,
  upTo?: number,
  base: CheckpointState = {}
): Effect.fn.Return<CheckpointState, SqlError | JournalError | FoldIncomplete, JournalStorage> {
  const state = yield* capture(executionId, upTo)
  return { ...base, [checkpointKey]: yield* Effect.fromResult(encode(state)) }
})

// ---------------------------------------------------------------------------------------------------------------------
// rows
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Makes the rows follow when entries of runs are rewound: clocks and completions that only rewound entries explain go,
 * and the others are as the entries that remain say. A clock that had fired and is pending again fires at its original
 * deadline, which may be at once.
 *
 * @since 0.1.0
 * @category rows
 */
export const projection: Effect.Effect<
  Projections.Projection,
  never,
  ClockStorage | ClockStore | DeferredStorage | JournalStorage
> = Projecting.make

/**
 * Makes the rows of all runs again from the journal, on a store that nobody else writes to meanwhile. Every reference is
 * joined first: the row of a run, the row of each completion, and its digests. Fails with `FoldIncomplete`, which lists
 * all that cannot be joined, and has written nothing then. Otherwise, in one write, the table of clocks is replaced, and
 * each completion gets the stamps that the journal has for it. With `dryRun` it only looks.
 *
 * The stream of a run that was never started, where there are but completions that came early, needs no row of a run.
 *
 * @since 0.1.0
 * @category rows
 */
export const rebuild: (options?: {
  readonly dryRun?: boolean | undefined
}) => Effect.Effect<
  RebuildReport,
  SqlError | JournalError | FoldIncomplete,
  ClockStorage | ClockStore | DeferredStorage | DurableWriter | JournalStorage | RunStore
> = Rebuilding.rebuild

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Registers the fold and the projection.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<
  never,
  JournalError,
  ClockStorage | ClockStore | DeferredStorage | Folds.Folds | JournalStorage | Projections.Projections
> = Layer.merge(Folds.register(fold), Layer.unwrap(Effect.map(projection, (made) => Projections.register(made))))
