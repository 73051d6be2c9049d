import { DurableWriter, insideWrite, WriteTransaction } from "@strata/durable/DurableWriter"
import * as Text from "@strata/durable/Text"
import * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import { Buffer } from "node:buffer"
import type {
  Restoring,
  StagedEvent,
  Staging,
  StepCacheStorage,
  StoredCutoff,
  StoredHead,
  StoredLedgerRow
} from "../StepCacheStorage.ts"
import type { Operations } from "./stepCacheCollecting.ts"

/** The tables in memory. Values are never changed, only replaced. */
interface State {
  readonly results: Map<string, string>
  readonly ledger: Map<number, StoredLedgerRow>
  readonly heads: Map<string, { readonly ledger: number; readonly usedAt: number }>
  lastLedger: number
}

export const make: Effect.Effect<StepCacheStorage["Service"], never, DurableWriter> = Effect.map(
  DurableWriter,
  (writer) => {
    const { change, look } = makeAccess(writer)
    return {
      // Writers in memory wait for each other anyway.
      lock: Effect.void,
      find: (key) =>
        look((state) => {
          const head = headOf(state, key)
          return head && { ...head, value: state.results.get(head.digest) ?? "" }
        }),
      insert: (now, { value, ...record }) =>
        change((state, undo) => {
          const ledger = ++state.lastLedger
          put(state.results, record.digest, value, undo)
          put(state.ledger, ledger, { ...record, ledger }, undo)
          put(state.heads, record.key, { ledger, usedAt: now }, undo)
          return ledger
        }),
      remove: (key, ledger, usedAt) =>
        change((state, undo) => {
          const head = state.heads.get(key)
          if (head?.ledger !== ledger || (usedAt !== undefined && head.usedAt !== usedAt)) return false
          put(state.heads, key, undefined, undo)
          return true
        }),
      touch: (now, key, ledger) =>
        change((state, undo) => {
          const head = state.heads.get(key)
          if (head?.ledger !== ledger || head.usedAt >= now) return
          put(state.heads, key, { ledger, usedAt: now }, undo)
        }),
      heads: (after, limit) =>
        look((state) =>
          Text.sortedBy(Array.from(state.heads.keys()), (key) => key)
            .filter((key) => key > after)
            .slice(0, limit)
            .flatMap((key) => headOf(state, key) ?? [])
        ),
      withRestoring: withRestoring({ change }),
      withStaging: withStaging({ look }),
      results: (after, limit) =>
        look((state) =>
          Array.from(state.results, ([digest, value], i) => ({ id: i + 1, digest, value })).slice(after, after + limit)
        ),
      ...collecting({ change, look })
    }
  }
)

// ---------------------------------------------------------------------------------------------------------------------
// restoring
// ---------------------------------------------------------------------------------------------------------------------

const withRestoring =
  ({ change }: Pick<Access, "change">): StepCacheStorage["Service"]["withRestoring"] =>
  (use) => {
    const heads = new Map<string, number>()
    const restoring: Restoring = {
      rows: (events, collected) =>
        change((state, undo) => {
          decideHeads(heads, events)
          const rows = events.filter(isRow)
          for (const row of rows) put(state.ledger, row.ledger, row, undo)
          for (const ledger of collected) put(state.ledger, ledger, undefined, undo)
          state.lastLedger = Math.max(state.lastLedger, ...rows.map(({ ledger }) => ledger))
          return rows.filter(({ digest }) => !state.results.has(digest))
        }),
      heads: (now) =>
        change((state, undo) => {
          for (const [key, ledger] of heads) put(state.heads, key, { ledger, usedAt: now }, undo)
          return heads.size
        })
    }
    const clear = change((state, undo) => {
      for (const id of Array.from(state.ledger.keys())) put(state.ledger, id, undefined, undo)
      for (const key of Array.from(state.heads.keys())) put(state.heads, key, undefined, undo)
    })
    return Effect.andThen(
      clear,
      Effect.suspend(() => use(restoring))
    )
  }

const isRow = (event: StagedEvent): event is StoredLedgerRow => event.ledger !== null

/** The last event of each key decides. */
const decideHeads = (heads: Map<string, number>, events: ReadonlyArray<StagedEvent>): void => {
  for (const { key, ledger } of events) {
    if (ledger === null) heads.delete(key)
    else heads.set(key, ledger)
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// staging
// ---------------------------------------------------------------------------------------------------------------------

const withStaging =
  ({ look }: Pick<Access, "look">): StepCacheStorage["Service"]["withStaging"] =>
  (use) =>
    Effect.suspend(() => {
      const heads = new Map<string, number>()
      const ledger = new Map<number, StoredLedgerRow>()
      const staging: Staging = {
        stage: (events, collected) =>
          Effect.sync(() => {
            decideHeads(heads, events)
            for (const row of events.filter(isRow)) ledger.set(row.ledger, row)
            for (const id of collected) ledger.delete(id)
          }),
        unjoined: look((state) => Array.from(ledger.values()).filter(({ digest }) => !state.results.has(digest))),
        differences: look((state) => ({
          missing: sorted([
            ...Array.from(ledger.values()).flatMap((row) =>
              isSame(row, state.ledger.get(row.ledger)) ? [] : [row.key]
            ),
            ...Array.from(heads).flatMap(([key, ledger]) => (state.heads.get(key)?.ledger === ledger ? [] : [key]))
          ]),
          unexplained: sorted([
            ...Array.from(state.ledger.values()).flatMap((row) => (ledger.has(row.ledger) ? [] : [row.key])),
            ...Array.from(state.heads.keys()).filter((key) => !heads.has(key))
          ])
        }))
      }
      return use(staging)
    })

const isSame = (row: StoredLedgerRow, that: StoredLedgerRow | undefined): boolean =>
  that !== undefined &&
  row.key === that.key &&
  row.recording === that.recording &&
  row.digest === that.digest &&
  row.artifacts === that.artifacts &&
  row.recordedBy === that.recordedBy &&
  row.recordedAt === that.recordedAt &&
  row.action === that.action &&
  row.version === that.version &&
  row.durationMs === that.durationMs &&
  row.from === that.from

const sorted = (keys: ReadonlyArray<string>): ReadonlyArray<string> => Array.from(new Set(keys)).toSorted()

const headOf = (state: State, key: string): StoredHead | undefined => {
  const head = state.heads.get(key)
  const row = head && state.ledger.get(head.ledger)
  return head && row && { ...row, usedAt: head.usedAt }
}

// ---------------------------------------------------------------------------------------------------------------------
// collecting
// ---------------------------------------------------------------------------------------------------------------------

const collecting = ({ change, look }: Access): Pick<StepCacheStorage["Service"], Operations> => ({
  cutoff: ({ maxBytes, maxEntries, usedBefore }) =>
    look((state) => {
      let total = 0
      return allHeads(state)
        .toSorted(byLastUse)
        .find((head, i) => {
          total += Buffer.byteLength(state.results.get(head.digest) ?? "")
          for (const size of blobsOf(head).values()) total += size
          return head.usedAt < usedBefore || i >= maxEntries || total > maxBytes
        })
    }),
  beyond: (cutoff, after, limit) =>
    look((state) =>
      allHeads(state)
        .filter((head) => head.key > after && byLastUse(head, cutoff) >= 0)
        .toSorted((a, b) => Text.compareBytes(a.key, b.key))
        .slice(0, limit)
    ),
  outdated: (recordedBefore, after, limit) =>
    look((state) =>
      Array.from(state.ledger.values())
        .filter((row) => row.ledger > after && row.recordedAt < recordedBefore && !isHead(state, row))
        .map(({ ledger }) => ledger)
        .toSorted((a, b) => a - b)
        .slice(0, limit)
    ),
  deleteLedger: (ids) =>
    change((state, undo) => {
      const deleted = ids.filter((id) => {
        const row = state.ledger.get(id)
        return row !== undefined && !isHead(state, row)
      })
      for (const id of deleted) put(state.ledger, id, undefined, undo)
      return deleted
    }),
  unused: (after, limit) =>
    look((state) => {
      const used = usedResults(state)
      return Array.from(state.results.keys())
        .filter((digest) => digest > after && !used.has(digest))
        .toSorted(Text.compareBytes)
        .slice(0, limit)
    }),
  deleteResults: (digests) =>
    change((state, undo) => {
      const used = usedResults(state)
      return digests.flatMap((digest) => {
        const value = state.results.get(digest)
        if (value === undefined || used.has(digest)) return []
        put(state.results, digest, undefined, undo)
        return [{ digest, bytes: Buffer.byteLength(value) }]
      })
    }),
  unreferenced: (digests) => look((state) => digests.filter((digest) => !referenced(state).has(digest))),
  stats: look((state) => {
    const origins = new Map<string | null, number>()
    for (const { ledger } of state.heads.values()) {
      const from = state.ledger.get(ledger)?.from ?? null
      origins.set(from, (origins.get(from) ?? 0) + 1)
    }
    const blobs = referenced(state)
    return {
      entries: state.heads.size,
      origins: Array.from(origins, ([from, entries]) => ({ from, entries })).toSorted((a, b) =>
        Text.compareBytes(a.from ?? "", b.from ?? "")
      ),
      ledger: state.ledger.size,
      results: state.results.size,
      resultBytes: sum(Array.from(state.results.values(), (value) => Buffer.byteLength(value))),
      artifacts: blobs.size,
      artifactBytes: sum(Array.from(blobs.values()))
    }
  })
})

const allHeads = (state: State): ReadonlyArray<StoredHead> =>
  Array.from(state.heads.keys()).flatMap((key) => headOf(state, key) ?? [])

/** Latest first. */
const byLastUse = (a: StoredCutoff, b: StoredCutoff): number => b.usedAt - a.usedAt || Text.compareBytes(a.key, b.key)

const isHead = (state: State, { key, ledger }: StoredLedgerRow): boolean => state.heads.get(key)?.ledger === ledger

const usedResults = (state: State): ReadonlySet<string> =>
  new Set(Array.from(state.ledger.values(), ({ digest }) => digest))

/** Sizes by digest. */
const blobsOf = ({ artifacts }: StoredLedgerRow): ReadonlyMap<string, number> => {
  const parsed: ReadonlyArray<{ readonly digest: string; readonly size: number }> = JSON.parse(artifacts)
  return new Map(parsed.map(({ digest, size }) => [digest, size]))
}

const referenced = (state: State): ReadonlyMap<string, number> =>
  new Map(Array.from(state.ledger.values()).flatMap((row) => Array.from(blobsOf(row))))

const sum = (numbers: ReadonlyArray<number>): number => numbers.reduce((total, number) => total + number, 0)

// ---------------------------------------------------------------------------------------------------------------------
// access
// ---------------------------------------------------------------------------------------------------------------------

type Undo = Array<() => void>

interface Access {
  /** Changes the state in one step, which is undone if the write rolls back. */
  readonly change: <A>(f: (state: State, undo: Undo) => A) => Effect.Effect<A, never, WriteTransaction>
  /** Sees what is committed, and what the write under way has done if this belongs to it. */
  readonly look: <A>(f: (state: State) => A) => Effect.Effect<A, SqlError>
}

const makeAccess = (writer: DurableWriter["Service"]): Access => {
  const state: State = {
    results: new Map(),
    ledger: new Map(),
    heads: new Map(),
    lastLedger: 0
  }
  return {
    change: (f) =>
      WriteTransaction.use((transaction) => {
        const undo: Undo = []
        const rollback = () => {
          while (undo.length > 0) undo.pop()!()
        }
        return Effect.map(transaction.onRollback(rollback), () => f(state, undo))
      }),
    look: (f) =>
      Effect.flatMap(insideWrite, (isInside) => {
        const look = Effect.sync(() => f(state))
        // Waits for the write of another fiber, as on a database with one connection.
        return isInside ? look : writer.write(look)
      })
  }
}

/** Sets or, with `undefined`, removes the value of a key. */
const put = <K, A>(target: Map<K, A>, key: K, value: A | undefined, undo: Undo): void => {
  const before = target.get(key)
  set(target, key, value)
  undo.push(() => set(target, key, before))
}

const set = <K, A>(target: Map<K, A>, key: K, value: A | undefined): void => {
  if (value === undefined) target.delete(key)
  else target.set(key, value)
}
