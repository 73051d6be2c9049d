/**
 * What the queue reports about itself. Claims, lags and gauges carry the attribute `follower`, answers `operation` and
 * `answer`.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"

// ---------------------------------------------------------------------------------------------------------------------
// metrics
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Rows by `state` (ready, delayed, claimed, dead), as of the last call of `stats`.
 *
 * @since 0.1.0
 * @category metrics
 */
export const depth = Metric.gauge("strata_dirty_rows", { description: "Dirty rows by follower and state" })

/**
 * Age of the oldest change that is not processed, in milliseconds, as of the last call of `stats`.
 *
 * @since 0.1.0
 * @category metrics
 */
export const oldestAge = Metric.gauge("strata_dirty_oldest_age_ms", {
  description: "Age of the oldest unprocessed change, in milliseconds"
})

/**
 * Rows claimed.
 *
 * @since 0.1.0
 * @category metrics
 */
export const claims = Metric.counter("strata_dirty_claims_total", { description: "Rows claimed", incremental: true })

/**
 * Answers to claims.
 *
 * @since 0.1.0
 * @category metrics
 */
export const answers = Metric.counter("strata_dirty_answers_total", {
  description: "Answers to claims by operation and outcome",
  incremental: true
})

/**
 * Rows that became dead letters.
 *
 * @since 0.1.0
 * @category metrics
 */
export const deadLetters = Metric.counter("strata_dirty_dead_letters_total", {
  description: "Rows that became dead letters",
  incremental: true
})

/**
 * How long the longest waiting row of each claim had been ready, in milliseconds.
 *
 * @since 0.1.0
 * @category metrics
 */
export const lag = Metric.histogram("strata_dirty_lag_ms", {
  description: "Time from ready to claimed of the longest waiting row of a claim, in milliseconds",
  boundaries: [1, 5, 10, 50, 100, 500, 1000, 5000, 30_000, 60_000, 300_000, 3_600_000]
})

// ---------------------------------------------------------------------------------------------------------------------
// recording
// ---------------------------------------------------------------------------------------------------------------------

/** @internal */
export const recordClaim = Effect.fnUntraced(function* (claim: {
  readonly follower: string
  readonly claimed: number
  readonly dead: number
  readonly lagMillis: number
}): Effect.fn.Return<void> {
  const attributes = { follower: claim.follower }
  if (claim.claimed > 0) {
    yield* Metric.update(Metric.withAttributes(claims, attributes), claim.claimed)
    yield* Metric.update(Metric.withAttributes(lag, attributes), claim.lagMillis)
  }
  if (claim.dead > 0) {
    yield* Metric.update(deadLetters, claim.dead)
  }
})

/** @internal */
export const recordAnswers = Effect.fnUntraced(function* (
  operation: string,
  given: ReadonlyArray<string>,
  dead = 0
): Effect.fn.Return<void> {
  const counts = new Map<string, number>()
  for (const answer of given) {
    counts.set(answer, (counts.get(answer) ?? 0) + 1)
  }
  for (const [answer, count] of counts) {
    yield* Metric.update(Metric.withAttributes(answers, { operation, answer }), count)
  }
  if (dead > 0) {
    yield* Metric.update(deadLetters, dead)
  }
})

/** @internal */
export const recordDepth = Effect.fnUntraced(function* (
  follower: string,
  counts: Record<"ready" | "delayed" | "claimed" | "dead", number>,
  age: number
): Effect.fn.Return<void> {
  for (const state of ["ready", "delayed", "claimed", "dead"] as const) {
    yield* Metric.update(Metric.withAttributes(depth, { follower, state }), counts[state])
  }
  yield* Metric.update(Metric.withAttributes(oldestAge, { follower }), age)
})
