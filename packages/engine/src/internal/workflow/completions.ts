import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import type { RunStore } from "../../RunStore.ts"

/* Who waits here for runs that are suspended, or run elsewhere. */

export interface Completions {
  readonly await: (executionId: string) => Effect.Effect<void, SqlError>
  /** A run was completed by this process. */
  readonly notify: (executionId: string) => void
  /** Looks for those that were completed by others. */
  readonly check: Effect.Effect<void, unknown>
  readonly close: () => void
}

export const make = (store: RunStore["Service"], isHere: (executionId: string) => boolean): Completions => {
  const waiting = new Map<string, { readonly done: Deferred.Deferred<void>; waiters: number }>()

  const notify = (executionId: string): void => {
    const entry = waiting.get(executionId)
    if (entry !== undefined) Deferred.doneUnsafe(entry.done, Effect.void)
  }

  const enter = (executionId: string) => {
    const entry = waiting.get(executionId) ?? { done: Deferred.makeUnsafe<void>(), waiters: 0 }
    entry.waiters++
    waiting.set(executionId, entry)
    return entry
  }

  return {
    await: (executionId) =>
      Effect.acquireUseRelease(
        Effect.sync(() => enter(executionId)),
        ({ done }) =>
          Effect.flatMap(store.completedOf([executionId]), (completed) =>
            completed.length > 0 ? Effect.void : Deferred.await(done)
          ),
        (entry) =>
          Effect.sync(() => {
            if (--entry.waiters === 0) waiting.delete(executionId)
          })
      ),
    notify,
    check: Effect.suspend(() => {
      const elsewhere = [...waiting.keys()].filter((executionId) => !isHere(executionId))
      if (elsewhere.length === 0) return Effect.void
      return Effect.map(store.completedOf(elsewhere), (completed) => completed.forEach(notify))
    }),
    close: () => {
      for (const { done } of waiting.values()) Deferred.doneUnsafe(done, Effect.interrupt)
    }
  }
}
