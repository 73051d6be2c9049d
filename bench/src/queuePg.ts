/**
 * The dirty queue on Postgres, with its changelog: whole against two job queues on Postgres. All work on one server, whose
 * commits wait for the disk, each run in a schema of its own.
 */
import * as Postgres from "@strata/durable/testing/postgres"
import * as Effect from "effect/Effect"
import { type Bench, type Case, Unavailable } from "./Harness.ts"
import { microsecondsPerPath, pathsPerSecond, type Phase } from "./queuePg/ours.ts"
import * as GraphileWorker from "./rivals/graphileWorker.ts"
import * as PgBoss from "./rivals/pgBoss.ts"

const batch = 500

/** A server, and what is done on it. */
const given = Effect.map(
  Effect.mapError(Postgres.make({ durable: true }), (cause) => new Unavailable({ what: "Postgres", cause })),
  ({ url }) => ({ url, jobs: 20_000, batch })
)

const endToEnd = (name: string, workers: number): Case => ({
  name,
  about: `20,000 paths recorded in batches of ${batch} and then claimed and acked in such batches, by ${workers} at a time; fsync and synchronous_commit on`,
  unit: "paths/s",
  better: "higher",
  contenders: Effect.gen(function* () {
    const options = { ...(yield* given), workers }
    return {
      ours: pathsPerSecond(options),
      rivals: {
        "graphile-worker": GraphileWorker.jobsPerSecond(options),
        "pg-boss": PgBoss.jobsPerSecond(options)
      }
    }
  })
})

const phase = (name: Phase): Case => ({
  name,
  about: `the part of it that is the ${name}, with four workers at a time; the rival is one`,
  unit: "µs/path",
  better: "lower",
  contenders: Effect.map(given, (options) => ({
    ours: microsecondsPerPath(name, { ...options, workers: 4 }),
    rivals: { "one-worker": microsecondsPerPath(name, { ...options, workers: 1 }) }
  }))
})

export const queuePg: Bench = {
  name: "queue-pg",
  cases: [endToEnd("end-to-end", 4), endToEnd("end-to-end-w1", 1), phase("record"), phase("claim"), phase("ack")]
}
