/**
 * Runs followers. Of a follower's scopes with ready paths the one that was served longest ago is drained next, so that
 * neither a busy scope nor a failing one keeps the others waiting; when nothing is ready the follower sleeps until its
 * next path becomes ready or somebody records a change.
 *
 * @since 0.1.0
 */
import { ChangeSignal } from "@strata/dirty-queue/ChangeSignal"
import type { DirtyQueueError } from "@strata/dirty-queue/DirtyQueue"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { SqlError } from "effect/sql/SqlError"
import type { Follower } from "./Follower.ts"
import { storeRetry } from "./internal/storeRetry.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * How followers are run.
 *
 * @since 0.1.0
 * @category models
 */
export interface FollowerSchedulerOptions {
  /** How many followers work at a time. Default 2. */
  readonly concurrency?: number | undefined
  /** How often an idle follower looks at the queue without having been told to. Default 5 seconds. */
  readonly backstop?: Duration.Input | undefined
  /** First delay after the store failed, doubled while it goes on. Default 200 ms. */
  readonly retryBase?: Duration.Input | undefined
  /** The longest such delay. Default 30 seconds. */
  readonly retryCap?: Duration.Input | undefined
}

// ---------------------------------------------------------------------------------------------------------------------
// service
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Keeps followers at work.
 *
 * @since 0.1.0
 * @category services
 */
export class FollowerScheduler extends Context.Service<
  FollowerScheduler,
  {
    /**
     * Runs a follower until the scope closes, which interrupts its tick: claimed paths are given back. A store that
     * fails is logged and tried again with growing delays.
     */
    readonly run: (follower: Follower) => Effect.Effect<void, never, Scope.Scope>
  }
>()("@strata/follower/FollowerScheduler") {}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A scheduler woken by the `ChangeSignal` in context.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = Effect.fnUntraced(function* (
  options: FollowerSchedulerOptions = {}
): Effect.fn.Return<FollowerScheduler["Service"], never, ChangeSignal> {
  const signal = yield* ChangeSignal
  const turns = yield* Semaphore.make(options.concurrency ?? 2)
  const backstop = Duration.toMillis(Duration.fromInputUnsafe(options.backstop ?? "5 seconds"))
  const retry = storeRetry(options)
  return FollowerScheduler.of({
    run: (follower) => {
      const turn = serve(follower, turns, signal, backstop)
      return turn.pipe(
        Effect.tapError((error) => Effect.logError("A follower's store failed", error)),
        Effect.retry(retry),
        Effect.forever,
        Effect.annotateLogs("follower", follower.name),
        Effect.forkScoped,
        Effect.asVoid
      )
    }
  })
})

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The scheduler as a service, for apps that add followers as they go.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options?: FollowerSchedulerOptions): Layer.Layer<FollowerScheduler, never, ChangeSignal> =>
  Layer.effect(FollowerScheduler, make(options))

/**
 * Runs a follower for the life of the layer.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerFollower = <E, R>(
  follower: Effect.Effect<Follower, E, R>
): Layer.Layer<never, E, Exclude<R, Scope.Scope> | FollowerScheduler> =>
  Layer.effectDiscard(
    Effect.flatMap(follower, (follower) => FollowerScheduler.use((scheduler) => scheduler.run(follower)))
  )

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/** How long a follower sleeps whose clock is ahead of the store's, in milliseconds. */
const disagreement = 100

/** One turn of a follower: a tick for the scope that waited longest, or sleep until there may be something to do. */
const serve = (
  follower: Follower,
  turns: Semaphore.Semaphore,
  signal: ChangeSignal["Service"],
  backstop: number
): Effect.Effect<void, SqlError | DirtyQueueError> =>
  Effect.gen(function* () {
    // Taken before the look, or a change between the look and the sleep would be slept through.
    const seen = yield* signal.count
    const paused = (yield* follower.pausedUntil) - (yield* Clock.currentTimeMillis)
    if (paused > 0) {
      return yield* Effect.sleep(paused)
    }
    const [scope] = yield* follower.queue.readyScopes({ follower: follower.name, limit: 1 })
    if (scope !== undefined) {
      return yield* Effect.asVoid(turns.withPermit(follower.drain(scope)))
    }
    const ready = yield* follower.queue.nextReadyAt({ follower: follower.name })
    const now = yield* Clock.currentTimeMillis
    const wait = Option.match(ready, {
      onNone: () => backstop,
      // The store has just said that nothing is ready. Where this machine's clock thinks otherwise, the store's counts.
      onSome: (time) => Math.min(time > now ? time - now : disagreement, backstop)
    })
    return yield* Effect.asVoid(Effect.timeoutOption(signal.awaitAfter(seen), wait))
  })
