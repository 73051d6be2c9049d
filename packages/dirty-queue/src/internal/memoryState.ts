import type { StoredEntry } from "../ChangelogStorage.ts"
import type { StorageFilter, StoredRegistration } from "../DirtyQueueStorage.ts"
import type { RowState } from "../Transition.ts"
import * as Heap from "./heap.ts"

export interface MemoryRegistration extends StoredRegistration {
  readonly backfillCredit: number
}

/** Undoes one change; those of a write run in reverse order when it rolls back. */
export type Undo = () => void

/**
 * The tables of the queue in memory. Rows and registrations are immutable values that are replaced; every method that
 * changes something appends its undo to the list that it is given.
 */
export interface MemoryState {
  readonly version: () => number
  readonly draw: (undo: Array<Undo>, count?: number) => number

  readonly entries: () => ReadonlyArray<StoredEntry>
  readonly append: (entry: Omit<StoredEntry, "seq">, undo: Array<Undo>) => number
  readonly replaceEntries: (entries: ReadonlyArray<StoredEntry>, undo: Array<Undo>) => void

  /** In the order of registration. */
  readonly registrations: (filter: StorageFilter) => ReadonlyArray<MemoryRegistration>
  readonly addRegistration: (
    registration: Pick<MemoryRegistration, "follower" | "scope" | "prefix">,
    undo: Array<Undo>
  ) => MemoryRegistration
  readonly setRegistration: (registration: MemoryRegistration, undo: Array<Undo>) => void
  readonly removeRegistration: (registration: MemoryRegistration, undo: Array<Undo>) => void

  readonly row: (id: number) => RowState | undefined
  readonly rowAt: (registration: number, path: string) => RowState | undefined
  readonly rows: (registration: number) => Iterable<RowState>
  readonly newRowId: () => number
  readonly setRow: (row: RowState, undo: Array<Undo>) => void
  readonly removeRow: (row: RowState, undo: Array<Undo>) => void
  /** Takes the first row of a lane out of the order of readiness; it comes back with the next `setRow`. */
  readonly takeReady: (registration: number, lane: 0 | 1, now: number) => RowState | undefined
  readonly earliest: (registration: number, lane: 0 | 1) => number | null
}

export const make = (): MemoryState => {
  const changelog = makeChangelog()
  const registry = makeRegistry()
  const rows = makeRows()
  return {
    ...changelog,
    ...registry,
    ...rows,
    removeRegistration: (registration, undo) => {
      for (const row of Array.from(rows.rows(registration.id))) {
        rows.removeRow(row, undo)
      }
      registry.removeRegistration(registration, undo)
    }
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// changelog and versions
// ---------------------------------------------------------------------------------------------------------------------

const makeChangelog = (): Pick<MemoryState, "version" | "draw" | "entries" | "append" | "replaceEntries"> => {
  let version = 0
  let seq = 0
  let entries: ReadonlyArray<StoredEntry> = []
  /** The same array as `entries`, while it may grow in place. */
  let growing: Array<StoredEntry> = []
  const replace = (next: ReadonlyArray<StoredEntry>) => {
    growing = Array.from(next)
    entries = growing
  }
  replace([])
  return {
    version: () => version,
    draw: (undo, count = 1) => {
      version += count
      undo.push(() => void (version -= count))
      return version
    },
    entries: () => entries,
    append: (entry, undo) => {
      seq++
      growing.push({ ...entry, seq })
      undo.push(() => {
        growing.pop()
        seq--
      })
      return seq
    },
    replaceEntries: (next, undo) => {
      const before = entries
      replace(next)
      undo.push(() => replace(before))
    }
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// registrations
// ---------------------------------------------------------------------------------------------------------------------

const makeRegistry = (): Pick<
  MemoryState,
  "registrations" | "addRegistration" | "setRegistration" | "removeRegistration"
> => {
  let lastId = 0
  const byScope = new Map<string, Map<number, MemoryRegistration>>()

  const set = (registration: MemoryRegistration) => {
    const scope = byScope.get(registration.scope) ?? new Map<number, MemoryRegistration>()
    scope.set(registration.id, registration)
    byScope.set(registration.scope, scope)
  }
  const remove = (registration: MemoryRegistration) => {
    const scope = byScope.get(registration.scope)
    scope?.delete(registration.id)
    if (scope?.size === 0) byScope.delete(registration.scope)
  }
  const candidates = (scope: string | undefined) =>
    scope === undefined
      ? Array.from(byScope.values(), (registrations) => Array.from(registrations.values())).flat()
      : Array.from(byScope.get(scope)?.values() ?? [])

  return {
    registrations: ({ follower, scope }) =>
      candidates(scope)
        .filter((registration) => follower === undefined || registration.follower === follower)
        .toSorted((a, b) => a.id - b.id),
    addRegistration: ({ follower, prefix, scope }, undo) => {
      const added = { id: ++lastId, follower, scope, prefix, servedAt: 0, backfillCredit: 0 }
      set(added)
      undo.push(() => {
        remove(added)
        lastId--
      })
      return added
    },
    setRegistration: (registration, undo) => {
      const before = byScope.get(registration.scope)?.get(registration.id)
      set(registration)
      if (before !== undefined) undo.push(() => set(before))
    },
    removeRegistration: (registration, undo) => {
      remove(registration)
      undo.push(() => set(registration))
    }
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// rows
// ---------------------------------------------------------------------------------------------------------------------

const makeRows = (): Pick<
  MemoryState,
  "row" | "rowAt" | "rows" | "newRowId" | "setRow" | "removeRow" | "takeReady" | "earliest"
> => {
  let lastId = 0
  const byId = new Map<number, RowState>()
  const byPath = new Map<number, Map<string, RowState>>()
  const lanes = new Map<string, Heap.Heap>()

  const laneOf = (registration: number, lane: 0 | 1): Heap.Heap => {
    const key = `${registration}/${lane}`
    const found = lanes.get(key)
    if (found !== undefined) return found
    const heap = Heap.make(({ id, readyAt }) => {
      const row = byId.get(id)
      return row !== undefined && row.lane === lane && row.readyAt === readyAt
    })
    lanes.set(key, heap)
    return heap
  }

  const set = (row: RowState) => {
    const before = byId.get(row.id)
    byId.set(row.id, row)
    const paths = byPath.get(row.registration) ?? new Map<string, RowState>()
    paths.set(row.path, row)
    byPath.set(row.registration, paths)
    // A row that keeps its place has its entry already.
    if (row.readyAt !== null && (row.readyAt !== before?.readyAt || row.lane !== before.lane)) {
      laneOf(row.registration, row.lane).push({ readyAt: row.readyAt, id: row.id })
    }
  }

  const remove = (row: RowState) => {
    byId.delete(row.id)
    const paths = byPath.get(row.registration)
    paths?.delete(row.path)
    if (paths?.size === 0) {
      byPath.delete(row.registration)
      // Every entry that is left describes a row that is gone.
      lanes.delete(`${row.registration}/0`)
      lanes.delete(`${row.registration}/1`)
    }
  }

  return {
    row: (id) => byId.get(id),
    rowAt: (registration, path) => byPath.get(registration)?.get(path),
    rows: (registration) => byPath.get(registration)?.values() ?? [],
    newRowId: () => ++lastId,
    setRow: (row, undo) => {
      const before = byId.get(row.id)
      set(row)
      undo.push(() => (before === undefined ? remove(row) : set(before)))
    },
    removeRow: (row, undo) => {
      remove(row)
      undo.push(() => set(row))
    },
    takeReady: (registration, lane, now) => {
      const heap = laneOf(registration, lane)
      const first = heap.peek()
      if (first === undefined || first.readyAt > now) return undefined
      heap.pop()
      return byId.get(first.id)
    },
    earliest: (registration, lane) => laneOf(registration, lane).peek()?.readyAt ?? null
  }
}
