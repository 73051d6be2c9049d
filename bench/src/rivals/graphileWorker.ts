/**
 * graphile-worker, a job queue on Postgres, with the settings of its own performance test: a local queue of 500 jobs, jobs
 * completed in batches as soon as possible, 24 jobs at a time in each worker. Jobs are added many at a time, with
 * `addJobs`. A worker is a pool of its own with connections of its own.
 */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { load, type Run, timed } from "../Harness.ts"
import { pathOf, type QueueOptions, schemaName, shares } from "../queuePg/server.ts"

/** Jobs per second: added, and then processed to the last. */
export const jobsPerSecond = (options: QueueOptions): Run =>
  Effect.gen(function* () {
    const { batch, jobs, url, workers } = options
    const { Logger, makeWorkerUtils, run, WorkerPreset } = yield* load(
      "graphile-worker",
      () => import("graphile-worker")
    )
    const schema = yield* schemaName(url)
    const preset = {
      extends: [WorkerPreset],
      worker: {
        connectionString: Redacted.value(url),
        schema,
        concurrentJobs: 24,
        maxPoolSize: 25,
        localQueue: { size: batch },
        completeJobBatchDelay: 0,
        failJobBatchDelay: 0,
        // So that it does not look up a file.
        crontabFile: "",
        logger: new Logger(() => () => {})
      }
    }
    const utils = yield* Effect.acquireRelease(
      Effect.promise(() => makeWorkerUtils({ preset })),
      (utils) => Effect.promise(async () => utils.release())
    )
    yield* Effect.promise(() => utils.migrate())

    const addAll = Effect.promise(() =>
      Promise.all(
        shares(options).map(async (share) => {
          for (const [from, to] of share) {
            await utils.addJobs(
              Array.from({ length: to - from }, (_, i) => ({
                identifier: "index",
                payload: { path: pathOf(from + i) }
              }))
            )
          }
        })
      )
    )
    let processed = 0
    const processAll = Effect.promise(async () => {
      let finished = () => {}
      const all = new Promise<void>((resolve) => (finished = resolve))
      const taskList = {
        index: () => {
          if (++processed === jobs) finished()
        }
      }
      const runners = await Promise.all(
        Array.from({ length: workers }, () => run({ preset, taskList, noHandleSignals: true }))
      )
      await all
      // Completes what is done.
      await Promise.all(runners.map((runner) => runner.stop()))
    })
    const ms = yield* timed(Effect.andThen(addAll, processAll))
    const [left] = yield* Effect.promise(() =>
      utils.withPgClient((client) => client.query(`SELECT count(*)::int AS n FROM ${schema}._private_jobs`))
    ).pipe(Effect.map(({ rows }) => rows))
    if (processed !== jobs || left.n !== 0) {
      return yield* Effect.die(`graphile-worker processed ${processed} of ${jobs} jobs and left ${left.n}`)
    }
    return (jobs * 1000) / ms
  })
