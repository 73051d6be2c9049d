import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"

/**
 * Wakes what waits for commits of this process. Whoever waits takes `next` before it looks for entries, and awaits it
 * after it found none: so it cannot sleep through a commit in between.
 */
export interface Commits {
  readonly next: Effect.Effect<Effect.Effect<void>>
  readonly notify: Effect.Effect<void>
}

export const make = (): Commits => {
  let next = Deferred.makeUnsafe<void>()
  return {
    next: Effect.sync(() => Deferred.await(next)),
    notify: Effect.sync(() => {
      const woken = next
      next = Deferred.makeUnsafe<void>()
      Deferred.doneUnsafe(woken, Effect.void)
    })
  }
}
