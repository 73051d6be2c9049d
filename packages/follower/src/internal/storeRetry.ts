import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"

/** How long a loop waits after its store failed: see `FollowerSchedulerOptions`. */
export const storeRetry = (options: {
  readonly retryBase?: Duration.Input | undefined
  readonly retryCap?: Duration.Input | undefined
}): Schedule.Schedule<Duration.Duration> => {
  const cap = Duration.fromInputUnsafe(options.retryCap ?? "30 seconds")
  return Schedule.exponential(options.retryBase ?? "200 millis").pipe(
    Schedule.modifyDelay(({ duration }) => Effect.succeed(Duration.min(duration, cap)))
  )
}
