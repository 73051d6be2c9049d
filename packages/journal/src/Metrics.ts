/**
 * What the journal reports about itself.
 *
 * @since 0.1.0
 */
import type * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"

/**
 * Entries appended, those of writes that were rolled back among them.
 *
 * @since 0.1.0
 * @category metrics
 */
export const appended = Metric.counter("strata_journal_appended_total", {
  description: "Journal entries appended",
  incremental: true
})

/**
 * Entries deleted by compaction.
 *
 * @since 0.1.0
 * @category metrics
 */
export const compacted = Metric.counter("strata_journal_compacted_total", {
  description: "Journal entries deleted by compaction",
  incremental: true
})

/**
 * Entries archived by rewinds.
 *
 * @since 0.1.0
 * @category metrics
 */
export const rewound = Metric.counter("strata_journal_rewound_total", {
  description: "Journal entries archived by rewinds",
  incremental: true
})

/** @internal */
export const appendedEntries = (count: number): Effect.Effect<void> => Metric.update(appended, count)

/** @internal */
export const compactedEntries = (count: number): Effect.Effect<void> => Metric.update(compacted, count)

/** @internal */
export const rewoundEntries = (count: number): Effect.Effect<void> => Metric.update(rewound, count)
