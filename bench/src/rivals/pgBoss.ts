/**
 * pg-boss, a job queue on Postgres: jobs are added many at a time, with `insert`, and fetched and completed in batches. Its
 * own `work` waits half a second at least between two looks at a queue; `fetch` and `complete` are called directly, so
 * that nothing is waited for. The queue has a table of its own (`partition`), and nothing else runs beside.
 */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { load, type Run, timed } from "../Harness.ts"
import { pathOf, type QueueOptions, schemaName, shares } from "../queuePg/server.ts"

/** Jobs per second: added, and then processed to the last. */
export const jobsPerSecond = (options: QueueOptions): Run =>
  Effect.gen(function* () {
    const { batch, jobs, url, workers } = options
    const { PgBoss } = yield* load("pg-boss", () => import("pg-boss"))
    const schema = yield* schemaName(url)
    const boss = yield* Effect.acquireRelease(
      Effect.promise(async () => {
        const boss = new PgBoss({
          connectionString: Redacted.value(url),
          schema,
          max: workers + 1,
          supervise: false,
          schedule: false
        })
        await boss.start()
        await boss.createQueue("index", { partition: true })
        return boss
      }),
      (boss) => Effect.promise(() => boss.stop({ graceful: false }))
    )
    const addAll = Effect.promise(() =>
      Promise.all(
        shares(options).map(async (share) => {
          for (const [from, to] of share) {
            await boss.insert(
              "index",
              Array.from({ length: to - from }, (_, i) => ({ data: { path: pathOf(from + i) } }))
            )
          }
        })
      )
    )
    const worker = async (): Promise<number> => {
      let processed = 0
      while (true) {
        const fetched = await boss.fetch("index", { batchSize: batch })
        if (fetched.length === 0) return processed
        await boss.complete(
          "index",
          fetched.map((job) => job.id)
        )
        processed += fetched.length
      }
    }
    let processed = 0
    const processAll = Effect.promise(async () => {
      const each = await Promise.all(Array.from({ length: workers }, worker))
      processed = each.reduce((sum, n) => sum + n, 0)
    })
    const ms = yield* timed(Effect.andThen(addAll, processAll))
    if (processed !== jobs) return yield* Effect.die(`pg-boss processed ${processed} of ${jobs} jobs`)
    return (jobs * 1000) / ms
  })
