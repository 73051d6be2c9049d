/**
 * liteque, a job queue on drizzle and `better-sqlite3`: jobs are added one by
 * one, it has no other way, and its own runner takes and finishes them.
 */
import * as Effect from "effect/Effect"
import { join } from "node:path"
import { load, type Run, temporaryFolder, timed } from "../Harness.ts"

/** Jobs per second: `jobs` paths added and then processed to the last. */
export const jobsPerSecond = (options: { readonly jobs: number; readonly synchronous: "FULL" | "NORMAL" }): Run =>
  Effect.gen(function* () {
    const { buildDBClient, Runner, SqliteQueue } = yield* load("liteque", () => import("liteque"))
    const { sql } = yield* load("drizzle-orm", () => import("drizzle-orm"))
    const filename = join(yield* temporaryFolder, "liteque.db")
    const database = yield* load("better-sqlite3", () =>
      Promise.resolve().then(() => buildDBClient(filename, { runMigrations: true, walEnabled: true }))
    )
    // Its own setting is NORMAL.
    database.run(sql.raw(`PRAGMA synchronous = ${options.synchronous}`))
    // It hands an async function to a transaction of better-sqlite3, which newer versions refuse. Older ones, for which
    // it was written, commit when that function first waits; so does this.
    Object.assign(database, {
      transaction: <A>(body: (transaction: typeof database) => A): A => {
        database.run(sql.raw("BEGIN"))
        const result = body(database)
        database.run(sql.raw("COMMIT"))
        return result
      }
    })
    const queue = new SqliteQueue<{ readonly path: string }>("index", database, {
      defaultJobArgs: { numRetries: 2 },
      keepFailedJobs: false
    })
    let processed = 0
    const runner = new Runner(
      queue,
      {
        run: () => {
          processed++
          return Promise.resolve()
        }
      },
      { concurrency: 1, pollIntervalMs: 1, timeoutSecs: 60 }
    )
    const ms = yield* timed(
      Effect.promise(async () => {
        for (let i = 0; i < options.jobs; i++) {
          await queue.enqueue({ path: `docs/${i % 100}/page-${i}.md` })
        }
        await runner.runUntilEmpty()
      })
    )
    if (processed !== options.jobs) {
      return yield* Effect.die(`liteque processed ${processed} of ${options.jobs} jobs`)
    }
    return (options.jobs * 1000) / ms
  })
