import type { ChangeSignal } from "@strata/dirty-queue/ChangeSignal"
import type { DirtyQueue, DirtyQueueError } from "@strata/dirty-queue/DirtyQueue"
import type { FollowerName, Scope } from "@strata/dirty-queue/Path"
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Option from "effect/Option"
import type * as EffectScope from "effect/Scope"
import type * as Semaphore from "effect/Semaphore"
import type { SqlError } from "effect/sql/SqlError"
import type { Follower } from "../Follower.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/** A follower while it serves a scope in this process. The latch is open when the scope may have ready paths. */
export interface Stay {
  readonly follower: Follower
  readonly wake: Latch.Latch
}

export type Stays = Map<Scope, Stay>

// ---------------------------------------------------------------------------------------------------------------------
// one scope
// ---------------------------------------------------------------------------------------------------------------------

/** Enters a follower among those that are here, for the life of the scope. */
export const begin = (stays: Stays, scope: Scope, follower: Follower): Effect.Effect<Stay, never, EffectScope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const stay = { follower, wake: Latch.makeUnsafe() }
      stays.set(scope, stay)
      return stay
    }),
    () => Effect.sync(() => stays.delete(scope))
  )

/**
 * A tick, and then sleep until there may be something to do. Readiness is the store's to tell, whose clock need not be
 * this machine's: a wrong one only makes the sleep end early, or last until {@link wakeReady} ends it.
 */
export const serve = Effect.fnUntraced(function* (
  { follower, wake }: Stay,
  scope: Scope,
  turns: Semaphore.Semaphore
): Effect.fn.Return<void, SqlError | DirtyQueueError> {
  const paused = (yield* follower.pausedUntil) - (yield* Clock.currentTimeMillis)
  if (paused > 0) {
    return yield* Effect.sleep(paused)
  }
  // Closed before the tick, or a change at its end would be slept through.
  yield* wake.close
  const tick = yield* turns.withPermit(follower.drain(scope))
  if (tick.hasMore) return
  const ready = yield* follower.queue.nextReadyAt({ follower: follower.name, scope })
  if (Option.isNone(ready)) {
    return yield* wake.await
  }
  const shortest = tick.scanned === 0 ? 1000 : 1
  const wait = Math.max(ready.value - (yield* Clock.currentTimeMillis), shortest)
  return yield* Effect.asVoid(Effect.timeoutOption(wake.await, wait))
})

// ---------------------------------------------------------------------------------------------------------------------
// all scopes that are here
// ---------------------------------------------------------------------------------------------------------------------

/** However many commits there are in a second, the queue is asked once in so many milliseconds. */
const breath = 20

/** More scopes than there are. */
const all = 2 ** 31 - 1

/**
 * Asks which scopes have ready paths, wakes those of them that are here, and waits for the next notification. One
 * question for all scopes, so that a commit costs the same however many followers are here.
 */
export const wakeReady = Effect.fnUntraced(function* (
  stays: Stays,
  signal: ChangeSignal["Service"],
  backstop: Duration.Input
): Effect.fn.Return<void, SqlError | DirtyQueueError> {
  const seen = yield* signal.count
  const queues = new Map<FollowerName, DirtyQueue["Service"]>()
  for (const { follower } of stays.values()) queues.set(follower.name, follower.queue)
  for (const [name, queue] of queues) {
    // Those of other runners are among them, so a limit could hide those that are here.
    const ready = yield* queue.readyScopes({ follower: name, limit: all })
    for (const scope of ready) {
      const stay = stays.get(scope)
      if (stay?.follower.name === name) yield* stay.wake.open
    }
  }
  yield* Effect.sleep(breath)
  yield* Effect.timeoutOption(signal.awaitAfter(seen), backstop)
})
