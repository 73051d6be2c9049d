// Runs workflows under constant load with retention beside them, and looks how large the database is after each
// generation: it has to stop growing.
//
//   node --conditions=@strata/source scripts/retention-size.mjs [--generations 20] [--runs 500] [--keep 500] [--off]
//
// A run has an activity, a deferred that is completed from outside, a clock and a child. With `--off` nothing is removed,
// to see what the load amounts to. The size is that of the database file after a checkpoint, in use what is not free.
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as SqlClient from "effect/sql/SqlClient"
import * as Activity from "effect/workflow/Activity"
import * as DurableClock from "effect/workflow/DurableClock"
import * as DurableDeferred from "effect/workflow/DurableDeferred"
import * as Workflow from "effect/workflow/Workflow"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import * as DeferredClockFold from "@strata/engine/DeferredClockFold"
import * as Retention from "@strata/engine/Retention"
import * as WorkflowEngineSql from "@strata/engine/WorkflowEngineSql"
import * as Compaction from "@strata/journal/Compaction"
import * as Folds from "@strata/journal/Folds"
import * as Strata from "@strata/strata/Strata"

const { values } = parseArgs({
  options: {
    generations: { type: "string", default: "20" },
    runs: { type: "string", default: "500" },
    keep: { type: "string", default: "500" },
    off: { type: "boolean", default: false }
  }
})
const generations = Number(values.generations)
const runs = Number(values.runs)
const maxRuns = Number(values.keep)

/** The first generations fill what is kept, and the space that a sweep needs. */
const settled = Math.ceil(generations / 4)

/** How much larger the last generations may leave the file. */
const tolerance = 1.05

// ---------------------------------------------------------------------------------------------------------------------
// load
// ---------------------------------------------------------------------------------------------------------------------

const payload = { id: Schema.String }
const idempotencyKey = ({ id }) => id

const Child = Workflow.make("Child", { payload, success: Schema.String, idempotencyKey })
const Parent = Workflow.make("Parent", { payload, success: Schema.String, idempotencyKey })
const signal = DurableDeferred.make("signal", { success: Schema.String })

const text = "x".repeat(200)
const step = (name) => Activity.make({ name, success: Schema.String, execute: Effect.succeed(text) })

const workflows = Layer.mergeAll(
  Child.toLayer(() => step("only")),
  Parent.toLayer(({ id }) =>
    Effect.gen(function* () {
      yield* step("first")
      yield* DurableClock.sleep({ name: "nap", duration: 1, inMemoryThreshold: 0 })
      yield* DurableDeferred.await(signal)
      return yield* Child.execute({ id })
    })
  )
)

const one = Effect.fnUntraced(function* (id) {
  const executionId = yield* Parent.execute({ id }, { discard: true })
  yield* DurableDeferred.succeed(signal, {
    token: DurableDeferred.tokenFromExecutionId(signal, { workflow: Parent, executionId }),
    value: text
  })
  yield* Parent.execute({ id })
})

// ---------------------------------------------------------------------------------------------------------------------
// measuring
// ---------------------------------------------------------------------------------------------------------------------

const pragma = (name) =>
  SqlClient.SqlClient.use((sql) => Effect.map(sql.unsafe(`PRAGMA ${name}`), ([row]) => Object.values(row)[0]))

const mib = (bytes) => (bytes / 1024 / 1024).toFixed(2)

const program = Effect.gen(function* () {
  const sizes = []
  for (let generation = 1; generation <= generations; generation++) {
    const start = performance.now()
    yield* Effect.forEach(
      Array.from({ length: runs }, (_, i) => `${generation}/${i}`),
      one,
      { concurrency: 64, discard: true }
    )
    const worked = performance.now()
    const swept = values.off ? { runs: 0, entries: 0 } : yield* Retention.sweep({ maxRuns, grace: 0 })
    const done = performance.now()
    yield* pragma("wal_checkpoint(TRUNCATE)")
    const pageSize = yield* pragma("page_size")
    const pages = yield* pragma("page_count")
    const free = yield* pragma("freelist_count")
    sizes.push(pages * pageSize)
    console.log(
      `generation ${generation}: ${mib(pages * pageSize)} MiB, in use ${mib((pages - free) * pageSize)} MiB; ` +
        `removed ${swept.runs} runs with ${swept.entries} entries in ${(done - worked).toFixed(0)} ms; ` +
        `the load took ${(worked - start).toFixed(0)} ms`
    )
  }
  const report = yield* DeferredClockFold.rebuild({ dryRun: true })
  console.log(`a rebuild explains all ${report.runs} runs that are left`)
  return sizes
})

const folder = mkdtempSync(join(tmpdir(), "strata-retention-"))
try {
  const sizes = await Effect.runPromise(
    Effect.provide(
      program,
      workflows.pipe(
        Layer.provideMerge(WorkflowEngineSql.layerSql()),
        Layer.provideMerge(Compaction.layer),
        Layer.provideMerge(Folds.layer),
        Layer.provideMerge(Strata.layerSqlite({ filename: join(folder, "app.db") }))
      )
    )
  )
  const before = Math.max(...sizes.slice(0, settled))
  const after = Math.max(...sizes.slice(settled))
  const verdict = `${mib(before)} MiB after ${settled} generations, at most ${mib(after)} MiB in the ${generations - settled} after them`
  if (values.off) console.log(`without retention: ${verdict}`)
  else if (after > before * tolerance) throw new Error(`the database grows: ${verdict}`)
  else console.log(`the database has stopped growing: ${verdict}`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
