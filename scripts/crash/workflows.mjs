// What `crash-workflows.mjs` kills: a process with workflows of activities, sleeps, deferreds and children, on one file.
//
//   workflows.mjs work|settle DATABASE LOG SEED
//
// `work` starts runs until it is killed; `settle` starts none, and ends when all are completed. Every activity that runs
// is a line in the log. Says `ready`, and in `work` each run that it has started.
import * as ChangeSignal from "@strata/dirty-queue/ChangeSignal"
import * as DurableWriter from "@strata/durable/DurableWriter"
import * as ClockStore from "@strata/engine/ClockStore"
import * as DeferredStore from "@strata/engine/DeferredStore"
import * as RunStore from "@strata/engine/RunStore"
import * as WorkflowEngineSql from "@strata/engine/WorkflowEngineSql"
import * as Journal from "@strata/journal/Journal"
import * as SqliteClient from "@strata/sqlite/SqliteClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Activity from "effect/workflow/Activity"
import * as DurableClock from "effect/workflow/DurableClock"
import * as DurableDeferred from "effect/workflow/DurableDeferred"
import * as Workflow from "effect/workflow/Workflow"
import { appendFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { randomFrom } from "./random.mjs"

/** What a run has to give. */
export const expected = (n) => `${n} ${n + 1} yes third ${n * 10}:${n * 10 + 1} raced`

const workflows = (log) => {
  const ran = (executionId, name, attempt) =>
    Effect.sync(() => appendFileSync(log, `${executionId} ${attempt} ${name}\n`))
  const step = (executionId, name, value) =>
    Activity.make({
      name,
      success: Schema.String,
      execute: Effect.as(ran(executionId, name, 1), value)
    })
  const sleep = (name, duration) => DurableClock.sleep({ name, duration, inMemoryThreshold: 0 })
  const Approval = DurableDeferred.make("approval", { success: Schema.String })
  const Order = Workflow.make("Order", {
    payload: { n: Schema.Int },
    success: Schema.String,
    error: Schema.String,
    idempotencyKey: ({ n }) => String(n)
  })
  const Part = Workflow.make("Part", {
    payload: { n: Schema.Int },
    success: Schema.String,
    idempotencyKey: ({ n }) => String(n)
  })
  const layer = Layer.mergeAll(
    Order.toLayer(({ n }, executionId) =>
      Effect.gen(function* () {
        const first = yield* step(executionId, "first", String(n))
        yield* sleep("pause", 20 + (n % 60))
        const second = yield* step(executionId, "second", String(n + 1))
        const approval = yield* DurableDeferred.await(Approval)
        const third = yield* Activity.make({
          name: "flaky",
          success: Schema.String,
          error: Schema.String,
          execute: Effect.flatMap(Activity.CurrentAttempt, (attempt) =>
            Effect.andThen(
              ran(executionId, "flaky", attempt),
              attempt < 3 ? Effect.fail(`attempt ${attempt}`) : Effect.succeed("third")
            )
          )
        }).pipe(Activity.retry({ times: 4 }))
        const parts = yield* Effect.forEach([n * 10, n * 10 + 1], (n) => Part.execute({ n }), { concurrency: 2 })
        const raced = yield* DurableDeferred.raceAll({
          name: "race",
          success: Schema.String,
          error: Schema.Never,
          effects: [Effect.as(sleep("short", 30), "raced"), Effect.as(sleep("long", 60_000), "late")]
        })
        return `${first} ${second} ${approval} ${third} ${parts.join(":")} ${raced}`
      })
    ),
    Part.toLayer(({ n }, executionId) =>
      Effect.gen(function* () {
        yield* sleep("wait", 10 + (n % 30))
        return yield* step(executionId, "part", String(n))
      })
    )
  )
  /** Says yes to whoever waits, once in the life of a process. */
  const approve = Effect.gen(function* () {
    const store = yield* RunStore.RunStore
    const approved = new Set()
    while (true) {
      const waiting = yield* store.list({
        status: "suspended",
        workflow: "Order",
        before: Number.MAX_SAFE_INTEGER,
        limit: 100
      })
      for (const { executionId } of waiting) {
        if (approved.has(executionId)) continue
        approved.add(executionId)
        const token = DurableDeferred.tokenFromExecutionId(Approval, { workflow: Order, executionId })
        yield* DurableDeferred.succeed(Approval, { token, value: "yes" })
      }
      yield* Effect.sleep(10)
    }
  })
  return { Order, layer, approve }
}

const engine = (filename) =>
  WorkflowEngineSql.layer({ residentFor: 50 }).pipe(
    Layer.provideMerge(Layer.mergeAll(RunStore.layerSql, ClockStore.layerSql())),
    Layer.provideMerge(DeferredStore.layerSql),
    Layer.provideMerge(Journal.layerSql()),
    Layer.provideMerge(Layer.mergeAll(DurableWriter.layer(), ChangeSignal.layer)),
    Layer.provideMerge(SqliteClient.layer({ filename }))
  )

const main = async ([mode, filename, log, seed]) => {
  const { Order, approve, layer } = workflows(log)
  const random = randomFrom(Number(seed))
  const work = Effect.gen(function* () {
    let n = Number(seed) * 1000
    while (true) {
      yield* Order.execute({ n: n++ }, { discard: true })
      process.stdout.write(`${n - 1}\n`)
      yield* Effect.sleep(random() * 30)
    }
  })
  const settled = Effect.gen(function* () {
    const store = yield* RunStore.RunStore
    const open = (status) => store.list({ status, workflow: undefined, before: Number.MAX_SAFE_INTEGER, limit: 1 })
    while ((yield* open("running")).length + (yield* open("suspended")).length > 0) yield* Effect.sleep(50)
  })
  const program = Effect.gen(function* () {
    process.stdout.write("ready\n")
    yield* Effect.forkChild(approve)
    yield* mode === "work" ? work : settled
  })
  await Effect.runPromise(Effect.provide(program, Layer.provideMerge(layer, engine(filename))))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main(process.argv.slice(2))
