import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"

/** Lets the others work, and time go by in small steps, until `condition` holds; dies when it does not within `limitMs`. */
export const until = <E, R>(
  what: string,
  condition: Effect.Effect<boolean, E, R>,
  options?: { readonly stepMs?: number; readonly limitMs?: number }
): Effect.Effect<void, E, R> =>
  Effect.gen(function* () {
    const end = (yield* Clock.currentTimeMillis) + (options?.limitMs ?? 60_000)
    while (true) {
      for (let i = 0; i < 20; i++) {
        if (yield* condition) return
        yield* Effect.yieldNow
      }
      if ((yield* Clock.currentTimeMillis) > end) return yield* Effect.die(`in vain: ${what}`)
      yield* TestClock.adjust(options?.stepMs ?? 10)
    }
  })
