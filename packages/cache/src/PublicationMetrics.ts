/**
 * What publication reports about itself.
 *
 * @since 0.1.0
 */
import type * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import type { Refusal } from "./Refusal.ts"

/**
 * Entries that were offered to a shared tier, by `tier` and `outcome`: `published`, or the kind of the refusal.
 *
 * @since 0.1.0
 * @category metrics
 */
export const publications = Metric.counter("strata_cache_publications_total", {
  description: "Entries offered to a shared tier, by outcome",
  incremental: true
})

/** @internal */
export const count = (tier: string, refusal: Option.Option<Refusal>): Effect.Effect<void> =>
  Metric.update(
    Metric.withAttributes(publications, { tier, outcome: Option.isSome(refusal) ? refusal.value.kind : "published" }),
    1
  )
