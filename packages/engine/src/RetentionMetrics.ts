/**
 * What retention reports about itself.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import type { Swept } from "./Retention.ts"

// ---------------------------------------------------------------------------------------------------------------------
// metrics
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Settled runs that this process removed.
 *
 * @since 0.1.0
 * @category metrics
 */
export const runs = Metric.counter("strata_retention_runs_total", {
  description: "Settled runs of workflows that were removed",
  incremental: true
})

/**
 * Entries of the journal that went with them.
 *
 * @since 0.1.0
 * @category metrics
 */
export const entries = Metric.counter("strata_retention_entries_total", {
  description: "Entries of the journal that were removed with settled runs",
  incremental: true
})

/**
 * Runs that would have gone in the last sweep, but that a run which had not settled had waited for.
 *
 * @since 0.1.0
 * @category metrics
 */
export const needed = Metric.gauge("strata_retention_needed", {
  description: "Settled runs that stay for runs which have not settled"
})

/**
 * Sweeps that failed.
 *
 * @since 0.1.0
 * @category metrics
 */
export const failures = Metric.counter("strata_retention_failures_total", {
  description: "Sweeps of retention that failed",
  incremental: true
})

// ---------------------------------------------------------------------------------------------------------------------
// recording
// ---------------------------------------------------------------------------------------------------------------------

/** @internal */
export const removed = (batch: Pick<Swept, "runs" | "entries">): Effect.Effect<void> =>
  Effect.andThen(Metric.update(runs, batch.runs), Metric.update(entries, batch.entries))
