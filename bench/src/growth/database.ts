import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import { timed } from "../Harness.ts"

/** How many rows one run measures: enough batches to see more than one page split, few beside the rows that are there. */
export const measuredRows = 5000

/**
 * Microseconds a row of `work` on {@link measuredRows} rows. The WAL is empty before it and written back at its end, so
 * that each row pays for the pages it changed.
 */
export const microsecondsPerRow = <E, R>(work: Effect.Effect<unknown, E, R>) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const writeBack = sql.unsafe("PRAGMA wal_checkpoint(TRUNCATE)")
    yield* writeBack
    return ((yield* timed(Effect.andThen(work, writeBack))) * 1000) / measuredRows
  })

/** The numbers below `n` in an order that is the same each time and looks like none. */
export const shuffled = (n: number, seed: number): ReadonlyArray<number> => {
  const numbers = Array.from({ length: n }, (_, i) => i)
  const next = random(seed)
  for (let i = n - 1; i > 0; i--) {
    const j = Math.floor(next() * (i + 1))
    const number = numbers[i]!
    numbers[i] = numbers[j]!
    numbers[j] = number
  }
  return numbers
}

/** Mulberry32: a small generator with a seed. */
const random = (seed: number) => {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}
