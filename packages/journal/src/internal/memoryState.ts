import type { StoredArchived, StoredEntry, StoredGlobalState, StoredIdentity } from "../JournalStorage.ts"

/** Undoes one change; those of a write run in reverse order when it rolls back. */
export type Undo = () => void

/** A stream of the memory tier. */
export interface MemoryStream {
  readonly name: string
  head: number
  floor: number
  /** In the order of seqs. An array that was replaced is never changed again. */
  entries: Array<StoredEntry>
  readonly identities: Map<string, StoredIdentity>
  /** States by fold, by seq. */
  readonly states: Map<number, Map<string, string>>
  archive: Array<StoredArchived>
}

/** The tables of the journal in memory. */
export interface MemoryState {
  readonly streams: Map<string, MemoryStream>
  /** In the order of ordinals. An array that was replaced is never changed again. */
  entries: Array<StoredEntry>
  ordinal: number
  floor: number
  rewinds: number
  /** The greatest seq of streams that were removed. */
  removedHead: number
  globalStates: ReadonlyArray<StoredGlobalState>
}

export const make = (): MemoryState => ({
  streams: new Map(),
  entries: [],
  ordinal: 0,
  floor: 0,
  rewinds: 0,
  removedHead: 0,
  globalStates: []
})

export const emptyStream = (name: string, head = 0): MemoryStream => ({
  name,
  head,
  floor: 0,
  entries: [],
  identities: new Map(),
  states: new Map(),
  archive: []
})

// ---------------------------------------------------------------------------------------------------------------------
// changes that can be undone
// ---------------------------------------------------------------------------------------------------------------------

/** Sets one property. */
export const assign = <A extends object, K extends keyof A>(
  target: A,
  key: K,
  value: A[K],
  undo: Array<Undo>
): void => {
  const before = target[key]
  target[key] = value
  undo.push(() => void (target[key] = before))
}

/** Appends an item to an array. Undone in reverse order, so the item is the last one again. */
export const push = <A>(target: Array<A>, item: A, undo: Array<Undo>): void => {
  target.push(item)
  undo.push(() => void target.pop())
}

/** Sets or, with `undefined`, removes the value of a key. */
export const put = <K, A>(target: Map<K, A>, key: K, value: A | undefined, undo: Array<Undo>): void => {
  const before = target.get(key)
  set(target, key, value)
  undo.push(() => set(target, key, before))
}

const set = <K, A>(target: Map<K, A>, key: K, value: A | undefined): void => {
  if (value === undefined) target.delete(key)
  else target.set(key, value)
}
