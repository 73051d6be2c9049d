import * as Rows from "@strata/durable/Rows"
import type {
  ActivityOutcome,
  Interruption,
  OwnedRun,
  SettledPosition,
  SettledRun,
  Status,
  StoredOwner,
  StoredRun,
  Wake
} from "../RunStore.ts"

/** Read by position, see the columns of the statements. */
export const toRun = (row: Rows.Values): StoredRun => ({
  id: Rows.integer(row[0]),
  executionId: Rows.text(row[1]),
  workflow: Rows.text(row[2]),
  parent: Rows.textOrNull(row[3]),
  payload: Rows.text(row[4]),
  status: Rows.text(row[5]) as Status,
  held: Rows.integer(row[6]) === 1,
  cause: Rows.textOrNull(row[7]),
  result: Rows.textOrNull(row[8]),
  interrupted: Rows.text(row[9]) as Interruption,
  owner: Rows.integerOrNull(row[10]),
  fence: Rows.integer(row[11]),
  wakes: Rows.integer(row[12]),
  calls: Rows.integer(row[13]),
  startedAt: Rows.integer(row[14]),
  updatedAt: Rows.integer(row[15]),
  settledAt: Rows.integerOrNull(row[16])
})

/** In the order of ids: a statement that changes rows gives them in any. */
export const toRuns = (rows: ReadonlyArray<Rows.Values>): ReadonlyArray<StoredRun> =>
  rows.map(toRun).toSorted((a, b) => a.id - b.id)

export const toOwned = (row: Rows.Values): OwnedRun => ({
  id: Rows.integer(row[0]),
  fence: Rows.integer(row[1]),
  wakes: Rows.integer(row[2]),
  calls: Rows.integer(row[3]),
  interrupted: Rows.text(row[4]) as Interruption
})

export const toOwner = (row: Rows.Values): StoredOwner => ({
  id: Rows.integer(row[0]),
  host: Rows.text(row[1]),
  pid: Rows.integer(row[2]),
  process: Rows.text(row[3]),
  leaseUntil: Rows.integer(row[4])
})

export const toOutcome = (row: Rows.Values): ActivityOutcome => ({
  name: Rows.text(row[0]),
  attempt: Rows.integer(row[1]),
  exit: Rows.text(row[2]),
  digest: Rows.text(row[3])
})

export const toPosition = (row: Rows.Values): SettledPosition => ({
  settledAt: Rows.integer(row[0]),
  id: Rows.integer(row[1])
})

export const toSettled = (row: Rows.Values): SettledRun => ({
  ...toPosition(row),
  executionId: Rows.text(row[2]),
  needed: Rows.integer(row[3]) === 1
})

/** A run that was inserted just now. */
export const started = (
  now: number,
  id: number,
  run: {
    readonly executionId: string
    readonly workflow: string
    readonly parent: string | null
    readonly payload: string
    readonly owner: number | null
  }
): StoredRun => ({
  id,
  executionId: run.executionId,
  workflow: run.workflow,
  parent: run.parent,
  payload: run.payload,
  status: "running",
  held: false,
  cause: null,
  result: null,
  interrupted: "none",
  owner: run.owner,
  fence: run.owner === null ? 0 : 1,
  wakes: 0,
  calls: 0,
  startedAt: now,
  updatedAt: now,
  settledAt: null
})

/** One wake for each run, as strong as the strongest. */
export const merged = (wakes: ReadonlyArray<Wake>): ReadonlyArray<Wake> => {
  if (wakes.length < 2) return wakes
  const byRun = new Map<string, Wake>()
  for (const wake of wakes) {
    const before = byRun.get(wake.executionId)
    byRun.set(wake.executionId, {
      executionId: wake.executionId,
      explicit: wake.explicit || before?.explicit === true,
      interrupt: stronger(wake.interrupt, before?.interrupt)
    })
  }
  return [...byRun.values()]
}

const stronger = (a: Wake["interrupt"], b: Wake["interrupt"]): Wake["interrupt"] =>
  a === "unsafe" || b === "unsafe" ? "unsafe" : (a ?? b)
