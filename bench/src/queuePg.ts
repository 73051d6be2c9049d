/**
 * The dirty queue on Postgres, with its changelog: whole against two job queues on Postgres. All work on one server, whose
 * commits wait for the disk, each run in a schema of its own.
 */
import * as Postgres from "@strata/durable/testing/postgres"
import * as Effect from "effect/Effect"
import { type Bench, type Case, Unavailable } from "./Harness.ts"
import { pathsPerSecond } from "./queuePg/ours.ts"
import * as GraphileWorker from "./rivals/graphileWorker.ts"
import * as PgBoss from "./rivals/pgBoss.ts"

const batch = 500

const endToEnd = (name: string, workers: number): Case => ({
  name,
  about: `20,000 paths recorded in batches of ${batch} and then claimed and acked in such batches, by ${workers} at a time; fsync and synchronous_commit on`,
  unit: "paths/s",
  better: "higher",
  contenders: Effect.gen(function* () {
    const server = yield* Effect.mapError(
      Postgres.make({ durable: true }),
      (cause) => new Unavailable({ what: "Postgres", cause })
    )
    const options = { url: server.url, jobs: 20_000, batch, workers }
    return {
      ours: pathsPerSecond(options),
      rivals: {
        "graphile-worker": GraphileWorker.jobsPerSecond(options),
        "pg-boss": PgBoss.jobsPerSecond(options)
      }
    }
  })
})

export const queuePg: Bench = { name: "queue-pg", cases: [endToEnd("end-to-end", 4), endToEnd("end-to-end-w1", 1)] }
