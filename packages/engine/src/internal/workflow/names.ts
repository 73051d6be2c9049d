import * as Effect from "effect/Effect"
import { InvalidName, WorkflowError } from "../../WorkflowError.ts"
import * as Names from "../names.ts"

/**
 * A name that not every store keeps unchanged is a defect of whoever uses it. What the storage makes of one is no answer:
 * some refuse it each time, some take it and give another one back.
 */
export const check = (workflow: string, executionId: string, names: ReadonlyArray<string>): Effect.Effect<void> => {
  const invalid = names.find((name) => !Names.isName(name))
  return invalid === undefined ? Effect.void : refuse(workflow, executionId, invalid)
}

export const refuse = (workflow: string, executionId: string, name: string): Effect.Effect<never> =>
  Effect.die(
    new WorkflowError({
      workflow: workflow.toWellFormed(),
      executionId: executionId.toWellFormed(),
      reason: new InvalidName({ name: name.toWellFormed() })
    })
  )
