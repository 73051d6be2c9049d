import type { ClockKey, StoredClock } from "../ClockStorage.ts"
import type { State } from "../DeferredClockFold.ts"
import type { DeferredKey, Stamps } from "../DeferredStorage.ts"

/** The clocks of a run, and the stamps of its completions, as a state has them. */
export const of = (
  executionId: string,
  { clocks, deferreds }: State
): {
  readonly clocks: ReadonlyArray<StoredClock>
  readonly stamps: ReadonlyArray<DeferredKey & Stamps>
} => ({
  clocks: Array.from(clocks, ([name, clock]) => ({ executionId, name, ...clock })),
  stamps: Array.from(deferreds, ([name, { completedAt, consumedAt }]) => ({
    executionId,
    name,
    completedAt,
    consumedAt
  }))
})

/** The keys of those of the names that a state does not have. */
export const without = (
  executionId: string,
  names: ReadonlySet<string>,
  folded: ReadonlyMap<string, unknown>
): ReadonlyArray<ClockKey> =>
  Array.from(names)
    .filter((name) => !folded.has(name))
    .map((name) => ({ executionId, name }))
