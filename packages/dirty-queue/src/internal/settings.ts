import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import type { DirtyQueueOptions } from "../DirtyQueue.ts"

/** The options with their defaults, in whole milliseconds and thousandths. */
export interface Settings {
  readonly lease: number
  readonly maxAttempts: number
  readonly retryBase: number
  readonly retryFactor: number
  readonly retryCap: number
  readonly retryJitter: number
  readonly minRetryInterval: number
  readonly backfillPermille: number
}

export const make = (options: DirtyQueueOptions): Settings => ({
  lease: millis(options.lease ?? "30 seconds"),
  maxAttempts: Math.max(options.maxAttempts ?? 8, 1),
  retryBase: millis(options.retryBase ?? "1 second"),
  retryFactor: Math.max(options.retryFactor ?? 2, 1),
  retryCap: millis(options.retryCap ?? "5 minutes"),
  retryJitter: between(options.retryJitter ?? 0.2, 0, 1),
  minRetryInterval: millis(options.minRetryInterval ?? "500 millis"),
  backfillPermille: Math.round(between(options.backfillShare ?? 0.25, 0, 1) * 1000)
})

export const millis = (input: Duration.Input): number =>
  between(Math.round(Duration.toMillis(Duration.fromInputUnsafe(input))), 0, longest)

/** The length of a lease; one that ends as it begins would be claimed twice in one breath. */
export const leaseMillis = (settings: Settings, input: Duration.Input | undefined): number =>
  Math.max(input === undefined ? settings.lease : millis(input), 1)

/**
 * The delay after the given number of attempts: exponential up to the cap, and then shortened by chance, so that paths
 * which failed together are not attempted together, and no delay exceeds the cap.
 */
export const retryDelay = (settings: Settings, attempts: number): Effect.Effect<number> =>
  Effect.map(Random.next, (random) => {
    const delay = settings.retryBase * settings.retryFactor ** Math.max(attempts - 1, 0)
    return Math.round(Math.min(delay, settings.retryCap) * (1 - settings.retryJitter * random))
  })

/** A hundred years: stores take no infinity. */
const longest = 100 * 365 * 24 * 60 * 60 * 1000

const between = (value: number, low: number, high: number): number => Math.min(Math.max(value, low), high)
