/**
 * What a client reports about its commits.
 *
 * @since 0.1.0
 */
import type * as Context from "effect/Context"
import * as Metric from "effect/Metric"

/**
 * How many transactions shared a COMMIT.
 *
 * @since 0.1.0
 * @category metrics
 */
export const groupSize = Metric.histogram("strata_commit_group_size", {
  description: "Transactions that shared a COMMIT",
  boundaries: [1, 2, 4, 8, 16, 32, 64, 128, 256]
})

/**
 * How long COMMIT took, in milliseconds.
 *
 * @since 0.1.0
 * @category metrics
 */
export const commitDuration = Metric.histogram("strata_commit_duration_ms", {
  description: "Duration of COMMIT in milliseconds",
  boundaries: [0.1, 0.25, 0.5, 1, 2, 5, 10, 25, 50, 100, 250, 1000]
})

/** @internal */
export const committed = (members: number, millis: number, context: Context.Context<never>): void => {
  groupSize.updateUnsafe(members, context)
  commitDuration.updateUnsafe(millis, context)
}
