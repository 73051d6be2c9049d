import { assert, it } from "@effect/vitest"
import { write } from "@strata/durable/DurableWriter"
import { DeferredStore } from "@strata/engine/DeferredStore"
import * as WorkflowEngineSql from "@strata/engine/WorkflowEngineSql"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as SqlClient from "effect/sql/SqlClient"
import * as Activity from "effect/workflow/Activity"
import * as DurableDeferred from "effect/workflow/DurableDeferred"
import * as Workflow from "effect/workflow/Workflow"
import { join } from "node:path"
import { tempFolder } from "./tiers.ts"
import { onFile } from "./workflowTiers.ts"

const awaits = 60_000
const batch = 1000

const Long = Workflow.make("Long", {
  payload: { id: Schema.String },
  success: Schema.Int,
  idempotencyKey: ({ id }) => id
})

const gate = DurableDeferred.make("gate")

const part = (n: number) => DurableDeferred.make(`part ${n}`, { success: Schema.Int })

const long = Long.toLayer(() =>
  Effect.gen(function* () {
    let sum = 0
    for (let n = 0; n < awaits; n++) {
      sum += yield* DurableDeferred.await(part(n))
      if (n % batch === batch - 1) {
        yield* Activity.make({ name: `checkpoint ${n}`, success: Schema.Int, execute: Effect.succeed(sum) })
      }
    }
    yield* DurableDeferred.await(gate)
    return sum
  })
)

it.live(
  `57: takes up a run with ${awaits} awaits in under 2 seconds`,
  () =>
    Effect.gen(function* () {
      const file = join(yield* tempFolder, "long.db")
      const start = Effect.gen(function* () {
        const scope = yield* Scope.fork(yield* Effect.scope)
        const layer = long.pipe(Layer.provideMerge(WorkflowEngineSql.layer()), Layer.provideMerge(onFile(file)))
        return { scope, context: yield* Layer.buildWithScope(Layer.fresh(layer), scope) }
      })
      const executionId = yield* Long.executionId({ id: "long" })
      const first = yield* start
      yield* Effect.provideContext(
        Effect.gen(function* () {
          const deferreds = yield* DeferredStore
          for (let n = 0; n < awaits; n += batch) {
            const completions = Array.from({ length: batch }, (_, i) => ({
              executionId,
              name: part(n + i).name,
              exit: { _tag: "Success", value: 1 }
            }))
            yield* write(deferreds.complete(completions))
          }
          yield* Long.execute({ id: "long" }, { discard: true })
          while ((yield* Long.poll(executionId))._tag === "None") yield* Effect.sleep(20)
        }),
        first.context
      )
      yield* Scope.close(first.scope, Exit.void)

      const second = yield* start
      yield* Effect.provideContext(
        Effect.gen(function* () {
          const before = yield* Clock.currentTimeMillis
          const cpu = process.cpuUsage()
          yield* DurableDeferred.succeed(gate, {
            token: DurableDeferred.tokenFromExecutionId(gate, { workflow: Long, executionId }),
            value: undefined
          })
          assert.strictEqual(yield* Long.execute({ id: "long" }), awaits)
          const ms = (yield* Clock.currentTimeMillis) - before
          const { system, user } = process.cpuUsage(cpu)
          // On a machine that is busy with other things its own time counts.
          assert.isBelow(Math.min(ms, (user + system) / 1000), 2000)
          // A completion and its consumption for each await, and what the checkpoints and the run itself tell.
          const sql = yield* SqlClient.SqlClient
          const [counts] = yield* sql<{ readonly entries: number; readonly outcomes: number }>`SELECT
            (SELECT count(*) FROM strata_journal) AS entries, (SELECT count(*) FROM strata_run_activity) AS outcomes`
          assert.strictEqual(counts?.outcomes, awaits / batch)
          assert.isAtMost(counts?.entries ?? Infinity, 2 * awaits + awaits / batch + 10)
        }),
        second.context
      )
    }),
  120_000
)
