/**
 * The journal as it would be without compaction: the list of everything that was appended and was not rewound.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type * as Fold from "../Fold.ts"
import type { Cursor, Entry } from "../Journal.ts"
import { start } from "../Journal.ts"
import type { JournalError } from "../JournalError.ts"
import type { StreamName } from "../StreamName.ts"

/**
 * The model, with the places of one follower for each stream and one over all.
 *
 * @since 0.1.0
 * @category models
 */
export interface Model {
  entries: ReadonlyArray<Entry>
  /** The last entry there ever was. */
  last: Cursor
  readonly followed: Map<StreamName, number>
  followedAll: Cursor
}

/**
 * A model without entries.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (): Model => ({ entries: [], last: start, followed: new Map(), followedAll: start })

/**
 * @since 0.1.0
 * @category operations
 */
export const add = (model: Model, entries: ReadonlyArray<Entry>): void => {
  model.entries = [...model.entries, ...entries]
  model.last = entries.at(-1) ?? model.last
}

/**
 * @since 0.1.0
 * @category operations
 */
export const rewind = (model: Model, stream: StreamName, after: number): void => {
  model.entries = model.entries.filter((entry) => entry.stream !== stream || entry.seq <= after)
}

/**
 * @since 0.1.0
 * @category getters
 */
export const entriesOf = (model: Model, stream: StreamName): ReadonlyArray<Entry> =>
  model.entries.filter((entry) => entry.stream === stream)

/**
 * The seq of the entry that is `back` entries before the last one: 0 when there are not that many, and one that was never
 * given when `back` is negative.
 *
 * @since 0.1.0
 * @category getters
 */
export const seqAt = (model: Model, stream: StreamName, back: number): number => {
  const entries = entriesOf(model, stream)
  return back < 0 ? (entries.at(-1)?.seq ?? 0) - back : (entries[entries.length - 1 - back]?.seq ?? 0)
}

/**
 * What the follower of a stream has not seen.
 *
 * @since 0.1.0
 * @category getters
 */
export const pending = (model: Model, stream: StreamName): ReadonlyArray<Entry> =>
  entriesOf(model, stream).filter(({ seq }) => seq > (model.followed.get(stream) ?? 0))

/**
 * What the follower of all streams has not seen.
 *
 * @since 0.1.0
 * @category getters
 */
export const pendingAll = (model: Model): ReadonlyArray<Entry> =>
  model.entries.filter(({ ordinal }) => ordinal > model.followedAll.ordinal)

/**
 * The state of a fold of entries.
 *
 * @since 0.1.0
 * @category getters
 */
export const fold = Effect.fnUntraced(function* <State, Scope extends Fold.Any["scope"]>(
  fold: Fold.Fold<State, Scope>,
  entries: ReadonlyArray<Entry>
): Effect.fn.Return<State, JournalError> {
  const accumulator = yield* Effect.fromResult(fold.begin(undefined))
  for (const entry of entries) {
    const error = accumulator.apply(entry)
    if (error !== undefined) return yield* error
  }
  return accumulator.state()
})
