import * as Text from "@strata/durable/Text"
import * as Effect from "effect/Effect"
import type { InvalidName as Reason } from "../StateError.ts"
import { InvalidName, StateError } from "../StateError.ts"

/** Whether every store keeps it unchanged, and it is not empty. */
export const isName = (name: string): boolean => name !== "" && Text.isStorable(name)

/** Fails on what is no name. */
export const check = (kind: Reason["kind"], name: string): Effect.Effect<void, StateError> =>
  isName(name)
    ? Effect.void
    : Effect.fail(new StateError({ reason: new InvalidName({ kind, name: name.toWellFormed() }) }))

/** Identifies a row of a run. A name has no NUL. */
export const keyOf = ({ executionId, name }: { readonly executionId: string; readonly name: string }): string =>
  `${executionId}\0${name}`

/** The rows of each run, in the order in which the runs come first. */
export const byRun = <A extends { readonly executionId: string }>(
  rows: ReadonlyArray<A>
): ReadonlyMap<string, ReadonlyArray<A>> => {
  const runs = new Map<string, Array<A>>()
  for (const row of rows) {
    const found = runs.get(row.executionId)
    if (found === undefined) runs.set(row.executionId, [row])
    else found.push(row)
  }
  return runs
}
