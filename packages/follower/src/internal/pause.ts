import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { FollowerOptions } from "../Follower.ts"

/** How long a follower keeps off a dependency that is out of reach: a doubling pause, ended by the first success. */
export interface Pause {
  /** Milliseconds since the epoch until which nothing is to be claimed. */
  readonly until: Effect.Effect<number>
  /** Starts the next pause and gives its length in milliseconds. */
  readonly begin: Effect.Effect<number>
  readonly end: Effect.Effect<void>
}

export const make = <A>(options: FollowerOptions<A>): Pause => {
  const base = Duration.toMillis(Duration.fromInputUnsafe(options.pauseBase ?? "1 second"))
  const cap = Duration.toMillis(Duration.fromInputUnsafe(options.pauseCap ?? "1 minute"))
  let until = 0
  let length = 0
  return {
    until: Effect.sync(() => until),
    begin: Effect.map(Clock.currentTimeMillis, (now) => {
      // A tick that was under way when the pause began does not lengthen it.
      if (until <= now) {
        length = length === 0 ? base : Math.min(length * 2, cap)
        until = now + length
      }
      return until - now
    }),
    end: Effect.sync(() => {
      length = 0
      until = 0
    })
  }
}
