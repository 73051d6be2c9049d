/** Which row is ready when, earliest first; rows of one time in the order of their ids. */
export interface HeapEntry {
  readonly readyAt: number
  readonly id: number
}

/**
 * A binary heap that learns of removals when it meets them: `isCurrent` tells whether an entry still describes its row,
 * and entries that do not are dropped when they come up.
 */
export interface Heap {
  readonly push: (entry: HeapEntry) => void
  readonly peek: () => HeapEntry | undefined
  readonly pop: () => HeapEntry | undefined
}

export const make = (isCurrent: (entry: HeapEntry) => boolean): Heap => {
  const entries: Array<HeapEntry> = []

  const removeFirst = () => {
    const last = entries.pop()!
    if (entries.length > 0) {
      entries[0] = last
      sink(entries)
    }
  }

  const peek = () => {
    while (entries.length > 0 && !isCurrent(entries[0]!)) {
      removeFirst()
    }
    return entries[0]
  }

  return {
    push: (entry) => {
      entries.push(entry)
      rise(entries)
    },
    peek,
    pop: () => {
      const first = peek()
      if (first !== undefined) removeFirst()
      return first
    }
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const isBefore = (a: HeapEntry, b: HeapEntry): boolean =>
  a.readyAt < b.readyAt || (a.readyAt === b.readyAt && a.id < b.id)

const rise = (entries: Array<HeapEntry>): void => {
  let child = entries.length - 1
  while (child > 0) {
    const parent = (child - 1) >> 1
    if (!isBefore(entries[child]!, entries[parent]!)) return
    swap(entries, child, parent)
    child = parent
  }
}

const sink = (entries: Array<HeapEntry>): void => {
  let parent = 0
  while (true) {
    const left = 2 * parent + 1
    if (left >= entries.length) return
    const right = left + 1
    const child = right < entries.length && isBefore(entries[right]!, entries[left]!) ? right : left
    if (!isBefore(entries[child]!, entries[parent]!)) return
    swap(entries, child, parent)
    parent = child
  }
}

const swap = (entries: Array<HeapEntry>, a: number, b: number): void => {
  const entry = entries[a]!
  entries[a] = entries[b]!
  entries[b] = entry
}
