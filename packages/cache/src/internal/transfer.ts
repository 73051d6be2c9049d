import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { Blob } from "../CacheEntry.ts"

/** Bounds what is on its way. */
export interface Transfer {
  readonly concurrency: number
  /** How long a blob may take beyond the deadline of any call, in milliseconds. */
  readonly extraMs: (blob: Blob) => number
  /** Runs the transfer of a blob, one at a time for each blob, and of all no more than the bounds. */
  readonly run: (blob: Blob) => <A, E, R>(transfer: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

export interface Bounds {
  readonly concurrency?: number | undefined
  readonly maxBytes?: number | undefined
  readonly slowest?: number | undefined
}

export const make = (bounds: Bounds): Effect.Effect<Transfer> =>
  Effect.sync(() => {
    const most = inUnits(bounds.maxBytes ?? 64 * 1024 * 1024)
    const slowest = bounds.slowest ?? 256 * 1024
    const concurrency = bounds.concurrency ?? 4
    const slots = Semaphore.makeUnsafe(concurrency)
    const room = Semaphore.makeUnsafe(most)
    const once = makeOnce()
    return {
      concurrency,
      extraMs: ({ size }) => (size / slowest) * 1000,
      run: (blob) => (transfer) =>
        once(blob.digest, slots.withPermit(room.withPermits(Math.min(inUnits(blob.size), most))(transfer)))
    }
  })

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/** Permits stand for 4 KiB, at least one. */
const inUnits = (bytes: number): number => Math.max(Math.ceil(bytes / 4096), 1)

/** Runs what has the same name one after the other. */
const makeOnce = () => {
  const turns = new Map<string, { readonly turn: Semaphore.Semaphore; users: number }>()
  return <A, E, R>(name: string, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.acquireUseRelease(
      Effect.sync(() => {
        const entry = turns.get(name) ?? { turn: Semaphore.makeUnsafe(1), users: 0 }
        turns.set(name, entry)
        entry.users++
        return entry
      }),
      ({ turn }) => turn.withPermit(effect),
      (entry) =>
        Effect.sync(() => {
          entry.users--
          if (entry.users === 0) turns.delete(name)
        })
    )
}
