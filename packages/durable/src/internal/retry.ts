import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { hasProperty } from "effect/Predicate"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import { isSqlError } from "effect/sql/SqlError"
import type { DurableWriterOptions } from "../DurableWriter.ts"
import * as Metrics from "../Metrics.ts"

/**
 * Retries a whole write while another writer is in its way: exponential delays with jitter, each within the cap.
 * A lost connection or a statement timeout is no such conflict, as the commit may have happened.
 */
export const retryConflicts = (options: DurableWriterOptions) => {
  const cap = Duration.toMillis(Duration.fromInputUnsafe(options.retryCap ?? Duration.millis(100)))
  const schedule = Schedule.exponential(options.retryBase ?? Duration.millis(1)).pipe(
    // The cap comes before the jitter, which only shortens: no delay exceeds the cap.
    Schedule.modifyDelay(({ duration }) =>
      Effect.map(Random.next, (random) =>
        Duration.millis(Math.min(cap, Duration.toMillis(duration)) * (0.5 + random / 2))
      )
    ),
    Schedule.upTo({ duration: options.retryFor ?? Duration.seconds(30) })
  )
  return <A, E, R>(write: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    // A write that meets nobody, as nearly all do, pays nothing for the schedule.
    Effect.catchIf(write, isConflict, (conflict) => {
      let attempt: Effect.Effect<A, E, R> = Effect.fail(conflict)
      return Effect.suspend(() => {
        const current = attempt
        attempt = write
        return Effect.tapError(current, (error) => (isConflict(error) ? Metrics.writeConflict : Effect.void))
      }).pipe(Effect.retry({ while: isConflict, schedule }))
    })
}

/** Whether `error` is, or wraps as its `reason` or `cause`, a conflict after which nothing was committed. */
export const isConflict = (error: unknown): boolean => {
  let current = error
  // Bounded, since a cause may refer to itself.
  for (let depth = 0; depth < 16; depth++) {
    if (isSqlError(current)) {
      switch (current.reason._tag) {
        case "LockTimeoutError":
        case "DeadlockError":
        case "SerializationError":
          return true
        default:
          return false
      }
    }
    current = wrapped(current)
  }
  return false
}

const wrapped = (error: unknown): unknown => {
  if (hasProperty(error, "reason")) {
    if (isSqlError(error.reason)) return error.reason
    if (hasProperty(error.reason, "cause")) return error.reason.cause
  }
  return hasProperty(error, "cause") ? error.cause : undefined
}
