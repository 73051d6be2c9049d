import { DurableWriter } from "@strata/durable/DurableWriter"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { ClockStorage, StoredClock } from "../ClockStorage.ts"
import type { ClockOutcome } from "../StateEvents.ts"
import * as Tables from "./memoryTables.ts"

type Storage = ClockStorage["Service"]

export const make: Effect.Effect<Storage, never, DurableWriter> = Effect.map(DurableWriter, (writer) => {
  const access = Tables.make<StoredClock>(writer)
  return { ...reading(access), ...changing(access), ...repairing(access) }
})

const reading = ({ look }: Tables.Access<StoredClock>): Pick<Storage, "now" | "next" | "find" | "ofRun"> => ({
  now: Clock.currentTimeMillis,
  next: Effect.gen(function* () {
    const deadline = yield* look((table) => {
      let least: number | null = null
      for (const row of Tables.all(table)) {
        if (row.completedAt === null && (least === null || row.deadline < least)) least = row.deadline
      }
      return least
    })
    return { deadline, now: yield* Clock.currentTimeMillis }
  }),
  find: (keys) => look((table) => keys.flatMap(({ executionId, name }) => Tables.get(table, executionId, name) ?? [])),
  ofRun: (executionId) => look((table) => byDeadline(Tables.ofRun(table, executionId)))
})

const changing = ({
  change
}: Tables.Access<StoredClock>): Pick<Storage, "insert" | "fire" | "complete" | "completeOf"> => ({
  insert: (rows) =>
    change((table, undo) =>
      rows.flatMap((row) => {
        const { executionId, name } = row
        if (Tables.get(table, executionId, name) !== undefined) return []
        Tables.put(table, executionId, name, row, undo)
        return [{ executionId, name }]
      })
    ),
  fire: (now, limit) =>
    change((table, undo) => {
      const due = [...Tables.all(table)].filter((row) => row.completedAt === null && row.deadline <= now)
      return complete(table, now, "fired", byDeadline(due).slice(0, limit), undo)
    }),
  complete: (now, outcome, keys) =>
    change((table, undo) => {
      const found = keys.flatMap(({ executionId, name }) => Tables.get(table, executionId, name) ?? [])
      return complete(table, now, outcome, byDeadline([...new Set(found)]), undo)
    }),
  completeOf: (now, outcome, executionIds) =>
    change((table, undo) => {
      const found = [...new Set(executionIds)].flatMap((executionId) => Tables.ofRun(table, executionId))
      return complete(table, now, outcome, byDeadline(found), undo)
    })
})

const complete = (
  table: Tables.Table<StoredClock>,
  now: number,
  outcome: ClockOutcome,
  rows: ReadonlyArray<StoredClock>,
  undo: Array<Tables.Undo>
): ReadonlyArray<StoredClock> =>
  rows.flatMap((row) => {
    if (row.completedAt !== null) return []
    const completed: StoredClock = { ...row, completedAt: now, outcome }
    Tables.put(table, row.executionId, row.name, completed, undo)
    return [completed]
  })

const repairing = ({
  change
}: Tables.Access<StoredClock>): Pick<Storage, "put" | "remove" | "removeOf" | "removeAll"> => ({
  put: (rows) =>
    change((table, undo) => {
      for (const row of rows) Tables.put(table, row.executionId, row.name, row, undo)
    }),
  remove: (keys) =>
    change((table, undo) => {
      for (const { executionId, name } of keys) Tables.put(table, executionId, name, undefined, undo)
    }),
  removeOf: (executionIds) =>
    change((table, undo) =>
      executionIds.reduce((count, executionId) => count + Tables.removeOf(table, executionId, undo), 0)
    ),
  removeAll: change((table, undo) => {
    for (const executionId of table.runs.keys()) Tables.removeOf(table, executionId, undo)
  })
})

const byDeadline = (rows: ReadonlyArray<StoredClock>): ReadonlyArray<StoredClock> =>
  rows.toSorted((a, b) => a.deadline - b.deadline)
