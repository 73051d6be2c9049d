import { DurableWriter } from "@strata/durable/DurableWriter"
import * as Effect from "effect/Effect"
import type { DeferredStorage, StoredDeferred } from "../DeferredStorage.ts"
import * as Tables from "./memoryTables.ts"

type Storage = DeferredStorage["Service"]

export const make: Effect.Effect<Storage, never, DurableWriter> = Effect.map(DurableWriter, (writer) => {
  const access = Tables.make<StoredDeferred>(writer)
  return { ...changing(access), ...reading(access), ...repairing(access) }
})

const changing = ({ change }: Tables.Access<StoredDeferred>): Pick<Storage, "insert" | "consume"> => ({
  insert: (rows) =>
    change((table, undo) =>
      rows.flatMap((row) => {
        const { executionId, name } = row
        if (Tables.get(table, executionId, name) !== undefined) return []
        Tables.put(table, executionId, name, row, undo)
        return [{ executionId, name }]
      })
    ),
  consume: (now, keys) =>
    change((table, undo) =>
      keys.flatMap(({ executionId, name }) => {
        const row = Tables.get(table, executionId, name)
        if (row === undefined || row.consumedAt !== null) return []
        Tables.put(table, executionId, name, { ...row, consumedAt: now, completedAt: row.completedAt ?? now }, undo)
        return [{ executionId, name }]
      })
    )
})

const reading = ({ look }: Tables.Access<StoredDeferred>): Pick<Storage, "find" | "ofRun" | "count"> => ({
  find: (keys) => look((table) => keys.flatMap(({ executionId, name }) => Tables.get(table, executionId, name) ?? [])),
  ofRun: (executionId) => look((table) => Tables.ofRun(table, executionId)),
  count: look(({ runs }) => {
    let count = 0
    for (const rows of runs.values()) count += rows.size
    return count
  })
})

const repairing = ({ change }: Tables.Access<StoredDeferred>): Pick<Storage, "stamp" | "remove" | "removeOf"> => ({
  stamp: (rows) =>
    change((table, undo) => {
      for (const { completedAt, consumedAt, executionId, name } of rows) {
        const row = Tables.get(table, executionId, name)
        if (row !== undefined) Tables.put(table, executionId, name, { ...row, completedAt, consumedAt }, undo)
      }
    }),
  remove: (keys) =>
    change((table, undo) => {
      for (const { executionId, name } of keys) Tables.put(table, executionId, name, undefined, undo)
    }),
  removeOf: (executionIds) =>
    change((table, undo) =>
      executionIds.reduce((count, executionId) => count + Tables.removeOf(table, executionId, undo), 0)
    )
})
