import { DurableWriter, insideWrite, WriteTransaction } from "@strata/durable/DurableWriter"
import * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import type {
  ActivityOutcome,
  Claimed,
  RunStore,
  SettledPosition,
  SettledRun,
  StoredOwner,
  StoredRun,
  Wake,
  Waker
} from "../RunStore.ts"
import * as RunRows from "./runRows.ts"

type Store = RunStore["Service"]

export const make: Effect.Effect<Store, never, DurableWriter> = Effect.map(DurableWriter, (writer) => {
  const access = makeAccess(writer)
  return { ...running(access), ...owning(access), ...reading(access), ...changing(access) }
})

// ---------------------------------------------------------------------------------------------------------------------
// state
// ---------------------------------------------------------------------------------------------------------------------

type Undo = () => void

/** Rows are replaced, never changed, so that an undo has but to put the old one back. */
interface State {
  readonly runs: Map<string, StoredRun>
  readonly executionIds: Map<number, string>
  readonly outcomes: Map<number, Map<string, ActivityOutcome>>
  readonly waiters: Map<number, ReadonlySet<string>>
  readonly owners: Map<number, StoredOwner>
  /** Numbers are not given back by a rollback. */
  lastRun: number
  lastOwner: number
}

interface Access {
  readonly change: <A>(f: (state: State, undo: Array<Undo>) => A) => Effect.Effect<A, never, WriteTransaction>
  readonly look: <A>(f: (state: State) => A) => Effect.Effect<A, SqlError>
}

const makeAccess = (writer: DurableWriter["Service"]): Access => {
  const state: State = {
    runs: new Map(),
    executionIds: new Map(),
    outcomes: new Map(),
    waiters: new Map(),
    owners: new Map(),
    lastRun: 0,
    lastOwner: 0
  }
  return {
    change: (f) =>
      WriteTransaction.use((transaction) => {
        const undo: Array<Undo> = []
        return Effect.map(
          transaction.onRollback(() => {
            for (let i = undo.length - 1; i >= 0; i--) undo[i]!()
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

const put = <K, A>(target: Map<K, A>, key: K, value: A | undefined, undo: Array<Undo>): void => {
  const before = target.get(key)
  set(target, key, value)
  undo.push(() => set(target, key, before))
}

const set = <K, A>(target: Map<K, A>, key: K, value: A | undefined): void => {
  if (value === undefined) target.delete(key)
  else target.set(key, value)
}

const save = (state: State, run: StoredRun, undo: Array<Undo>): StoredRun => {
  put(state.runs, run.executionId, run, undo)
  return run
}

const byId = (state: State, id: number): StoredRun | undefined => {
  const executionId = state.executionIds.get(id)
  return executionId === undefined ? undefined : state.runs.get(executionId)
}

/** The run, if it is still as it was claimed. */
const claimed = (state: State, { fence, id }: Claimed): StoredRun | undefined => {
  const run = byId(state, id)
  return run !== undefined && run.fence === fence && run.status === "running" ? run : undefined
}

const insert = (state: State, run: StoredRun, undo: Array<Undo>): StoredRun => {
  put(state.executionIds, run.id, run.executionId, undo)
  put(state.outcomes, run.id, new Map(), undo)
  return save(state, run, undo)
}

const key = ({ attempt, name }: { readonly name: string; readonly attempt: number }): string => `${attempt}/${name}`

// ---------------------------------------------------------------------------------------------------------------------
// running
// ---------------------------------------------------------------------------------------------------------------------

const running = ({ change }: Access): Pick<Store, "start" | "await" | "record" | "suspend" | "complete" | "wake"> => ({
  start: (now, runs) =>
    change((state, undo) =>
      runs.flatMap((run) =>
        state.runs.has(run.executionId) ? [] : [insert(state, RunRows.started(now, ++state.lastRun, run), undo)]
      )
    ),

  await: (executionId, parent) =>
    change((state, undo) => {
      const run = state.runs.get(executionId)
      if (run === undefined) return false
      if (run.parent !== parent) {
        put(state.waiters, run.id, new Set([...(state.waiters.get(run.id) ?? []), parent]), undo)
      }
      return run.status !== "completed"
    }),

  record: (_now, outcomes) =>
    change((state, undo) =>
      outcomes.flatMap(({ attempt, digest, exit, fence, id, name }, place) => {
        const run = claimed(state, { id, fence })
        const rows = state.outcomes.get(id)
        if (run === undefined || rows === undefined || rows.has(key({ name, attempt }))) return []
        put(rows, key({ name, attempt }), { name, attempt, exit, digest }, undo)
        return [place]
      })
    ),

  suspend: (now, suspensions) =>
    change((state, undo) =>
      suspensions.flatMap((suspension) => {
        const run = claimed(state, suspension)
        if (run === undefined) return []
        const stays = suspension.held ? run.calls !== suspension.calls : run.wakes !== suspension.wakes
        const { cause, held } = suspension
        return [
          save(
            state,
            stays
              ? { ...run, updatedAt: now }
              : { ...run, status: "suspended", owner: null, held, cause: held ? cause : null, updatedAt: now },
            undo
          )
        ]
      })
    ),

  complete: (now, results) =>
    change((state, undo) => {
      const completed: Array<number> = []
      const waiting = new Set<string>()
      for (const { result, ...at } of results) {
        const run = claimed(state, at)
        if (run === undefined) continue
        save(state, { ...run, status: "completed", result, owner: null, updatedAt: now, settledAt: now }, undo)
        completed.push(run.id)
        if (run.parent !== null) waiting.add(run.parent)
        for (const parent of state.waiters.get(run.id) ?? []) waiting.add(parent)
      }
      return { completed, waiting: [...waiting] }
    }),

  wake: (now, wakes, waker) =>
    change((state, undo) =>
      RunRows.merged(wakes).flatMap((wake) => {
        const run = state.runs.get(wake.executionId)
        return run === undefined || run.status === "completed" ? [] : [save(state, woken(now, run, wake, waker), undo)]
      })
    )
})

const woken = (now: number, run: StoredRun, wake: Wake, waker: Waker | undefined): StoredRun => {
  const starts = run.status === "suspended" && (!run.held || wake.explicit)
  const claims =
    run.owner === null &&
    (starts || run.status === "running") &&
    waker !== undefined &&
    waker.workflows.includes(run.workflow)
  return {
    ...run,
    wakes: run.wakes + 1,
    calls: run.calls + (wake.explicit ? 1 : 0),
    interrupted: run.interrupted === "unsafe" ? "unsafe" : (wake.interrupt ?? run.interrupted),
    status: starts ? "running" : run.status,
    held: run.held && !starts,
    cause: starts ? null : run.cause,
    owner: claims ? waker.owner : run.owner,
    fence: run.fence + (claims ? 1 : 0),
    updatedAt: now
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// owning
// ---------------------------------------------------------------------------------------------------------------------

const owning = ({
  change,
  look
}: Access): Pick<
  Store,
  "claim" | "isWaiting" | "announce" | "release" | "owned" | "enroll" | "renew" | "owners" | "retire"
> => ({
  claim: (now, waker, limit) =>
    change((state, undo) =>
      sorted(state, (run) => isWaiting(run, waker.workflows))
        .slice(0, limit)
        .map((run) => save(state, { ...run, owner: waker.owner, fence: run.fence + 1, updatedAt: now }, undo))
    ),
  isWaiting: (workflows) => look((state) => sorted(state, (run) => isWaiting(run, workflows)).length > 0),
  announce: Effect.void,
  release: (now, runs) =>
    change((state, undo) => {
      for (const at of runs) {
        const run = claimed(state, at)
        if (run !== undefined) save(state, { ...run, owner: null, updatedAt: now }, undo)
      }
    }),
  owned: (owner) => look((state) => sorted(state, (run) => run.owner === owner)),

  enroll: (owner) =>
    change((state, undo) => {
      const id = ++state.lastOwner
      put(state.owners, id, { ...owner, id }, undo)
      return id
    }),
  renew: (id, leaseUntil) =>
    change((state, undo) => {
      const owner = state.owners.get(id)
      if (owner !== undefined) put(state.owners, id, { ...owner, leaseUntil }, undo)
      return owner !== undefined
    }),
  owners: look((state) => [...state.owners.values()]),
  retire: (now, owners) =>
    change((state, undo) => {
      const retired = owners.filter(({ id, leaseUntil }) => state.owners.get(id)?.leaseUntil === leaseUntil)
      for (const { id } of retired) put(state.owners, id, undefined, undo)
      for (const run of sorted(state, ({ owner }) => retired.some(({ id }) => id === owner))) {
        save(state, { ...run, owner: null, fence: run.fence + 1, updatedAt: now }, undo)
      }
    })
})

const isWaiting = (run: StoredRun, workflows: ReadonlyArray<string>): boolean =>
  run.status === "running" && run.owner === null && workflows.includes(run.workflow)

const sorted = (state: State, filter: (run: StoredRun) => boolean): ReadonlyArray<StoredRun> =>
  [...state.runs.values()].filter(filter).toSorted((a, b) => a.id - b.id)

// ---------------------------------------------------------------------------------------------------------------------
// reading
// ---------------------------------------------------------------------------------------------------------------------

const reading = ({
  look
}: Access): Pick<Store, "find" | "outcomes" | "present" | "completedOf" | "list" | "settled" | "settledBeyond"> => ({
  find: (executionIds) =>
    look((state) =>
      [...new Set(executionIds)].flatMap((id) => state.runs.get(id) ?? []).toSorted((a, b) => a.id - b.id)
    ),
  outcomes: (id) => look((state) => [...(state.outcomes.get(id)?.values() ?? [])]),
  present: (executionIds) => look((state) => executionIds.filter((id) => state.runs.has(id))),
  completedOf: (executionIds) =>
    look((state) => executionIds.filter((id) => state.runs.get(id)?.status === "completed")),
  list: ({ before, limit, status, workflow }) =>
    look((state) =>
      sorted(
        state,
        (run) =>
          run.id < before &&
          (status === undefined || run.status === status) &&
          (workflow === undefined || run.workflow === workflow)
      )
        .toReversed()
        .slice(0, limit)
    ),
  settled: ({ after, limit, upTo }) =>
    look((state) =>
      settled(state)
        .filter((run) => inOrder(after, run) < 0 && inOrder(run, upTo) <= 0)
        .slice(0, limit)
    ),
  settledBeyond: (count) => look((state) => settled(state).at(-1 - count))
})

/** In the order in which they settled. */
const settled = (state: State): ReadonlyArray<SettledRun> =>
  [...state.runs.values()]
    .flatMap((run) => (run.settledAt === null ? [] : [toSettled(state, run, run.settledAt)]))
    .toSorted(inOrder)

const toSettled = (state: State, run: StoredRun, settledAt: number): SettledRun => ({
  settledAt,
  id: run.id,
  executionId: run.executionId,
  needed: isNeeded(state, run)
})

const inOrder = (a: SettledPosition, b: SettledPosition): number => a.settledAt - b.settledAt || a.id - b.id

const isNeeded = (state: State, { id, parent }: StoredRun): boolean =>
  [...(parent === null ? [] : [parent]), ...(state.waiters.get(id) ?? [])].some((waiting) => {
    const run = state.runs.get(waiting)
    return run !== undefined && run.status !== "completed"
  })

// ---------------------------------------------------------------------------------------------------------------------
// changing
// ---------------------------------------------------------------------------------------------------------------------

const changing = ({ change }: Access): Pick<Store, "rewind" | "fork" | "remove" | "discard"> => ({
  rewind: (now, executionId, { interrupted, outcomes, result }) =>
    change((state, undo) => {
      const run = state.runs.get(executionId)
      if (run === undefined) return undefined
      const rows = state.outcomes.get(run.id)
      for (const outcome of outcomes) if (rows !== undefined) put(rows, key(outcome), undefined, undo)
      const remains = run.status === "completed" && !result
      return save(
        state,
        {
          ...run,
          status: remains ? "completed" : "suspended",
          held: !remains,
          cause: null,
          result: result ? null : run.result,
          settledAt: result ? null : run.settledAt,
          interrupted: interrupted ?? run.interrupted,
          owner: null,
          fence: run.fence + 1,
          updatedAt: now
        },
        undo
      )
    }),

  fork: (now, from, to, { interrupted, outcomes }) =>
    change((state, undo) => {
      const source = state.runs.get(from)
      if (source === undefined || state.runs.has(to)) return undefined
      const { payload, workflow } = source
      const started = RunRows.started(now, ++state.lastRun, {
        executionId: to,
        workflow,
        payload,
        parent: null,
        owner: null
      })
      // The fence tells that it has a past.
      const forked = insert(state, { ...started, status: "suspended", held: true, interrupted, fence: 1 }, undo)
      const rows = state.outcomes.get(source.id)
      for (const outcome of outcomes) {
        const row = rows?.get(key(outcome))
        if (row !== undefined) put(state.outcomes.get(forked.id)!, key(outcome), row, undo)
      }
      return forked
    }),

  remove: (executionIds) =>
    change((state, undo) => {
      const runs = executionIds
        .flatMap((id) => state.runs.get(id) ?? [])
        .filter((run) => run.status === "completed" && !isNeeded(state, run))
      for (const run of runs) drop(state, run, undo)
      return runs.length
    }),

  discard: (executionId) =>
    change((state, undo) => {
      const run = state.runs.get(executionId)
      if (run !== undefined) drop(state, run, undo)
    })
})

const drop = (state: State, { executionId, id }: StoredRun, undo: Array<Undo>): void => {
  put(state.runs, executionId, undefined, undo)
  put(state.executionIds, id, undefined, undo)
  put(state.outcomes, id, undefined, undo)
  put(state.waiters, id, undefined, undo)
}
