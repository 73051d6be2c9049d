import { StepCache } from "@strata/cache/StepCache"
import { DurableWriter } from "@strata/durable/DurableWriter"
import { Journal } from "@strata/journal/Journal"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Activity from "effect/workflow/Activity"
import * as Action from "../../Action.ts"
import { ActionError } from "../../ActionError.ts"
import * as ActionEvents from "../../ActionEvents.ts"
import type { CachedOptions } from "../../ActivityCache.ts"
import * as RunStream from "../../RunStream.ts"

export type Services = Context.Context<StepCache | Journal | DurableWriter>

/** Runs an activity as an action: its encoded result is what is cached. */
export const run = (
  services: Services,
  activity: Activity.Any,
  executionId: string,
  { input, nondeterministic, version }: CachedOptions
): Effect.Effect<unknown, unknown> => {
  const action = Action.make({
    name: activity.name,
    version,
    input: Schema.Json,
    success: Schema.Json,
    error: Schema.Json,
    nondeterministic,
    run: () => Effect.map(activity.executeEncoded as Effect.Effect<Schema.Json, Schema.Json>, (value) => value ?? null)
  })
  return action.run(input).pipe(
    Effect.provideService(StepCache, Context.get(services, StepCache)),
    Effect.provideService(Journal, Context.get(services, Journal)),
    Effect.provideService(DurableWriter, Context.get(services, DurableWriter)),
    Effect.provideService(ActionEvents.Stream, RunStream.of(executionId)),
    // An activity has no channel for what is wrong with the cache.
    Effect.catchIf(
      (error) => error instanceof ActionError,
      (error) => Effect.die(error)
    )
  )
}
