import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

/**
 * How long a body may still be waited for. The time starts anew when as much has moved as `idleMs` has to move at
 * `idleBytesPerSecond`, and not with every byte, so that a drip has no more time than silence. What moved fast before
 * gives no credit, and time in which nobody waits, as the content is being used, does not count.
 */
export interface Pace {
  /** Milliseconds. */
  readonly leftMs: () => number
  /** Waits, and counts the time. */
  readonly wait: (effect: Effect.Effect<void>) => Effect.Effect<void>
  readonly moved: (bytes: number) => void
}

export const make = (deadlines: { readonly idleMs: number; readonly idleBytesPerSecond: number }): Pace => {
  const { idleBytesPerSecond, idleMs } = deadlines
  const enough = (idleMs / 1000) * idleBytesPerSecond
  let waitedMs = 0
  let bytes = 0
  return {
    leftMs: () => Math.max(0, idleMs - waitedMs),
    wait: (effect) =>
      Clock.clockWith((clock) => {
        const since = clock.currentTimeMillisUnsafe()
        return Effect.ensuring(
          effect,
          Effect.sync(() => {
            waitedMs += clock.currentTimeMillisUnsafe() - since
          })
        )
      }),
    moved: (more) => {
      bytes += more
      if (bytes < enough) return
      bytes = 0
      waitedMs = 0
    }
  }
}
