/** DBOS on a Postgres of its own, with its defaults: workflows of five trivial steps. */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { load, type Run, timed } from "../Harness.ts"

/** Workflows per second. There is one DBOS in a process, so its set-up is shared by all runs of a case. */
export const workflowsPerSecond = (options: {
  readonly url: Redacted.Redacted
  readonly workflows: number
  readonly concurrency: number
}) =>
  Effect.gen(function* () {
    const { DBOS } = yield* load("@dbos-inc/dbos-sdk", () => import("@dbos-inc/dbos-sdk"))
    DBOS.setConfig({ name: "bench", systemDatabaseUrl: Redacted.value(options.url), logLevel: "error" })
    const five = DBOS.registerWorkflow(
      async () => {
        let sum = 0
        for (let i = 0; i < 5; i++) sum += await DBOS.runStep(async () => i, { name: `step ${i}` })
        return sum
      },
      { name: "five" }
    )
    yield* Effect.acquireRelease(
      Effect.promise(() => DBOS.launch()),
      // Each case registers its workflows anew.
      () => Effect.promise(() => DBOS.shutdown({ deregister: true }))
    )
    const run: Run = Effect.map(
      timed(
        Effect.forEach(
          Array.from({ length: options.workflows }),
          () =>
            Effect.promise(async () => {
              const handle = await DBOS.startWorkflow(five)()
              return handle.getResult()
            }),
          { concurrency: options.concurrency, discard: true }
        )
      ),
      (ms) => (options.workflows / ms) * 1000
    )
    return run
  })
