import { assert, describe, it } from "@effect/vitest"
import * as ActivityCache from "@strata/engine/ActivityCache"
import * as WorkflowEngineSql from "@strata/engine/WorkflowEngineSql"
import { Journal } from "@strata/journal/Journal"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Activity from "effect/workflow/Activity"
import * as Workflow from "effect/workflow/Workflow"
import type { WorkflowEngine } from "effect/workflow/WorkflowEngine"
import * as Tiers from "./tiers.ts"
import * as WorkflowTiers from "./workflowTiers.ts"

const Render = Workflow.make("Render", {
  payload: { id: Schema.String, page: Schema.String },
  success: Schema.Date,
  error: Schema.String,
  idempotencyKey: ({ id }) => id
})

/** Renders, and counts the times; a page that is called `bad` fails. */
const makeRender = () => {
  const rendered: Array<string> = []
  const layer = Render.toLayer(({ page }) =>
    Activity.make({
      name: "render",
      success: Schema.Date,
      error: Schema.String,
      execute: Effect.suspend(() => {
        rendered.push(page)
        return page === "bad" ? Effect.fail("bad page") : Effect.succeed(new Date(rendered.length))
      })
    }).annotate(ActivityCache.Cached, { version: "1", input: page })
  )
  return { rendered, layer }
}

describe("activities that are cached", () => {
  const shares = <E>(name: string, engine: Layer.Layer<WorkflowEngine | Journal, E>) =>
    it.effect(`share their results between runs, and not their failures, on ${name}`, () => {
      const { layer, rendered } = makeRender()
      return Effect.gen(function* () {
        const first = yield* Render.execute({ id: "1", page: "home" })
        assert.deepStrictEqual(yield* Render.execute({ id: "2", page: "home" }), first)
        assert.deepStrictEqual(first, new Date(1))
        yield* Render.execute({ id: "3", page: "about" })
        assert.deepStrictEqual(rendered, ["home", "about"])
        for (const id of ["4", "5"]) {
          assert.strictEqual(yield* Effect.flip(Render.execute({ id, page: "bad" })), "bad page")
        }
        assert.deepStrictEqual(rendered, ["home", "about", "bad", "bad"])
        const journal = yield* Journal
        const types = (yield* journal.readAll()).map(({ type }) => type)
        assert.strictEqual(types.filter((type) => type === "cache-recorded").length, 2)
        assert.strictEqual(types.filter((type) => type === "activity-completed").length, 5)
      }).pipe(Effect.provide(Layer.provideMerge(layer, engine)))
    })

  shares("memory", WorkflowEngineSql.layerMemory().pipe(Layer.provideMerge(Tiers.memory)))
  shares("SQLite", WorkflowEngineSql.layerSql().pipe(Layer.provideMerge(Tiers.sqlite)))

  it.effect("die without a step cache", () => {
    const { layer, rendered } = makeRender()
    return Effect.gen(function* () {
      const database = yield* WorkflowTiers.memory.database
      const engine = Layer.provideMerge(WorkflowEngineSql.layer(), database)
      const exit = yield* Effect.exit(Render.execute({ id: "1", page: "home" })).pipe(
        Effect.provide(Layer.provideMerge(layer, engine))
      )
      const defect = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
      assert.include(defect instanceof Error ? defect.message : "", "no StepCache")
      assert.deepStrictEqual(rendered, [])
    })
  })
})
