import * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import type * as Fold from "../Fold.ts"
import { BelowFloor, BelowGlobalFloor, CheckpointMissing, JournalError } from "../JournalError.ts"
import type { Cursor, JournalStorage, Page } from "../JournalStorage.ts"
import * as Entries from "./entries.ts"

type Storage = JournalStorage["Service"]

/** A fold of which only the type of its state is known. */
export type Startable<State> = Omit<Fold.Any, "begin"> & Pick<Fold.Fold<State>, "begin">

/** How far a fold got, and in which generation of the journal: while that stays, so do the entries it has seen. */
export interface Folded<State, Position> {
  readonly accumulator: Fold.Accumulator<State>
  readonly position: Position
  readonly generation: number
}

/** Folds one stream, up to and with a seq. */
export const ofStream = <State>(
  storage: Storage,
  fold: Startable<State>,
  stream: string,
  upTo = Number.MAX_SAFE_INTEGER
): Effect.Effect<Folded<State, number>, SqlError | JournalError> =>
  untilSteady(fold, streamSource(storage, fold, stream, upTo))

/** Folds all streams, up to and with a cursor. */
export const ofAll = <State>(
  storage: Storage,
  fold: Startable<State>,
  upTo?: Cursor
): Effect.Effect<Folded<State, Cursor>, SqlError | JournalError> => untilSteady(fold, globalSource(storage, fold, upTo))

// ---------------------------------------------------------------------------------------------------------------------
// sources
// ---------------------------------------------------------------------------------------------------------------------

interface Source<Position> {
  /** A page without entries: floor and generation as they are now. */
  readonly now: Effect.Effect<Page<Position>, SqlError>
  /** Where to start with a floor; nothing when the checkpoint there has no state of the fold. */
  readonly startAt: (floor: Position) => Effect.Effect<Start<Position> | undefined, SqlError | JournalError>
  readonly read: (after: Position) => Effect.Effect<Page<Position>, SqlError>
  /** Whether compaction has deleted nothing behind a position. */
  readonly isWhole: (after: Position, floor: Position) => boolean
  readonly missing: (floor: Position) => CheckpointMissing
}

interface Start<Position> {
  readonly position: Position
  /** JSON text; absent for the initial state. */
  readonly state: string | undefined
}

const pageSize = 1000

const streamSource = (storage: Storage, fold: Fold.Any, stream: string, upTo: number): Source<number> => {
  const types = fold.events.map(({ type }) => type)
  const end = Number.MAX_SAFE_INTEGER
  return {
    now: storage.read({ stream, after: end, upTo: end, types, limit: 1 }),
    startAt: Effect.fnUntraced(function* (floor) {
      if (upTo < floor) {
        return yield* new JournalError({ reason: new BelowFloor({ stream, resumeAt: floor }) })
      }
      if (floor === 0) return { position: 0, state: undefined }
      const states = yield* storage.states(stream, floor)
      const found = states.find((state) => state.fold === fold.key)
      return found && { position: floor, state: found.state }
    }),
    read: (after) => storage.read({ stream, after, upTo, types, limit: pageSize }),
    isWhole: (after, floor) => floor <= after + 1,
    missing: (floor) => new CheckpointMissing({ fold: fold.key, stream, floor })
  }
}

const globalSource = (storage: Storage, fold: Fold.Any, upTo: Cursor | undefined): Source<Cursor> => {
  const types = fold.events.map(({ type }) => type)
  const isWhole = (after: Cursor, floor: Cursor) => !Entries.isBehind(floor, after)
  return {
    now: storage.readAll({ after: Entries.endOfJournal, upTo: undefined, types, limit: 1 }),
    startAt: Effect.fnUntraced(function* (floor) {
      if (upTo !== undefined && !isWhole(upTo, floor)) {
        return yield* new JournalError({ reason: new BelowGlobalFloor({ resumeAt: floor }) })
      }
      const states = yield* storage.globalStates
      const found = states.find((state) => state.fold === fold.key)
      if (found !== undefined && isWhole(found.at, floor) && (upTo === undefined || isWhole(upTo, found.at))) {
        return { position: found.at, state: found.state }
      }
      return isWhole(Entries.startOfJournal, floor) ? { position: Entries.startOfJournal, state: undefined } : undefined
    }),
    read: (after) => storage.readAll({ after, upTo, types, limit: pageSize }),
    isWhole,
    missing: (floor) => new CheckpointMissing({ fold: fold.key, stream: undefined, floor: floor.ordinal })
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Floor and generation come first, then the state at the floor, then the pages. When a page shows that entries were
 * rewound, or that compaction has overtaken the fold, it starts again: what it gives is of one moment.
 */
const untilSteady = Effect.fnUntraced(function* <State, Position>(
  fold: Startable<State>,
  source: Source<Position>
): Effect.fn.Return<Folded<State, Position>, SqlError | JournalError> {
  while (true) {
    const { floor, generation } = yield* source.now
    const start = yield* source.startAt(floor)
    if (start === undefined) {
      // Unless a compaction has moved the checkpoint between the two looks.
      const again = yield* source.now
      if (source.isWhole(floor, again.floor)) {
        return yield* new JournalError({ reason: source.missing(floor) })
      }
      continue
    }
    const folded = yield* pass(fold, source, generation, start)
    if (folded !== undefined) return folded
  }
})

const pass = Effect.fnUntraced(function* <State, Position>(
  fold: Startable<State>,
  source: Source<Position>,
  generation: number,
  start: Start<Position>
): Effect.fn.Return<Folded<State, Position> | undefined, SqlError | JournalError> {
  const state = start.state === undefined ? undefined : Entries.toJson(start.state)
  const accumulator = yield* Effect.fromResult(fold.begin(state))
  let position = start.position
  while (true) {
    const page = yield* source.read(position)
    if (page.generation !== generation || !source.isWhole(position, page.floor)) return undefined
    for (const entry of page.entries) {
      const error = accumulator.apply(Entries.toEntry(entry))
      if (error !== undefined) return yield* error
    }
    position = page.through
    if (page.complete) return { accumulator, position, generation }
  }
})
