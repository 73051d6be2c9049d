import { DurableWriter, insideWrite, WriteTransaction } from "@strata/durable/DurableWriter"
import * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import type { Cursor, JournalStorage, Page, StoredEntry } from "../JournalStorage.ts"
import * as State from "./memoryState.ts"

type Storage = JournalStorage["Service"]

export const make: Effect.Effect<Storage, never, DurableWriter> = Effect.map(DurableWriter, (writer) => {
  const access = makeAccess(writer)
  return {
    ...appending(access),
    ...streams(access),
    ...reading(access),
    ...checkpoints(access),
    ...compaction(access),
    ...rewinding(access)
  }
})

interface Access {
  /** Changes the state in one step, which is undone if the write rolls back. */
  readonly change: <A>(
    f: (state: State.MemoryState, undo: Array<State.Undo>) => A
  ) => Effect.Effect<A, never, WriteTransaction>
  /** Sees what is committed, and what the write under way has done if this belongs to it. */
  readonly look: <A>(f: (state: State.MemoryState) => A) => Effect.Effect<A, SqlError>
}

const makeAccess = (writer: DurableWriter["Service"]): Access => {
  const state = State.make()
  return {
    change: (f) =>
      WriteTransaction.use((transaction) => {
        const undo: Array<State.Undo> = []
        return Effect.map(
          transaction.onRollback(() => {
            for (let i = undo.length - 1; i >= 0; i--) {
              undo[i]!()
            }
          }),
          () => f(state, undo)
        )
      }),
    look: (f) =>
      Effect.flatMap(insideWrite, (isInside) => {
        const look = Effect.sync(() => f(state))
        // Waits for the write of another fiber, as on a database with one connection.
        return isInside ? look : writer.write(look)
      })
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// appending
// ---------------------------------------------------------------------------------------------------------------------

const appending = ({ change, look }: Access): Pick<Storage, "append" | "appendAll" | "identities"> => ({
  appendAll: (now, appends) =>
    Effect.forEach(appends, ({ events, stream }) => appendTo(change, now, stream, events), { discard: true }),
  append: (now, name, events) => appendTo(change, now, name, events),

  identities: (name, identities) =>
    look((state) => {
      const known = state.streams.get(name)?.identities
      return identities.flatMap((identity) => known?.get(identity) ?? [])
    })
})

const appendTo = (change: Access["change"], now: number, name: string, events: Parameters<Storage["append"]>[2]) =>
  change((state, undo) => {
    const stream = state.streams.get(name) ?? State.emptyStream(name, state.removedHead)
    State.put(state.streams, name, stream, undo)
    const ordinal = state.ordinal
    const head = stream.head
    State.assign(state, "ordinal", ordinal + events.length, undo)
    State.assign(stream, "head", head + events.length, undo)
    return events.map(({ digest, identity, payload, type }, i) => {
      const at = { transaction: 0, ordinal: ordinal + 1 + i, seq: head + 1 + i }
      const entry = { ...at, stream: name, type, payload, identity, recordedAt: now }
      State.push(stream.entries, entry, undo)
      State.push(state.entries, entry, undo)
      if (identity !== null && digest !== null) {
        State.put(stream.identities, identity, { ...at, identity, digest }, undo)
      }
      return at
    })
  })

// ---------------------------------------------------------------------------------------------------------------------
// streams
// ---------------------------------------------------------------------------------------------------------------------

const streams = ({ look }: Access): Pick<Storage, "stream" | "streams"> => ({
  stream: (name) =>
    look((state) => {
      const stream = state.streams.get(name)
      return stream && toStream(stream)
    }),
  streams: ({ after, limit, prefix }) =>
    look((state) =>
      Array.from(state.streams.values())
        .filter(({ name }) => name.startsWith(prefix) && compareBytes(name, after) > 0)
        .toSorted((a, b) => compareBytes(a.name, b.name))
        .slice(0, limit)
        .map(toStream)
    )
})

// ---------------------------------------------------------------------------------------------------------------------
// reading
// ---------------------------------------------------------------------------------------------------------------------

const reading = ({ look }: Access): Pick<Storage, "read" | "readAll" | "lastUpTo" | "firstAfter"> => ({
  read: ({ after, limit, stream: name, types, upTo }) =>
    look((state): Page<number> => {
      const stream = state.streams.get(name) ?? State.emptyStream(name)
      const entries = select(stream.entries, bySeq, after, upTo, types, limit)
      const complete = entries.length < limit
      return {
        entries,
        complete,
        through: complete ? Math.max(after, Math.min(stream.head, upTo)) : entries.at(-1)!.seq,
        floor: stream.floor,
        generation: state.rewinds
      }
    }),

  readAll: ({ after, limit, types, upTo }) =>
    look((state): Page<Cursor> => {
      const end = upTo === undefined ? Number.MAX_SAFE_INTEGER : upTo.ordinal
      const entries = select(state.entries, byOrdinal, after.ordinal, end, types, limit)
      const complete = entries.length < limit
      const head = Math.min(state.entries.at(-1)?.ordinal ?? 0, end)
      return {
        entries,
        complete,
        through: cursor(complete ? Math.max(after.ordinal, head) : entries.at(-1)!.ordinal),
        floor: cursor(state.floor),
        generation: state.rewinds
      }
    }),

  lastUpTo: (name, seq) =>
    look((state) => {
      const entries = state.streams.get(name)?.entries ?? []
      return entries[firstAfter(entries, bySeq, seq) - 1]
    }),
  firstAfter: (name, seq) =>
    look((state) => {
      const entries = state.streams.get(name)?.entries ?? []
      return entries[firstAfter(entries, bySeq, seq)]
    })
})

// ---------------------------------------------------------------------------------------------------------------------
// checkpoints
// ---------------------------------------------------------------------------------------------------------------------

const checkpoints = ({
  change,
  look
}: Access): Pick<
  Storage,
  "saveStates" | "states" | "checkpoints" | "saveGlobalStates" | "globalStates" | "dropGlobalStates" | "globalFloor"
> => ({
  saveStates: (_now, name, seq, states) =>
    change((state, undo) => {
      const stream = state.streams.get(name)
      if (stream === undefined || states.length === 0) return
      const saved = new Map(stream.states.get(seq))
      for (const { fold, state } of states) saved.set(fold, state)
      State.put(stream.states, seq, saved, undo)
    }),
  states: (name, seq) =>
    look((state) =>
      Array.from(state.streams.get(name)?.states.get(seq) ?? [], ([fold, state]) => ({ fold, state })).toSorted(byFold)
    ),
  checkpoints: (name) =>
    look((state) =>
      Array.from(state.streams.get(name)?.states ?? [])
        .toSorted(([a], [b]) => a - b)
        .flatMap(([seq, states]) => Array.from(states.keys(), (fold) => ({ seq, fold })).toSorted(byFold))
    ),
  saveGlobalStates: (_now, states) =>
    change((state, undo) => {
      const folds = new Set(states.map(({ fold }) => fold))
      const kept = state.globalStates.filter(({ fold }) => !folds.has(fold))
      State.assign(state, "globalStates", [...kept, ...states].toSorted(byFold), undo)
    }),
  globalStates: look((state) => state.globalStates),
  dropGlobalStates: (folds) =>
    change((state, undo) => {
      const kept = state.globalStates.filter(({ fold }) => !folds.includes(fold))
      State.assign(state, "globalStates", kept, undo)
    }),
  globalFloor: look((state) => cursor(state.floor))
})

// ---------------------------------------------------------------------------------------------------------------------
// compaction
// ---------------------------------------------------------------------------------------------------------------------

const compaction = ({ change }: Access): Pick<Storage, "deleteBelow" | "raiseFloor" | "remove"> => ({
  deleteBelow: (name, seq) =>
    change((state, undo) => {
      const stream = state.streams.get(name)
      if (stream === undefined) return 0
      const kept = stream.entries.slice(firstAfter(stream.entries, bySeq, seq - 1))
      const deleted = stream.entries.length - kept.length
      State.assign(stream, "entries", kept, undo)
      dropEntries(state, (entry) => entry.stream === name && entry.seq < seq, undo)
      return deleted
    }),

  raiseFloor: (name, seq, global) =>
    change((state, undo) => {
      const stream = state.streams.get(name)
      if (stream === undefined) return
      dropStates(stream, (at) => at < seq, undo)
      State.assign(stream, "floor", seq, undo)
      State.assign(state, "floor", Math.max(state.floor, global.ordinal), undo)
    }),

  remove: (name, global) =>
    change((state, undo) => {
      const stream = state.streams.get(name)
      if (stream === undefined) return 0
      State.assign(state, "removedHead", Math.max(state.removedHead, stream.head), undo)
      State.put(state.streams, name, undefined, undo)
      dropEntries(state, (entry) => entry.stream === name, undo)
      State.assign(state, "floor", Math.max(state.floor, global.ordinal), undo)
      return stream.entries.length
    })
})

// ---------------------------------------------------------------------------------------------------------------------
// rewinding
// ---------------------------------------------------------------------------------------------------------------------

const rewinding = ({ change, look }: Access): Pick<Storage, "archive" | "archived"> => ({
  archive: (now, name, after) =>
    change((state, undo) => {
      const rewind = state.rewinds + 1
      State.assign(state, "rewinds", rewind, undo)
      const stream = state.streams.get(name)
      if (stream === undefined) return { rewind, archived: 0 }
      const end = firstAfter(stream.entries, bySeq, after)
      const archived = stream.entries.slice(end).map((entry) => ({ ...entry, rewind, archivedAt: now }))
      State.assign(stream, "archive", [...stream.archive, ...archived], undo)
      State.assign(stream, "entries", stream.entries.slice(0, end), undo)
      dropEntries(state, (entry) => entry.stream === name && entry.seq > after, undo)
      dropStates(stream, (at) => at > after, undo)
      for (const { identity, seq } of Array.from(stream.identities.values())) {
        if (seq > after) State.put(stream.identities, identity, undefined, undo)
      }
      return { rewind, archived: archived.length }
    }),

  archived: ({ before, limit, rewind, stream: name }) =>
    look((state) =>
      (state.streams.get(name)?.archive ?? [])
        .filter((entry) => entry.seq < before && (rewind === undefined || entry.rewind === rewind))
        .toSorted((a, b) => b.seq - a.seq)
        .slice(0, limit)
    )
})

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const cursor = (ordinal: number): Cursor => ({ transaction: 0, ordinal })

const toStream = ({ floor, head, name }: State.MemoryStream) => ({ stream: name, head, floor })

const bySeq = (entry: StoredEntry): number => entry.seq

const byOrdinal = (entry: StoredEntry): number => entry.ordinal

const byFold = (a: { readonly fold: string }, b: { readonly fold: string }): number => compareBytes(a.fold, b.fold)

const compareBytes = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b))

/** The index of the first entry behind a position. */
const firstAfter = (
  entries: ReadonlyArray<StoredEntry>,
  position: (entry: StoredEntry) => number,
  after: number
): number => {
  let low = 0
  let high = entries.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (position(entries[middle]!) > after) high = middle
    else low = middle + 1
  }
  return low
}

const select = (
  entries: ReadonlyArray<StoredEntry>,
  position: (entry: StoredEntry) => number,
  after: number,
  upTo: number,
  types: ReadonlyArray<string> | undefined,
  limit: number
): ReadonlyArray<StoredEntry> => {
  const found: Array<StoredEntry> = []
  for (let i = firstAfter(entries, position, after); i < entries.length && found.length < limit; i++) {
    const entry = entries[i]!
    if (position(entry) > upTo) break
    if (types === undefined || types.includes(entry.type)) found.push(entry)
  }
  return found
}

const dropEntries = (state: State.MemoryState, goes: (entry: StoredEntry) => boolean, undo: Array<State.Undo>): void =>
  State.assign(
    state,
    "entries",
    state.entries.filter((entry) => !goes(entry)),
    undo
  )

const dropStates = (stream: State.MemoryStream, goes: (seq: number) => boolean, undo: Array<State.Undo>): void => {
  for (const seq of Array.from(stream.states.keys())) {
    if (goes(seq)) State.put(stream.states, seq, undefined, undo)
  }
}
