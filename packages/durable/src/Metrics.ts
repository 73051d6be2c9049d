/**
 * What a writer reports about itself.
 *
 * @since 0.1.0
 */
import type * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"

/**
 * How long writes held their transaction, in milliseconds.
 *
 * @since 0.1.0
 * @category metrics
 */
export const writeDuration = Metric.histogram("strata_write_duration_ms", {
  description: "Time for which a write held its transaction, in milliseconds",
  boundaries: [0.5, 1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 5000]
})

/**
 * How often a write met another writer and was rolled back.
 *
 * @since 0.1.0
 * @category metrics
 */
export const writeConflicts = Metric.counter("strata_write_conflicts_total", {
  description: "Writes that were rolled back because of another writer",
  incremental: true
})

/** @internal */
export const writeConflict: Effect.Effect<void> = Metric.update(writeConflicts, 1)
