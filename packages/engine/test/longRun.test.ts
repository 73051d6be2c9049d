import { assert, it } from "@effect/vitest"
import { write } from "@strata/durable/DurableWriter"
import * as DeferredClockFold from "@strata/engine/DeferredClockFold"
import { DeferredStore } from "@strata/engine/DeferredStore"
import * as RunStream from "@strata/engine/RunStream"
import * as WorkflowEngineSql from "@strata/engine/WorkflowEngineSql"
import * as Compaction from "@strata/journal/Compaction"
import * as Folds from "@strata/journal/Folds"
import * as Journal from "@strata/journal/Journal"
import * as Projections from "@strata/journal/Projections"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
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

/** Each ends one wait for somebody to say that the run may go on. */
const gates = [1, 2, 3].map((n) => DurableDeferred.make(`gate ${n}`))

/** Called by the run when it has come through a gate. */
let passed = (_gate: string): void => {}

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
    for (const gate of gates) {
      yield* DurableDeferred.await(gate)
      yield* Activity.make({ name: `through ${gate.name}`, execute: Effect.sync(() => passed(gate.name)) })
    }
    return sum
  })
)

it.live(
  `57: takes up a run with ${awaits} awaits in under 2 seconds, whose journal can be compacted to its last entry`,
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

      // What else the machine does can only make it slower, so the quickest of them tells what it costs.
      const resumed = yield* Effect.forEach(gates, (gate) =>
        Effect.gen(function* () {
          const process = yield* start
          if (gate === gates.at(-1)) {
            yield* Effect.provideContext(assertBounded(2 * awaits + awaits / batch + 20), process.context)
            yield* Effect.provide(compact(executionId), Layer.succeedContext(process.context))
            yield* Effect.provideContext(assertBounded(1), process.context)
          }
          const ms = yield* Effect.provideContext(passThrough(gate, executionId), process.context)
          if (gate === gates.at(-1)) {
            assert.strictEqual(yield* Effect.provideContext(Long.execute({ id: "long" }), process.context), awaits)
            yield* Effect.provideContext(assertBounded(10), process.context)
          }
          yield* Scope.close(process.scope, Exit.void)
          return ms
        })
      )
      assert.isBelow(Math.min(...resumed), 2000, JSON.stringify(resumed))
    }),
  120_000
)

/** Lets the run go on in a process that has not seen it yet, and gives the milliseconds until it is through. */
const passThrough = Effect.fnUntraced(function* (gate: (typeof gates)[number], executionId: string) {
  const through = yield* Deferred.make<void>()
  passed = (name) => {
    if (name === gate.name) Deferred.doneUnsafe(through, Exit.void)
  }
  const before = yield* Clock.currentTimeMillis
  yield* DurableDeferred.succeed(gate, {
    token: DurableDeferred.tokenFromExecutionId(gate, { workflow: Long, executionId }),
    value: undefined
  })
  yield* Deferred.await(through)
  return (yield* Clock.currentTimeMillis) - before
})

/** Drops what the run has told so far: its floor has the states of its folds. */
const compact = (executionId: string) =>
  Effect.gen(function* () {
    const stream = RunStream.of(executionId)
    const seq = yield* Journal.Journal.use((journal) => journal.head(stream))
    yield* Compaction.Compaction.use((compaction) => compaction.compact({ stream, seq }))
  }).pipe(Effect.provide(compaction))

const compaction = Layer.mergeAll(Compaction.layer, DeferredClockFold.layer).pipe(
  Layer.provide(Layer.mergeAll(Folds.layer, Projections.layer))
)

/** Of each await a completion and its consumption are told, beside what the checkpoints and the run itself tell. */
const assertBounded = Effect.fnUntraced(function* (most: number) {
  const sql = yield* SqlClient.SqlClient
  const [counts] = yield* sql<{ readonly entries: number }>`SELECT count(*) AS entries FROM strata_journal`
  assert.isAtMost(counts?.entries ?? Infinity, most)
})
