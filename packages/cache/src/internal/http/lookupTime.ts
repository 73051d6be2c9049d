import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { CacheError, TimedOut } from "../../CacheError.ts"

/** The time of a lookup, whatever it has to ask for. */
export interface LookupLimits {
  /** Milliseconds, besides the time of the bytes that have arrived. */
  readonly lookupMs: number
  readonly minBytesPerSecond: number
}

/** Is told how many bytes of an answer have arrived. */
export type Received = (bytes: number) => void

/**
 * Runs a lookup within one deadline, which moves on with what arrives and with nothing else: many requests have no more
 * time than one, and a server that drips has hardly more than one that is silent.
 */
export const within = <A, E, R>(
  tier: string,
  { lookupMs, minBytesPerSecond }: LookupLimits,
  lookup: (received: Received) => Effect.Effect<A, E, R>
): Effect.Effect<A, E | CacheError, R> =>
  Clock.clockWith((clock) => {
    const startedAt = clock.currentTimeMillisUnsafe()
    let bytes = 0
    const deadline: Effect.Effect<never, CacheError> = Effect.suspend(() => {
      const afterMs = Math.ceil(lookupMs + (bytes / minBytesPerSecond) * 1000)
      const leftMs = startedAt + afterMs - clock.currentTimeMillisUnsafe()
      return leftMs > 0
        ? Effect.andThen(Effect.sleep(leftMs), deadline)
        : Effect.fail(new CacheError({ reason: new TimedOut({ tier, phase: "total", afterMs }) }))
    })
    const received: Received = (more) => {
      bytes += more
    }
    return Effect.raceFirst(lookup(received), deadline)
  })
