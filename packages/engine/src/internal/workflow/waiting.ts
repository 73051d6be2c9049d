import { insideWrite } from "@strata/durable/DurableWriter"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { StorageFailed, WorkflowError } from "../../WorkflowError.ts"
import { type Failure, isRefusal } from "./commits.ts"

/* What waits for storage that fails: runs, and who waits for them. */

/** How long, in milliseconds, after so many failures in a row. */
export const pause = (failures: number): number => Math.min(100 * 2 ** failures, 10_000)

/** What is done with the storage, and for which run. */
export interface Call {
  readonly workflow: string
  readonly executionId: string
  readonly operation: string
}

/** Effect's interface of an engine has no failures of the storage, so that they are defects. */
export const failed =
  ({ executionId, operation, workflow }: Call) =>
  (cause: unknown): Effect.Effect<never> =>
    Effect.die(new WorkflowError({ workflow, executionId, reason: new StorageFailed({ operation, cause }) }))

/**
 * Does `effect`, which can be done twice, again until the storage has not failed it, or the engine has ended. What is
 * refused each time is a defect, and so is each failure in a write: that one cannot go on.
 */
export const untilStored =
  (ended: Deferred.Deferred<void>) =>
  <A>(call: Call, effect: Effect.Effect<A, Failure>): Effect.Effect<A> =>
    Effect.gen(function* () {
      const { executionId, workflow } = call
      for (let failures = 0; ; failures++) {
        const result = yield* Effect.result(effect)
        if (Result.isSuccess(result)) return result.success
        const failure = result.failure
        if (isRefusal(failure) || (yield* insideWrite)) return yield* failed(call)(failure)
        yield* Effect.annotateLogs(Effect.logError("A call cannot go on for now", failure), { workflow, executionId })
        yield* Effect.timeoutOption(Deferred.await(ended), pause(failures))
        if (Deferred.isDoneUnsafe(ended)) return yield* Effect.interrupt
      }
    })
