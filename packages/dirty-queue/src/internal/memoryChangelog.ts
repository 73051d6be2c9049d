import type { DurableWriter } from "@strata/durable/DurableWriter"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { ChangelogStorage, StoredChange, StoredEntry } from "../ChangelogStorage.ts"
import type { MemoryStore } from "../MemoryStore.ts"
import * as Prefix from "../Prefix.ts"
import * as Transition from "../Transition.ts"
import * as Memory from "./memory.ts"
import type { MemoryState, Undo } from "./memoryState.ts"

export const make: Effect.Effect<ChangelogStorage, never, MemoryStore | DurableWriter> = Effect.map(
  Memory.access,
  ({ change, read }) => ({
    databaseTime: Clock.currentTimeMillis,

    append: (now, changes) =>
      change((state, undo) => {
        const seqs = changes.map((change) => append(state, undo, now, change))
        return { first: seqs[0] ?? 0, last: seqs.at(-1) ?? 0 }
      }),

    read: ({ after, limit, prefix, scope }) =>
      read((state) => {
        const entries = state.entries()
        const found: Array<StoredEntry> = []
        for (let i = firstAfter(entries, after); i < entries.length && found.length < limit; i++) {
          const entry = entries[i]!
          if (covers(entry, scope, prefix)) found.push(entry)
        }
        return found
      }),

    firstSince: (time) => read((state) => state.entries().find((entry) => entry.recordedAt >= time)?.seq),

    prune: ({ before, limit, prefix, scope }) =>
      change((state, undo) => {
        let removed = 0
        const kept = state.entries().filter((entry) => {
          const goes = removed < limit && entry.seq < before && covers(entry, scope, prefix)
          if (goes) removed++
          return !goes
        })
        if (removed > 0) state.replaceEntries(kept, undo)
        return removed
      })
  })
)

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/** Appends a change and does to the dirty rows what the trigger does on SQL tiers. */
const append = (state: MemoryState, undo: Array<Undo>, now: number, change: StoredChange): number => {
  const seq = state.append({ ...change, recordedAt: now }, undo)
  const version = state.draw(undo)
  for (const { id, prefix } of state.registrations({ follower: undefined, scope: change.scope })) {
    if (!Prefix.covers(prefix, change.path)) continue
    const row = state.rowAt(id, change.path)
    const identity = row ?? { id: state.newRowId(), registration: id, path: change.path }
    state.setRow(Transition.applyChange(row, identity, { ...change, version, seq, at: now }), undo)
  }
  return seq
}

const covers = (entry: StoredEntry, scope: string | undefined, prefix: string): boolean =>
  (scope === undefined || entry.scope === scope) && Prefix.covers(prefix, entry.path)

/** Entries are in the order of their sequence numbers. */
const firstAfter = (entries: ReadonlyArray<StoredEntry>, after: number): number => {
  let low = 0
  let high = entries.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (entries[middle]!.seq > after) high = middle
    else low = middle + 1
  }
  return low
}
