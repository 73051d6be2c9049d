import * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import type * as Fold from "../Fold.ts"
import type { JournalError } from "../JournalError.ts"
import type { Cursor, JournalStorage, StoredGlobalState, StoredState } from "../JournalStorage.ts"
import * as Entries from "./entries.ts"
import * as Folding from "./folding.ts"

type Storage = JournalStorage["Service"]

/** The states that folds of one stream have at one of its entries. They are true for as long as it has that entry. */
export const ofStream = (
  storage: Storage,
  folds: ReadonlyArray<Fold.Any>,
  stream: string,
  seq: number
): Effect.Effect<ReadonlyArray<StoredState>, SqlError | JournalError> =>
  Effect.forEach(
    folds.filter(({ scope }) => scope === "stream"),
    Effect.fnUntraced(function* (fold) {
      const { accumulator } = yield* Folding.ofStream(storage, fold, stream, seq)
      return { fold: fold.key, state: yield* Effect.fromResult(accumulator.encode()) }
    })
  )

/** States of folds over all streams, which are true for as long as the journal is in this generation; any, of none. */
export interface GlobalStates {
  readonly states: ReadonlyArray<StoredGlobalState>
  readonly generation: number | undefined
}

/**
 * The states that folds over all streams have once they cover a cursor and the floor. Those that do already stay out.
 */
export const ofAll = Effect.fnUntraced(function* (
  storage: Storage,
  folds: ReadonlyArray<Fold.Any>,
  cursor: Cursor
): Effect.fn.Return<GlobalStates, SqlError | JournalError> {
  const floor = yield* storage.globalFloor
  const { ordinal, transaction } = Entries.isBehind(floor, cursor) ? floor : cursor
  const at = { transaction, ordinal }
  const present = yield* storage.globalStates
  const further = new Set(present.filter((state) => !Entries.isBehind(at, state.at)).map(({ fold }) => fold))
  const states: Array<StoredGlobalState> = []
  const generations: Array<number> = []
  for (const fold of folds) {
    if (fold.scope !== "global" || further.has(fold.key)) continue
    const { accumulator, generation } = yield* Folding.ofAll(storage, fold, at)
    states.push({ fold: fold.key, at, state: yield* Effect.fromResult(accumulator.encode()) })
    generations.push(generation)
  }
  // Generations rise: when the least of them is the present one, all are.
  return { states, generation: generations.length === 0 ? undefined : Math.min(...generations) }
})
