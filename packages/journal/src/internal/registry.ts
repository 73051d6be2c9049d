import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { DuplicateRegistration, JournalError } from "../JournalError.ts"

/** What is registered under a name for the life of a scope, in the order of registration. */
export interface Registry<A> {
  readonly register: (item: A) => Effect.Effect<void, JournalError, Scope.Scope>
  readonly all: Effect.Effect<ReadonlyArray<A>>
}

export const make = <A>(kind: DuplicateRegistration["kind"], nameOf: (item: A) => string): Registry<A> => {
  const items = new Map<string, A>()
  return {
    register: (item) =>
      Effect.acquireRelease(
        Effect.suspend(() => {
          const name = nameOf(item)
          if (items.has(name)) {
            return new JournalError({ reason: new DuplicateRegistration({ kind, name }) })
          }
          items.set(name, item)
          return Effect.void
        }),
        () => Effect.sync(() => items.delete(nameOf(item)))
      ),
    all: Effect.sync(() => Array.from(items.values()))
  }
}
