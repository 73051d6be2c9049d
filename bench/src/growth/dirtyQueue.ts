/**
 * The dirty queue, with paths that arrive in their order, as from a walk of a tree, and in no order, as from users. The
 * queue sorts each batch either way; in no order its paths are far apart.
 */
import * as DirtyQueue from "@strata/dirty-queue/DirtyQueue"
import { Path } from "@strata/dirty-queue/Path"
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import * as Queue from "../dirtyQueue/fixture.ts"
import type { Operation } from "../growth.ts"
import { measuredRows, microsecondsPerRow, shuffled } from "./database.ts"

type Arrival = "ordered" | "random"

interface Filled extends Queue.Queue {
  /** Paths that are not there yet, in the order of their arrival: as many as a run measures. */
  readonly fresh: ReadonlyArray<Path>
}

/** Numbers of one length, so that the order of paths is that of numbers. */
const toPath = (i: number): Path => Path.make(`docs/section-${String(i).padStart(9, "0")}/page.md`)

/** A queue in which `rows` paths are dirty, evenly spread; the fresh ones lie among them, or behind them all. */
const fill = (rows: number, arrival: Arrival) =>
  Effect.gen(function* () {
    const queue = yield* Queue.make("OFF")
    const order = arrival === "random" ? shuffled(rows, 1) : Array.from({ length: rows }, (_, i) => i)
    const there = order.map((i) => toPath(i * 1000))
    yield* Queue.recordAll(there, Queue.batch).pipe(Effect.provideContext(queue.context))
    const fresh =
      arrival === "random"
        ? shuffled(measuredRows, 2).map((i) => toPath(Math.floor((i * rows) / measuredRows) * 1000 + 500))
        : Array.from({ length: measuredRows }, (_, i) => toPath(rows * 1000 + i))
    return { ...queue, fresh }
  })

const operation = (
  name: string,
  arrival: Arrival,
  about: string,
  measure: (filled: Filled) => Effect.Effect<number, unknown, Queue.Services>
): Operation => ({
  name: `${name}-${arrival}`,
  about: `${about}, batches of ${Queue.batch}, paths that ${arrival === "ordered" ? "arrive in order" : "arrive in no order"}`,
  prepare: (rows) => Effect.map(fill(rows, arrival), (filled) => Effect.provideContext(measure(filled), filled.context))
})

const both = (
  name: string,
  about: string,
  measure: (filled: Filled) => Effect.Effect<number, unknown, Queue.Services>
): ReadonlyArray<Operation> => [operation(name, "ordered", about, measure), operation(name, "random", about, measure)]

/** Takes the rows out again that a run has put in. */
const forget = (paths: ReadonlyArray<Path>) =>
  SqlClient.SqlClient.use((sql) =>
    Effect.andThen(
      sql.unsafe("DELETE FROM strata_dirty WHERE path IN (SELECT value FROM json_each(?))", [JSON.stringify(paths)]),
      sql.unsafe("DELETE FROM strata_changelog WHERE path IN (SELECT value FROM json_each(?))", [JSON.stringify(paths)])
    )
  )

export const records = both("record", "changes recorded", ({ fresh }) =>
  Effect.gen(function* () {
    const cost = yield* microsecondsPerRow(Queue.recordAll(fresh, Queue.batch))
    yield* forget(fresh)
    return cost
  })
)

export const claims = both("claim", "rows claimed", () =>
  Effect.gen(function* () {
    const queue = yield* DirtyQueue.DirtyQueue
    let claimed: ReadonlyArray<ReadonlyArray<DirtyQueue.Claim>> = []
    const cost = yield* microsecondsPerRow(
      Effect.map(Queue.claimAll(measuredRows), (claims) => {
        claimed = claims
      })
    )
    yield* queue.release(claimed.flat())
    return cost
  })
)

/** Rows that were acked come in again, as the last ones, in the order of their arrival. */
export const acks = both("ack", "claimed rows acked", () =>
  Effect.gen(function* () {
    const queue = yield* DirtyQueue.DirtyQueue
    const claims = yield* Queue.claimAll(measuredRows)
    const cost = yield* microsecondsPerRow(Effect.forEach(claims, queue.ack, { discard: true }))
    yield* Effect.forEach(claims, (batch) => Queue.record(batch.map((claim) => claim.path)), { discard: true })
    return cost
  })
)
