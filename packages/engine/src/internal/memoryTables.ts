import type { DurableWriter } from "@strata/durable/DurableWriter"
import { insideWrite, WriteTransaction } from "@strata/durable/DurableWriter"
import * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"

/**
 * Rows in memory, by the run and by their name in it. Rows are replaced, never changed, so that an undo has but to put
 * the old one back.
 */
export interface Table<Row> {
  readonly runs: Map<string, Map<string, Row>>
}

/** Undoes one change; those of a write run in reverse order when it rolls back. */
export type Undo = () => void

export interface Access<Row> {
  readonly change: <A>(f: (table: Table<Row>, undo: Array<Undo>) => A) => Effect.Effect<A, never, WriteTransaction>
  readonly look: <A>(f: (table: Table<Row>) => A) => Effect.Effect<A, SqlError>
}

export const make = <Row>(writer: DurableWriter["Service"]): Access<Row> => {
  const table: Table<Row> = { runs: new Map() }
  return {
    change: (f) =>
      WriteTransaction.use((transaction) => {
        const undo: Array<Undo> = []
        return Effect.map(
          transaction.onRollback(() => {
            for (let i = undo.length - 1; i >= 0; i--) undo[i]!()
          }),
          () => f(table, undo)
        )
      }),
    look: (f) =>
      Effect.flatMap(insideWrite, (isInside) => {
        const look = Effect.sync(() => f(table))
        // Waits for the write of another fiber, as on a database with one connection.
        return isInside ? look : writer.write(look)
      })
  }
}

export const get = <Row>({ runs }: Table<Row>, executionId: string, name: string): Row | undefined =>
  runs.get(executionId)?.get(name)

export const ofRun = <Row>({ runs }: Table<Row>, executionId: string): ReadonlyArray<Row> => [
  ...(runs.get(executionId)?.values() ?? [])
]

export function* all<Row>({ runs }: Table<Row>): Iterable<Row> {
  for (const rows of runs.values()) yield* rows.values()
}

/** Sets or, with `undefined`, removes a row. */
export const put = <Row>(
  table: Table<Row>,
  executionId: string,
  name: string,
  row: Row | undefined,
  undo: Array<Undo>
): void => {
  const before = get(table, executionId, name)
  set(table, executionId, name, row)
  undo.push(() => set(table, executionId, name, before))
}

const set = <Row>({ runs }: Table<Row>, executionId: string, name: string, row: Row | undefined): void => {
  const rows = runs.get(executionId)
  if (row !== undefined) {
    if (rows === undefined) runs.set(executionId, new Map([[name, row]]))
    else rows.set(name, row)
  } else if (rows?.delete(name) === true && rows.size === 0) {
    runs.delete(executionId)
  }
}

/** Removes all of a run, and gives how many there were. */
export const removeOf = <Row>({ runs }: Table<Row>, executionId: string, undo: Array<Undo>): number => {
  const rows = runs.get(executionId)
  if (rows === undefined) return 0
  runs.delete(executionId)
  undo.push(() => void runs.set(executionId, rows))
  return rows.size
}
