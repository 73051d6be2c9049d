/**
 * What one bounded piece of a follower's work came to. Schedulers go by it: it says whether anything moved and whether
 * there is more, not how far some cursor got.
 *
 * @since 0.1.0
 */
/**
 * The counts of a tick.
 *
 * - `scanned`: dirty paths looked at.
 * - `processed`: paths whose current content was put into the index.
 * - `noop`: paths removed from the index, and paths with nothing to do: missing, or unchanged since they were indexed.
 * - `failed`: paths that failed, to be retried or set aside.
 * - `advanced`: whether at least one path is done with, never true for failures alone.
 * - `hasMore`: whether ready paths may remain.
 *
 * @since 0.1.0
 * @category models
 */
export interface Tick {
  readonly scanned: number
  readonly processed: number
  readonly noop: number
  readonly failed: number
  readonly advanced: boolean
  readonly hasMore: boolean
}

/**
 * A tick that looked at nothing.
 *
 * @since 0.1.0
 * @category constructors
 */
export const empty: Tick = { scanned: 0, processed: 0, noop: 0, failed: 0, advanced: false, hasMore: false }

/**
 * Two ticks taken together; there is more when the later one says so.
 *
 * @since 0.1.0
 * @category combinators
 */
export const add = (self: Tick, that: Tick): Tick => ({
  scanned: self.scanned + that.scanned,
  processed: self.processed + that.processed,
  noop: self.noop + that.noop,
  failed: self.failed + that.failed,
  advanced: self.advanced || that.advanced,
  hasMore: that.hasMore
})
