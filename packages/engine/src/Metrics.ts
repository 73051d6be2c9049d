/**
 * What actions report about themselves. Everything carries the attribute `action`.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Where the outcome of a run came from:
 *
 * - `local-hit`, `shared-hit`: from the cache of this machine, or the one that machines share.
 * - `ran`: the body ran, and its result was cached.
 * - `uncached`: the body ran, and its result was not cached, see `ActionEvents.Completed`.
 * - `unrecorded`: the body ran, and the cache failed to take its result, see `ActionOptions.whenCacheFails`.
 * - `kept`: the body ran, but another result was there first and was served, see `ActionOptions.nondeterministic`.
 * - `conflict`: the body ran, but another result was there first, so that the run failed.
 * - `failed`: the body, the cache or the action's use failed.
 *
 * @since 0.1.0
 * @category models
 */
export type Decision = "local-hit" | "shared-hit" | "ran" | "uncached" | "unrecorded" | "kept" | "conflict" | "failed"

// ---------------------------------------------------------------------------------------------------------------------
// metrics
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Runs by `decision`. Callers that waited for the run of another are counted in {@link joins} only.
 *
 * @since 0.1.0
 * @category metrics
 */
export const runs = Metric.counter("strata_action_runs_total", {
  description: "Runs of actions by where their outcome came from",
  incremental: true
})

/**
 * Callers that waited for the run of another.
 *
 * @since 0.1.0
 * @category metrics
 */
export const joins = Metric.counter("strata_action_joins_total", {
  description: "Callers of actions that waited for the run of another",
  incremental: true
})

/**
 * Lookups that gave nothing, by `reason`: the tag of the `MissReason`.
 *
 * @since 0.1.0
 * @category metrics
 */
export const misses = Metric.counter("strata_action_misses_total", {
  description: "Lookups for actions that gave nothing, by reason",
  incremental: true
})

/**
 * How long bodies ran, in milliseconds, those that failed too.
 *
 * @since 0.1.0
 * @category metrics
 */
export const bodyDuration = Metric.histogram("strata_action_body_duration_ms", {
  description: "How long the bodies of actions ran, in milliseconds",
  boundaries: [1, 5, 10, 50, 100, 500, 1000, 5000, 30_000, 60_000, 300_000, 3_600_000]
})

// ---------------------------------------------------------------------------------------------------------------------
// recording
// ---------------------------------------------------------------------------------------------------------------------

/** @internal */
export const decided = (action: string, decision: Decision): Effect.Effect<void> =>
  Effect.andThen(
    Metric.update(Metric.withAttributes(runs, { action, decision }), 1),
    Effect.annotateCurrentSpan("decision", decision)
  )

/** @internal */
export const joined = (action: string): Effect.Effect<void> =>
  Effect.andThen(
    Metric.update(Metric.withAttributes(joins, { action }), 1),
    Effect.annotateCurrentSpan("decision", "joined")
  )

/** @internal */
export const missed = (action: string, reason: string): Effect.Effect<void> =>
  Effect.andThen(
    Metric.update(Metric.withAttributes(misses, { action, reason }), 1),
    Effect.annotateCurrentSpan("miss", reason)
  )

/** @internal */
export const bodyRan = (action: string, millis: number): Effect.Effect<void> =>
  Metric.update(Metric.withAttributes(bodyDuration, { action }), millis)
