/**
 * plainjob, a job queue on `better-sqlite3`: jobs are added many at a time, and
 * its own worker loop takes and finishes them one by one. Its logger is
 * silenced, which by default writes several lines a job.
 */
import * as Effect from "effect/Effect"
import { join } from "node:path"
import { load, type Run, temporaryFolder, timed } from "../Harness.ts"

const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

/** Jobs per second: `jobs` paths added in batches of `batch`, and then processed to the last. */
export const jobsPerSecond = (options: {
  readonly jobs: number
  readonly batch: number
  readonly synchronous: "FULL" | "NORMAL"
}): Run =>
  Effect.gen(function* () {
    const { better, defineQueue, defineWorker } = yield* load("plainjob", () => import("plainjob"))
    const { default: Database } = yield* load("better-sqlite3", () => import("better-sqlite3"))
    const filename = join(yield* temporaryFolder, "plainjob.db")
    const database = yield* openOrUnavailable(() => new Database(filename))
    const connection = better(database)
    const queue = yield* Effect.acquireRelease(
      Effect.sync(() => defineQueue({ connection, logger: silent })),
      (queue) => Effect.sync(() => queue.close())
    )
    // Its own setting is NORMAL.
    connection.pragma(`synchronous = ${options.synchronous}`)

    const addAll = Effect.sync(() => {
      for (let start = 0; start < options.jobs; start += options.batch) {
        const size = Math.min(options.batch, options.jobs - start)
        queue.addMany(
          "index",
          Array.from({ length: size }, (_, i) => ({ path: path(start + i) }))
        )
      }
    })
    const processAll = Effect.callback<void>((resume) => {
      let done = 0
      const worker = defineWorker("index", () => {}, {
        queue,
        logger: silent,
        pollIntervall: 1,
        onCompleted: () => {
          if (++done === options.jobs) worker.stop().then(() => resume(Effect.void))
        }
      })
      void worker.start()
    })
    const ms = yield* timed(Effect.andThen(addAll, processAll))
    return (options.jobs * 1000) / ms
  })

const path = (i: number): string => `docs/${i % 100}/page-${i}.md`

/** Its native library loads when the first database is opened. */
const openOrUnavailable = <A>(open: () => A) => load("better-sqlite3", () => Promise.resolve().then(open))
