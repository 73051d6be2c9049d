import { describe, it } from "@effect/vitest"
import type { ArtifactStore } from "@strata/cache/ArtifactStore"
import * as Action from "@strata/engine/Action"
import * as Artifacts from "@strata/engine/Artifacts"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { expectTypeOf } from "vitest"

class Tool extends Context.Service<Tool, { readonly call: Effect.Effect<string, ToolError> }>()("test/Tool") {}
class ToolError extends Schema.TaggedError<ToolError>("test/ToolError")("ToolError", {}) {}

const base = { name: "test", version: "1", input: Schema.Struct({ at: Schema.Date }), success: Schema.Date }

describe("types", () => {
  it("infer what goes in and out from the Schemas", () => {
    const action = Action.make({ ...base, run: ({ at }) => Effect.succeed(at) })
    expectTypeOf(action).toEqualTypeOf<Action.Action<{ readonly at: Date }, Date, never, never>>()
    expectTypeOf(action.run({ at: new Date() })).toEqualTypeOf<
      Effect.Effect<Date, Action.ActionError, Action.Services>
    >()
    expectTypeOf(action.run).parameter(0).toEqualTypeOf<{ readonly at: Date }>()
    // @ts-expect-error the result is decoded
    Action.make({ ...base, run: () => Effect.succeed("1970-01-01") })
  })

  it("have the errors of the Schema, and no others", () => {
    const run = () =>
      Effect.as(
        Effect.flatMap(Tool, (tool) => tool.call),
        new Date()
      )
    const action = Action.make({ ...base, error: ToolError, run })
    expectTypeOf(action).toEqualTypeOf<Action.Action<{ readonly at: Date }, Date, ToolError, Tool>>()
    // @ts-expect-error the error has no Schema
    // @effect-diagnostics-next-line missingEffectError:off
    Action.make({ ...base, run })
  })

  it("ask for an artifact store when the body makes artifacts, and give it what collects them", () => {
    const action = Action.make({ ...base, run: ({ at }) => Effect.as(Artifacts.add("a", Stream.empty), at) })
    expectTypeOf(action).toEqualTypeOf<Action.Action<{ readonly at: Date }, Date, never, ArtifactStore>>()
    expectTypeOf(Action.run(action, { at: new Date() })).toEqualTypeOf<
      Effect.Effect<Date, Action.ActionError, ArtifactStore | Action.Services>
    >()
  })

  it("let actions run actions", () => {
    const inner = Action.make({ ...base, run: ({ at }) => Effect.succeed(at) })
    const outer = Action.make({ ...base, name: "outer", run: (input) => inner.run(input) })
    expectTypeOf(outer).toEqualTypeOf<Action.Action<{ readonly at: Date }, Date, never, Action.Services>>()
  })
})
