/** The database of an app, which has no index. */
import { assert, describe, it } from "@effect/vitest"
import * as DurableWriter from "@strata/durable/DurableWriter"
import * as WorkflowEngineSql from "@strata/engine/WorkflowEngineSql"
import * as Event from "@strata/journal/Event"
import * as Journal from "@strata/journal/Journal"
import { StreamName } from "@strata/journal/StreamName"
import * as Strata from "@strata/strata/Strata"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Workflow from "effect/workflow/Workflow"
import * as fs from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { makeFolder } from "./program.ts"

const folder = Effect.acquireRelease(Effect.sync(makeFolder), (folder) => Effect.sync(() => folder.remove()))

class Refused extends Schema.TaggedError<Refused>("test/Refused")("Refused", {
  detail: Schema.String,
  secret: Schema.String
}) {
  override get message(): string {
    return this.detail
  }
}

const Order = Workflow.make("Order", {
  payload: { id: Schema.String },
  success: Schema.String,
  error: Refused,
  idempotencyKey: ({ id }) => id
})

const order = Order.toLayer(({ id }) =>
  id === "bug"
    ? Effect.die(new Error(`no such thing as ${id}: ${"x".repeat(1000)}`))
    : Effect.fail(new Refused({ detail: "sold out", secret: "hunter2" }))
)

describe("the database of an app", { timeout: 60_000 }, () => {
  it.live("is looked at for what it has, gets no index, and keeps its artifacts", () =>
    Effect.gen(function* () {
      const machine = yield* folder
      const database = join(machine.path, "app.db")
      const artifacts = join(machine.path, "artifacts")
      yield* DurableWriter.write(
        Journal.Journal.use((journal) => journal.append(StreamName.make("mine"), [Event.json("counted", { n: 1 })]))
      ).pipe(
        Effect.provide(
          Strata.layerCache({ directory: join(machine.path, "elsewhere") }).pipe(
            Layer.provideMerge(Strata.layerSqlite({ filename: database }))
          )
        )
      )
      const json = (...args: ReadonlyArray<string>) => machine.json([...args, "--database", database])
      const { code, entries } = json("journal", "--stream", "mine")
      assert.deepStrictEqual([code, entries.length], [0, 1])
      assert.deepInclude(json("cache", "stats"), { code: 0, entries: 0, unpublished: [] })
      assert.deepInclude(json("cache", "verify"), { code: 0, ok: true })
      const doctor = json("doctor")
      assert.deepInclude(doctor, { code: 0, ok: true })
      assert.deepInclude(doctor.checks, {
        subject: "database",
        check: "index",
        status: "unknown",
        detail: "there is none; there is journal, cache"
      })
      const refused = json("cache", "gc")
      assert.deepStrictEqual([refused.code, refused.error.tag], [3, "CacheOfApp"])
      assert.match(json("runs", "list").error.message, /no runs of workflows/)
      assert.match(json("search", "word").error.message, /there is no search index in the database/)
      assert.isFalse(fs.existsSync(artifacts))
      const sql = new DatabaseSync(database, { readOnly: true })
      const tables = sql.prepare("SELECT name FROM sqlite_schema WHERE name LIKE 'strata_search%'").all()
      sql.close()
      assert.deepStrictEqual(tables, [])
    })
  )

  it.live("without a cache is told as such, and others are left alone", () =>
    Effect.gen(function* () {
      const machine = yield* folder
      const file = join(machine.path, "other.db")
      const sql = new DatabaseSync(file)
      sql.exec("CREATE TABLE mine (id INTEGER)")
      sql.close()
      for (const [args, what] of [
        [["journal"], "journal"],
        [["cache", "stats"], "cache"],
        [["cache", "gc"], "cache"]
      ] as const) {
        const { code, err } = machine.run([...args, "--database", file])
        assert.deepStrictEqual([code, err], [3, `strata: there is no ${what} in the database ${file}\n`])
      }
      assert.strictEqual(machine.run(["doctor", "--database", file]).code, 3)
    })
  )

  it.live("tells why a run has failed, and not what else its failure holds", () =>
    Effect.gen(function* () {
      const machine = yield* folder
      const database = join(machine.path, "app.db")
      const layer = order.pipe(
        Layer.provideMerge(WorkflowEngineSql.layerSql()),
        Layer.provideMerge(Strata.layerSqlite({ filename: database }))
      )
      const [failed, broken] = yield* Effect.gen(function* () {
        yield* Effect.exit(Order.execute({ id: "a" }))
        yield* Effect.exit(Order.execute({ id: "bug" }))
        return [yield* Order.executionId({ id: "a" }), yield* Order.executionId({ id: "bug" })] as const
      }).pipe(Effect.provide(layer))
      const json = (...args: ReadonlyArray<string>) => machine.json([...args, "--database", database])
      const shown = json("runs", "show", failed)
      assert.deepInclude(shown, { code: 0, outcome: "failure" })
      assert.strictEqual(shown.message, "Refused")
      assert.notInclude(JSON.stringify(shown), "hunter2")
      const defect = json("runs", "show", broken)
      assert.strictEqual(defect.outcome, "defect")
      assert.include(defect.message, "no such thing as bug")
      assert.isBelow(defect.message.length, 400)
      assert.match(
        machine.run(["runs", "show", broken, "--database", database]).out,
        /^because +.*no such thing as bug/m
      )
      const { code, error } = json("runs", "resume", broken)
      assert.deepStrictEqual([code, error.tag], [2, "RunEnded"])
      assert.match(error.message, /has ended.*strata runs rewind .* SEQ --resume/)
    })
  )
})
