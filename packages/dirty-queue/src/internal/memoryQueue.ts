import type { DurableWriter } from "@strata/durable/DurableWriter"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type {
  Answer,
  DirtyQueueStorage,
  Receipt,
  StorageListOptions,
  StoredClaim,
  StoredCounts,
  StoredRow
} from "../DirtyQueueStorage.ts"
import type { MemoryStore } from "../MemoryStore.ts"
import * as Prefix from "../Prefix.ts"
import * as Transition from "../Transition.ts"
import * as Memory from "./memory.ts"
import type { MemoryRegistration, MemoryState, Undo } from "./memoryState.ts"
import * as Text from "@strata/durable/Text"

export const make: Effect.Effect<DirtyQueueStorage, never, MemoryStore | DurableWriter> = Effect.map(
  Memory.access,
  (access) => ({
    databaseTime: Clock.currentTimeMillis,
    ...registry(access),
    ...intake(access),
    claim: (now, options) => access.change((state, undo) => claim(state, undo, now, options)),
    ...answers(access),
    ...reads(access),
    ...versions(access)
  })
)

type ClaimOptions = Parameters<DirtyQueueStorage["claim"]>[1]

// ---------------------------------------------------------------------------------------------------------------------
// registrations
// ---------------------------------------------------------------------------------------------------------------------

const registry = ({
  change,
  read
}: Memory.Access): Pick<
  DirtyQueueStorage,
  "register" | "unregister" | "registrations" | "markServed" | "readyScopes"
> => ({
  register: (_now, options) =>
    change((state, undo) => {
      const [registered] = state.registrations(options)
      return {
        registration: registered ?? state.addRegistration(options, undo),
        created: registered === undefined
      }
    }),

  unregister: (_now, options) =>
    change((state, undo) => {
      const [registered] = state.registrations(options)
      if (registered === undefined) return 0
      const rows = Array.from(state.rows(registered.id)).length
      state.removeRegistration(registered, undo)
      return rows
    }),

  registrations: (filter) => read((state) => state.registrations(filter)),

  markServed: (now, { follower, scope }) =>
    change((state, undo) => {
      const all = state.registrations({ follower, scope: undefined })
      const registered = all.find((registration) => registration.scope === scope)
      if (registered === undefined) return false
      const latest = all.reduce((latest, { servedAt }) => Math.max(latest, servedAt), 0)
      state.setRegistration({ ...registered, servedAt: Math.max(now, latest + 1) }, undo)
      return true
    }),

  readyScopes: (now, { follower, limit }) =>
    read((state) =>
      state
        .registrations({ follower, scope: undefined })
        .filter(({ id }) => isReady(state, id, 0, now) || isReady(state, id, 1, now))
        .toSorted((a, b) => a.servedAt - b.servedAt || a.id - b.id)
        .slice(0, limit)
        .map(({ scope }) => scope)
    )
})

// ---------------------------------------------------------------------------------------------------------------------
// backfill and revival
// ---------------------------------------------------------------------------------------------------------------------

const intake = ({ change }: Memory.Access): Pick<DirtyQueueStorage, "enqueue" | "revive"> => ({
  enqueue: (now, { paths, registration }) =>
    change((state, undo) => {
      const version = state.draw(undo)
      for (const path of paths) {
        const row = state.rowAt(registration, path)
        state.setRow(
          row === undefined
            ? Transition.insert({ id: state.newRowId(), registration, path, version, lane: 1 }, now)
            : Transition.refresh(row, version, now),
          undo
        )
      }
    }),

  revive: (now, options) =>
    change((state, undo) => {
      const version = state.draw(undo)
      const dead = state
        .registrations(options)
        .flatMap(({ id }) => Array.from(state.rows(id)))
        .filter(
          (row) =>
            row.readyAt === null &&
            Prefix.covers(options.prefix, row.path) &&
            (options.path === undefined || row.path === options.path)
        )
      for (const row of dead) {
        state.setRow(Transition.revive(row, version, now), undo)
      }
      return dead.length
    })
})

// ---------------------------------------------------------------------------------------------------------------------
// claims and answers
// ---------------------------------------------------------------------------------------------------------------------

const claim = (state: MemoryState, undo: Array<Undo>, now: number, options: ClaimOptions) => {
  const [registration] = state.registrations(options)
  if (registration === undefined) return undefined
  const live = isReady(state, registration.id, 0, now)
  const backfill = isReady(state, registration.id, 1, now)
  const claims: Array<StoredClaim> = []
  let dead = 0
  if (options.limit <= 0 || !(live || backfill)) return { claims, dead }

  const token = state.draw(undo)
  const take = (lane: 0 | 1, limit: number): number => {
    let taken = 0
    while (taken < limit) {
      const row = state.takeReady(registration.id, lane, now)
      if (row === undefined) break
      const next = Transition.claim(row, { ...options, now, token })
      state.setRow(next, undo)
      if (next.lease === null) {
        dead++
      } else {
        claims.push({ ...next, lease: next.lease })
        taken++
      }
    }
    return taken
  }

  const share = backfill ? registration.backfillCredit + options.limit * options.backfillPermille : 0
  const reserved = take(1, Math.floor(share / 1000))
  const fresh = take(0, options.limit - reserved)
  take(1, options.limit - reserved - fresh)
  const backfillCredit = reserved === Math.floor(share / 1000) ? share % 1000 : 0
  state.setRegistration({ ...registration, backfillCredit }, undo)
  return { claims: claims.toSorted((a, b) => a.queuedAt - b.queuedAt || a.id - b.id), dead }
}

const answers = ({ change }: Memory.Access): Pick<DirtyQueueStorage, "ack" | "fail" | "release" | "renew"> => {
  /** Answers receipts in turn; what a later one finds was decided before any of them was answered. */
  const settle = <A extends Receipt>(
    receipts: ReadonlyArray<A>,
    done: (state: MemoryState, undo: Array<Undo>, row: ClaimedRow, receipt: A) => void
  ) =>
    change((state, undo) => {
      const met = receipts.map((receipt) => {
        const row = state.row(receipt.id)
        return isClaimedBy(row, receipt) ? row : undefined
      })
      const settled = new Set<number>()
      return receipts.map((receipt, i): Answer => {
        const row = met[i]
        if (row === undefined) return "Lost"
        if (!settled.has(row.id)) done(state, undo, row, receipt)
        settled.add(row.id)
        return row.version === receipt.version ? "Done" : "Superseded"
      })
    })

  return {
    ack: (receipts) =>
      settle(receipts, (state, undo, row) =>
        Transition.isSuperseded(row) ? state.setRow(Transition.ackSuperseded(row), undo) : state.removeRow(row, undo)
      ),

    fail: Effect.fnUntraced(function* (now, failures, options) {
      let dead = 0
      const answers = yield* settle(failures, (state, undo, row, failure) => {
        const next = Transition.fail(row, { ...failure, ...options, now })
        if (next.readyAt === null) dead++
        state.setRow(next, undo)
      })
      return { answers, dead }
    }),

    release: (now, receipts, delay) =>
      settle(receipts, (state, undo, row) => state.setRow(Transition.release(row, now, delay), undo)),

    renew: (now, receipts, leaseFor) =>
      settle(receipts, (state, undo, row) => state.setRow(Transition.renew(row, now, leaseFor), undo))
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// reads
// ---------------------------------------------------------------------------------------------------------------------

const reads = ({ read }: Memory.Access): Pick<DirtyQueueStorage, "list" | "stats" | "nextReadyAt"> => ({
  list: (options) =>
    read((state) =>
      state
        .registrations(options)
        .flatMap((registration) => listed(state, registration, options))
        .slice(0, options.limit)
    ),

  stats: (now, filter) =>
    read((state) => state.registrations(filter).map(({ follower, id }) => count(follower, state.rows(id), now))),

  nextReadyAt: (filter) =>
    read((state) => {
      const times = state
        .registrations(filter)
        .flatMap(({ id }) => [state.earliest(id, 0), state.earliest(id, 1)])
        .filter((time) => time !== null)
      return times.length === 0 ? null : times.reduce((a, b) => Math.min(a, b))
    })
})

const versions = ({ change, read }: Memory.Access): Pick<DirtyQueueStorage, "currentVersion" | "newEpoch"> => ({
  currentVersion: read((state) => state.version()),

  newEpoch: (now, jump) =>
    change((state, undo) => {
      state.draw(undo, jump)
      for (const { id } of state.registrations({ follower: undefined, scope: undefined })) {
        for (const row of Array.from(state.rows(id))) {
          if (row.lease !== null) state.setRow(Transition.release(row, now, 0), undo)
        }
      }
    })
})

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

type ClaimedRow = Transition.RowState & { readonly lease: number }

const isClaimedBy = (row: Transition.RowState | undefined, receipt: Receipt): row is ClaimedRow =>
  row !== undefined && row.lease === receipt.lease

const isReady = (state: MemoryState, registration: number, lane: 0 | 1, now: number): boolean => {
  const earliest = state.earliest(registration, lane)
  return earliest !== null && earliest <= now
}

const listed = (
  state: MemoryState,
  { follower, id, scope }: MemoryRegistration,
  { after, kind, prefix, sinceAtMost }: StorageListOptions
): ReadonlyArray<StoredRow> => {
  if (after !== undefined && id < after.registration) return []
  const rows = Array.from(state.rows(id)).filter(
    (row) =>
      row.since <= sinceAtMost &&
      Prefix.covers(prefix, row.path) &&
      (kind === "all" || (row.lastError !== null && (row.readyAt === null) === (kind === "dead"))) &&
      (after === undefined || id > after.registration || Text.compareBytes(row.path, after.path) > 0)
  )
  return Text.sortedBy(rows, (row) => row.path).map((row) => ({ ...row, follower, scope }))
}

const count = (follower: string, rows: Iterable<Transition.RowState>, now: number): StoredCounts => {
  const all = Array.from(rows)
  const alive = all.filter((row) => row.readyAt !== null)
  const waiting = alive.filter((row) => row.readyAt !== null && row.readyAt > now)
  return {
    follower,
    rows: all.length,
    ready: alive.length - waiting.length,
    delayed: waiting.filter((row) => row.lease === null).length,
    claimed: waiting.filter((row) => row.lease !== null).length,
    dead: all.length - alive.length,
    failing: alive.filter((row) => row.lastError !== null).length,
    backfill: alive.filter((row) => row.lane === 1).length,
    oldestDirtyAt: alive.reduce<number | null>((oldest, row) => Math.min(oldest ?? Infinity, row.dirtyAt), null)
  }
}
