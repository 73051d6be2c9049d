import * as Fold from "@strata/journal/Fold"
import type { JournalError } from "@strata/journal/JournalError"
import type { JournalStorage } from "@strata/journal/JournalStorage"
import * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import type { FoldedEvent, State } from "../DeferredClockFold.ts"
import { FoldIncomplete } from "../FoldIncomplete.ts"
import * as RunStream from "../RunStream.ts"
import * as StateEvents from "../StateEvents.ts"
import * as FoldState from "./foldState.ts"

export const checkpointKey = "strata/deferred-clock"

export const initial = (): State => ({ clocks: new Map(), deferreds: new Map() })

export const reduce = (state: State, { payload, type }: FoldedEvent): State => {
  const { clocks, deferreds } = state
  const { at, name } = payload
  switch (type) {
    case "clock-scheduled": {
      const { deadline, deferred } = payload
      if (!clocks.has(name)) {
        clocks.set(name, { deferred, deadline, scheduledAt: at, completedAt: null, outcome: null })
      }
      return state
    }
    case "clock-completed": {
      const clock = clocks.get(name)
      if (clock !== undefined && clock.completedAt === null) {
        clocks.set(name, { ...clock, completedAt: at, outcome: payload.outcome })
      }
      return state
    }
    case "deferred-completed": {
      const { exit, metadata } = payload
      if (!deferreds.has(name)) deferreds.set(name, { exit, metadata, completedAt: at, consumedAt: null })
      return state
    }
    case "deferred-consumed": {
      const deferred = deferreds.get(name)
      if (deferred !== undefined && deferred.consumedAt === null) deferreds.set(name, { ...deferred, consumedAt: at })
      return state
    }
  }
}

export const fold: Fold.Fold<State, "stream"> = Fold.make({
  key: checkpointKey,
  scope: "stream",
  events: StateEvents.all,
  state: FoldState.Codec,
  initial,
  reduce
})

export const capture = Effect.fn("DeferredClockFold.capture")(function* (
  executionId: string,
  upTo?: number
): Effect.fn.Return<State, SqlError | JournalError | FoldIncomplete, JournalStorage> {
  yield* Effect.annotateCurrentSpan({ executionId })
  const { state } = yield* Fold.run(fold, { stream: RunStream.of(executionId), upTo }).pipe(
    Effect.catchReason("JournalError", "CheckpointMissing", ({ floor }) =>
      Effect.fail(new FoldIncomplete({ unjoined: [{ kind: "checkpoint_missing", executionId, floor }] }))
    )
  )
  return state
})
