import { assert, describe, it } from "@effect/vitest"
import { write } from "@strata/durable/DurableWriter"
import * as Postgres from "@strata/durable/testing/postgres"
import { DeferredStorage } from "@strata/engine/DeferredStorage"
import { ClockStorage } from "@strata/engine/ClockStorage"
import * as WorkflowEngineSql from "@strata/engine/WorkflowEngineSql"
import * as Strata from "@strata/strata/Strata"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as TestConsole from "effect/testing/TestConsole"
import * as Activity from "effect/workflow/Activity"
import * as DurableDeferred from "effect/workflow/DurableDeferred"
import * as Workflow from "effect/workflow/Workflow"
import { join } from "node:path"
import { afterEach, beforeEach } from "vitest"
import * as Platform from "../src/Platform.ts"
import * as Program from "../src/Program.ts"
import { type Folder, makeFolder } from "./program.ts"

let folder: Folder

beforeEach(() => {
  folder = makeFolder()
  database = join(folder.path, "app.db")
})

afterEach(() => folder.remove())

const Order = Workflow.make("Order", {
  payload: { id: Schema.String },
  success: Schema.String,
  idempotencyKey: ({ id }) => id
})

const approval = DurableDeferred.make("approval", { success: Schema.String })

/** What the workflow has done, in this process. */
let done: Array<string> = []
let busy = false

const order = Order.toLayer(() =>
  Effect.gen(function* () {
    yield* Activity.make({
      name: "reserve",
      execute: Effect.suspend(() => {
        done.push("reserve")
        return busy ? Effect.never : Effect.void
      })
    }).pipe(Order.withCompensation(() => Effect.sync(() => void done.push("release"))))
    const by = yield* DurableDeferred.await(approval)
    done.push("approved")
    return by
  })
)

/** The database of the app. */
let database: string

/** An app with workflows. */
const app = <A, E>(
  effect: Effect.Effect<A, E, Layer.Success<ReturnType<typeof layer>>>,
  workflows: typeof order | Layer.Layer<never> = order
) => Effect.suspend(() => ((done = []), (busy = false), Effect.provide(effect, layer(workflows))))

const layer = (workflows: typeof order | Layer.Layer<never>) =>
  workflows.pipe(
    Layer.provideMerge(WorkflowEngineSql.layerSql()),
    Layer.provideMerge(
      database.startsWith("postgres")
        ? Strata.layerPostgres({ url: Redacted.make(database) })
        : Strata.layerSqlite({ filename: database })
    )
  )

const approve = (executionId: string, by: string) =>
  DurableDeferred.succeed(approval, {
    token: DurableDeferred.tokenFromExecutionId(approval, { workflow: Order, executionId }),
    value: by
  })

const start = (id: string) => Order.execute({ id }, { discard: true })

const until = <A, E, R>(look: Effect.Effect<A, E, R>, found: (value: A) => boolean) =>
  Effect.gen(function* () {
    for (let i = 0; i < 1000; i++) {
      if (found(yield* look)) return
      yield* Effect.sleep(10)
    }
    return assert.fail("it never happens")
  })

const suspended = (executionId: string) =>
  until(Order.poll(executionId), (found) => found._tag === "Some" && found.value._tag === "Suspended")

const result = Effect.fnUntraced(function* (executionId: string) {
  let exit: Exit.Exit<string> | undefined
  yield* until(Order.poll(executionId), (found) => {
    if (found._tag === "Some" && found.value._tag === "Complete") exit = found.value.exit
    return exit !== undefined
  })
  return exit
})

const onApp = (args: ReadonlyArray<string>) => [...args, "--database", database]

/** The program in this process. */
const execute = (args: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const code = yield* Program.run(args)
    return { code, out: (yield* TestConsole.logLines).map(String).join("\n") }
  }).pipe(Effect.provide(Layer.fresh(Layer.merge(Platform.layer, TestConsole.layer))))

const run = (...args: ReadonlyArray<string>) => execute(onApp(args))

const json = (...args: ReadonlyArray<string>) =>
  Effect.map(execute([...onApp(args), "--json"]), ({ code, out }) => ({ code, ...JSON.parse(out) }))

/** The program in a process of its own. */
const elsewhere = (...args: ReadonlyArray<string>) => folder.json(onApp(args))

const types = (shown: { readonly entries: ReadonlyArray<{ readonly type: string }> }) =>
  shown.entries.map(({ type }) => type)

const changing = Effect.gen(function* () {
  const executionId = yield* app(
    Effect.gen(function* () {
      const executionId = yield* start("a")
      yield* suspended(executionId)
      yield* approve(executionId, "first")
      yield* result(executionId)
      return executionId
    })
  )
  const rewound = yield* json("runs", "rewind", executionId, "2")
  assert.deepInclude(rewound, { code: 0, state: "suspended", held: true, archived: 3, outcome: null })
  assert.include((yield* run("runs", "list")).out, "held")
  assert.deepInclude(yield* json("runs", "fork", executionId, "2", "--to", "copy", "--resume"), {
    code: 0,
    executionId: "copy",
    state: "running",
    held: false
  })
  assert.deepInclude(yield* json("runs", "fork", executionId, "1", "--to", "other"), { code: 0, held: true })
  assert.deepInclude(yield* json("runs", "resume", executionId), { code: 0, state: "running" })
  assert.deepInclude(yield* json("runs", "cancel", "other"), { code: 0, state: "running", interrupted: "safe" })
  yield* app(
    Effect.gen(function* () {
      yield* approve(executionId, "second")
      yield* approve("copy", "third")
      assert.deepStrictEqual(yield* result(executionId), Exit.succeed("second"))
      assert.deepStrictEqual(yield* result("copy"), Exit.succeed("third"))
      assert.isTrue(Exit.isFailure((yield* result("other"))!))
      assert.deepStrictEqual(done.toSorted(), ["approved", "approved"])
    })
  )
  assert.deepStrictEqual((yield* json("runs", "show", "other")).outcome, "interrupted")
  assert.deepInclude(yield* json("rebuild-state", "--dry-run"), { code: 0, ok: true, runs: 3, unexplained: 0 })
})

describe("strata runs", () => {
  it.live("lists and shows runs whose workflow it does not know", () =>
    Effect.gen(function* () {
      const [first, second] = yield* app(
        Effect.gen(function* () {
          const first = yield* start("a")
          yield* suspended(first)
          const second = yield* start("b")
          yield* suspended(second)
          yield* approve(first, "somebody")
          yield* result(first)
          return [first, second] as const
        })
      )
      const all = yield* json("runs", "list")
      assert.strictEqual(all.code, 0)
      assert.deepStrictEqual(
        all.runs.map((run: Record<string, unknown>) => [run["executionId"], run["state"], run["outcome"]]),
        [
          [second, "suspended", null],
          [first, "completed", "success"]
        ]
      )
      assert.deepStrictEqual((yield* json("runs", "list", "--state", "completed")).runs.length, 1)
      assert.deepStrictEqual((yield* json("runs", "list", "--limit", "1")).runs[0].executionId, second)
      assert.deepStrictEqual((yield* json("runs", "list", "--workflow", "Other")).runs, [])
      const lines = (yield* run("runs", "list")).out.trim().split("\n")
      assert.match(lines[1] ?? "", new RegExp(`^\\d{4}-\\d\\d-\\d\\dT[\\d:.]+Z {2}success {6}${first} {2}Order$`))

      const shown = yield* json("runs", "show", first)
      assert.deepInclude(shown, { code: 0, state: "completed", outcome: "success", floor: 0, deferreds: ["approval"] })
      assert.deepStrictEqual(types(shown), [
        "run-started",
        "activity-completed",
        "deferred-completed",
        "deferred-consumed",
        "run-completed"
      ])
      // Neither what it was started with, nor what came of it.
      assert.notInclude(JSON.stringify(shown), "somebody")
      assert.include((yield* run("runs", "show", first)).out, "run-completed")
      assert.deepStrictEqual((yield* json("journal", first)).entries, shown.entries)
      assert.deepStrictEqual(types(yield* json("journal", second, "--limit", "1")), ["activity-completed"])
      assert.strictEqual((yield* json("journal", "--limit", "100")).entries.length, 7)
      assert.strictEqual((yield* run("journal", first, "--stream", "x")).code, 2)
    })
  )

  it.live("rewinds, forks, resumes and cancels runs that the app then picks up", () => changing)

  it.live("wakes a process that runs, and takes a run from it only when forced", () =>
    app(
      Effect.gen(function* () {
        const waiting = yield* start("a")
        yield* suspended(waiting)
        assert.deepInclude(elsewhere("runs", "cancel", waiting), { code: 0 })
        assert.isTrue(Exit.isFailure((yield* result(waiting))!))
        assert.deepStrictEqual(done, ["reserve", "release"])

        busy = true
        done = []
        const executionId = yield* start("b")
        yield* until(
          Effect.sync(() => done.length),
          (length) => length === 1
        )
        yield* approve(executionId, "somebody")
        const refused = elsewhere("runs", "rewind", executionId, "1")
        assert.deepStrictEqual([refused.code, refused.error.tag], [2, "RunHistoryError"])
        assert.include(refused.error.message, `process ${process.pid}`)
        busy = false
        assert.deepInclude(elsewhere("runs", "rewind", executionId, "1", "--force", "--resume"), {
          code: 0,
          archived: 1
        })
        yield* until(
          Effect.sync(() => done.length),
          (length) => length === 2
        )
        yield* approve(executionId, "somebody else")
        assert.deepStrictEqual(yield* result(executionId), Exit.succeed("somebody else"))
        assert.deepStrictEqual(done, ["reserve", "reserve", "approved"])
      })
    )
  )

  it.live("refuses what is not there", () =>
    Effect.gen(function* () {
      const executionId = yield* app(Effect.tap(start("a"), suspended))
      for (const args of [["show"], ["rewind", "1"]]) {
        const [command, ...rest] = args
        const { code, error } = yield* json("runs", command!, "none", ...rest)
        assert.deepStrictEqual([code, error.tag, error.message], [2, "RunHistoryError", `there is no run "none"`])
      }
      assert.strictEqual((yield* json("journal", "none")).code, 2)
      const { code, error } = yield* json("runs", "rewind", executionId, "9")
      assert.deepStrictEqual([code, error.tag], [2, "RunHistoryError"])
      assert.include(error.message, "from 1 to 2 is possible")
      assert.strictEqual((yield* run("runs", "list", "--state", "odd")).code, 2)
      assert.strictEqual((yield* run("runs")).code, 2)
      // An index has no runs, and gets none.
      folder.write("docs/a.txt", "word")
      folder.run(["index", "docs"])
      for (const command of [["runs", "list"], ["rebuild-state"]]) {
        const { code, error } = folder.json(command)
        assert.deepStrictEqual([code, error.tag], [3, "NoRuns"])
      }
    })
  )
})

describe("strata rebuild-state", () => {
  it.live("makes clocks again, or lists all that cannot be joined", () =>
    Effect.gen(function* () {
      const executionId = yield* app(
        Effect.gen(function* () {
          const executionId = yield* start("a")
          yield* suspended(executionId)
          yield* approve(executionId, "somebody")
          yield* result(executionId)
          yield* write(
            ClockStorage.use((clocks) =>
              clocks.insert([
                {
                  executionId,
                  name: "stray",
                  deferred: "x",
                  deadline: 9e15,
                  scheduledAt: 0,
                  completedAt: null,
                  outcome: null
                }
              ])
            )
          )
          return executionId
        })
      )
      assert.deepStrictEqual((yield* json("runs", "show", executionId)).clocks, [{ name: "stray", deadline: 9e15 }])
      assert.include((yield* run("runs", "show", executionId)).out, "stray, never")
      const report = { ok: true, runs: 1, clocks: 0, deferreds: 1, unexplained: 0 }
      assert.deepStrictEqual(yield* json("rebuild-state", "--dry-run"), { code: 0, dryRun: true, ...report })
      assert.strictEqual((yield* json("runs", "show", executionId)).clocks.length, 1)
      assert.deepStrictEqual(yield* json("rebuild-state"), { code: 0, dryRun: false, ...report })
      assert.strictEqual((yield* json("runs", "show", executionId)).clocks.length, 0)

      yield* app(
        write(DeferredStorage.use((deferreds) => deferreds.remove([{ executionId, name: "approval" }]))),
        Layer.empty
      )
      assert.deepStrictEqual(yield* json("rebuild-state"), {
        code: 1,
        ok: false,
        dryRun: false,
        unjoined: [{ kind: "row_missing", executionId, deferred: "approval" }]
      })
      const { code, out } = yield* run("rebuild-state", "--dry-run")
      assert.strictEqual(code, 1)
      assert.match(out.trim(), new RegExp(`^row_missing +${executionId} {2}approval$`))
    })
  )
})

describe.skipIf(!Postgres.isAvailable())("strata runs on Postgres", { timeout: 60_000 }, () => {
  it.live("rewinds, forks, resumes and cancels runs that the app then picks up", () =>
    Effect.gen(function* () {
      database = `${process.env["STRATA_TEST_POSTGRES"]}?schema=${yield* Postgres.schema}`
      const { code, error } = yield* json("runs", "list")
      assert.deepStrictEqual([code, error.tag], [3, "NoRuns"])
      yield* changing
    })
  )
})
