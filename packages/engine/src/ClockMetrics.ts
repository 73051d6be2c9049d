/**
 * What clocks report about themselves.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import type { DurableClock } from "./ClockStore.ts"

/**
 * Clocks that this process fired.
 *
 * @since 0.1.0
 * @category metrics
 */
export const fired = Metric.counter("strata_clock_fired_total", {
  description: "Durable clocks fired",
  incremental: true
})

/**
 * How long after their deadlines clocks had fired, the commit included, in milliseconds.
 *
 * @since 0.1.0
 * @category metrics
 */
export const lateness = Metric.histogram("strata_clock_lateness_ms", {
  description: "How long after their deadlines durable clocks fired, in milliseconds",
  boundaries: [1, 2, 5, 10, 20, 50, 100, 250, 500, 1000, 5000, 30_000, 300_000]
})

/** @internal */
export const firedAt = (clocks: ReadonlyArray<DurableClock>, now: number): Effect.Effect<void> =>
  clocks.length === 0
    ? Effect.void
    : Effect.andThen(
        Metric.update(fired, clocks.length),
        Effect.forEach(clocks, ({ deadline }) => Metric.update(lateness, now - deadline), { discard: true })
      )
