/**
 * How the cost of a row grows with the rows that are there: each operation in a database of 1,000,000 rows against the
 * same in one of 10,000 and of 100,000, with `synchronous=OFF`, as fsyncs would hide what grows.
 *
 * An operation is a value: what fills a database, and what is measured in it. What belongs to it, such as writing the
 * WAL back, is in the time; what it leaves is undone outside of it, so that the number of rows stays.
 */
import * as Effect from "effect/Effect"
import type { Scope } from "effect/Scope"
import type { Bench, Case, Run } from "./Harness.ts"
import { get, put } from "./growth/cache.ts"
import { append } from "./growth/journal.ts"
import { acks, claims, records } from "./growth/dirtyQueue.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/** One operation whose growth is measured. */
export interface Operation {
  readonly name: string
  readonly about: string
  /** Gives a database with about `rows` rows, and a run that measures microseconds a row in it. */
  readonly prepare: (rows: number) => Effect.Effect<Run, unknown, Scope>
}

// ---------------------------------------------------------------------------------------------------------------------
// cases
// ---------------------------------------------------------------------------------------------------------------------

const growth = (operation: Operation): Case => ({
  name: operation.name,
  about: `${operation.about}, with 1,000,000 rows there; the rivals are the same with fewer`,
  unit: "µs/row",
  better: "lower",
  contenders: Effect.gen(function* () {
    const least = yield* operation.prepare(10_000)
    const middle = yield* operation.prepare(100_000)
    const most = yield* operation.prepare(1_000_000)
    return { ours: most, rivals: { "rows-10k": least, "rows-100k": middle } }
  })
})

export const bench: Bench = {
  name: "growth",
  cases: [...records, ...claims, ...acks, append, get, put].map(growth)
}
