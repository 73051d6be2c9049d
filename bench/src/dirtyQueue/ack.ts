/**
 * Acks of batches through the queue, against the statements alone: the same guard over the same tables, by a program
 * that knows nothing but `node:sqlite`.
 */
import * as DirtyQueue from "@strata/dirty-queue/DirtyQueue"
import * as Effect from "effect/Effect"
import { DatabaseSync } from "node:sqlite"
import type { Case, Run } from "../Harness.ts"
import { timed } from "../Harness.ts"
import * as Queue from "./fixture.ts"

type Claims = ReadonlyArray<ReadonlyArray<DirtyQueue.Claim>>

const rows = 20_000

/** Rows acked per second: all are claimed, in batches, before the time is taken. */
const rowsPerSecond = (
  synchronous: Queue.Synchronous,
  ack: (queue: Queue.Queue, claims: Claims) => Effect.Effect<unknown, unknown>
): Run =>
  Effect.scoped(
    Effect.gen(function* () {
      const queue = yield* Queue.make(synchronous)
      const claims = yield* Effect.andThen(Queue.recordAll(Queue.paths(rows), Queue.batch), Queue.claimAll(rows)).pipe(
        Effect.provideContext(queue.context)
      )
      return (rows * 1000) / (yield* timed(ack(queue, claims)))
    })
  )

const ours = (synchronous: Queue.Synchronous): Run =>
  rowsPerSecond(synchronous, ({ context }, claims) =>
    DirtyQueue.DirtyQueue.use((queue) =>
      Effect.forEach(claims, (batch) =>
        Effect.filterOrElse(
          queue.ack(batch),
          (answers) => answers.every((answer) => answer === "Done"),
          () => Effect.die("an ack was not Done")
        )
      )
    ).pipe(Effect.provideContext(context))
  )

/** A transaction for each batch, in which `remove` deletes its rows and tells how many. */
const raw = (
  synchronous: Queue.Synchronous,
  prepare: (database: DatabaseSync) => (batch: ReadonlyArray<DirtyQueue.Claim>) => number
): Run =>
  rowsPerSecond(synchronous, ({ filename }, claims) =>
    Effect.acquireUseRelease(
      Effect.sync(() => new DatabaseSync(filename)),
      (database) =>
        Effect.sync(() => {
          database.exec(`PRAGMA synchronous = ${synchronous}; PRAGMA wal_autocheckpoint = 4000`)
          database.exec("PRAGMA cache_size = -16384")
          const remove = prepare(database)
          for (const batch of claims) {
            database.exec("BEGIN IMMEDIATE")
            if (remove(batch) !== batch.length) throw new Error("an ack was not Done")
            database.exec("COMMIT")
          }
        }),
      (database) => Effect.sync(() => database.close())
    )
  )

/** All rows of a batch by one statement, whose parameter is JSON: the fastest that we found. */
const rawBatch = (database: DatabaseSync) => {
  const statement = database.prepare(
    "DELETE FROM strata_dirty WHERE id IN (SELECT value FROM json_each(?1)) AND lease = ?2 AND version < lease"
  )
  return (batch: ReadonlyArray<DirtyQueue.Claim>) =>
    Number(statement.run(JSON.stringify(batch.map((claim) => claim.id)), batch[0]?.lease ?? 0).changes)
}

/** A statement for each row. */
const rawEach = (database: DatabaseSync) => {
  const statement = database.prepare("DELETE FROM strata_dirty WHERE id = ? AND version = ? AND lease = ?")
  return (batch: ReadonlyArray<DirtyQueue.Claim>) =>
    batch.reduce((done, claim) => done + Number(statement.run(claim.id, claim.version, claim.lease).changes), 0)
}

export const ack = (name: string, synchronous: Queue.Synchronous): Case => ({
  name,
  about: `${rows} claimed rows acked in batches of ${Queue.batch}, synchronous=${synchronous}; raw-batch and raw-each are the same guard and tables with node:sqlite`,
  unit: "rows/s",
  better: "higher",
  contenders: Effect.succeed({
    ours: ours(synchronous),
    rivals: { "raw-batch": raw(synchronous, rawBatch), "raw-each": raw(synchronous, rawEach) }
  })
})
