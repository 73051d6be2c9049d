/**
 * Wakes what waits for changes. Whoever makes dirty rows ready notifies, after the commit; a follower with nothing to
 * do waits for the next notification. In one process only: {@link layerPoll} adds the commits of other processes.
 *
 * A waiter looks at the count first, then checks for work, then waits for the count to pass what it saw. So it cannot
 * sleep through a notification that arrives in between:
 *
 * ```ts
 * const seen = yield* signal.count
 * if (!(yield* hasWork)) {
 *   yield* Effect.race(signal.awaitAfter(seen), Effect.sleep("1 minute"))
 * }
 * ```
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"

// ---------------------------------------------------------------------------------------------------------------------
// service
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Notifications of this process, counted.
 *
 * @since 0.1.0
 * @category services
 */
export class ChangeSignal extends Context.Service<
  ChangeSignal,
  {
    /** Wakes all waiters. */
    readonly notify: Effect.Effect<void>
    /** How many notifications there were. */
    readonly count: Effect.Effect<number>
    /** Ends with the count as soon as it is greater than `seen`. */
    readonly awaitAfter: (seen: number) => Effect.Effect<number>
  }
>()("@strata/dirty-queue/ChangeSignal") {}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A signal within this process.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make: Effect.Effect<ChangeSignal["Service"]> = Effect.sync(() => {
  let count = 0
  let next = Deferred.makeUnsafe<number>()
  return ChangeSignal.of({
    notify: Effect.sync(() => {
      count++
      const woken = next
      next = Deferred.makeUnsafe<number>()
      Deferred.doneUnsafe(woken, Effect.succeed(count))
    }),
    count: Effect.sync(() => count),
    awaitAfter: (seen) => Effect.suspend(() => (count > seen ? Effect.succeed(count) : Deferred.await(next)))
  })
})

/**
 * A signal that also notifies whenever the number that `source` gives has changed, such as SQLite's data version, which
 * counts the commits of other connections. The source is read every `interval` (default 100 ms) for the life of the
 * scope. That it cannot be read is logged once, and what changed meanwhile is noticed when it can be read again.
 *
 * @since 0.1.0
 * @category constructors
 */
export const makePoll = Effect.fnUntraced(function* <E, R>(options: {
  readonly source: Effect.Effect<number, E, R>
  readonly interval?: Duration.Input | undefined
}): Effect.fn.Return<ChangeSignal["Service"], never, R | Scope.Scope> {
  const signal = yield* make
  let last: number | undefined
  let failing = false
  const look = Effect.matchCauseEffect(options.source, {
    onFailure: (cause) => {
      const known = failing
      failing = true
      return known ? Effect.void : Effect.logWarning("The source of changes cannot be read", cause)
    },
    onSuccess: (current) => {
      const changed = last !== undefined && current !== last
      last = current
      failing = false
      return changed ? signal.notify : Effect.void
    }
  })
  yield* look
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(options.interval ?? "100 millis"), look)))
  return signal
})

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A signal within this process.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<ChangeSignal> = Layer.effect(ChangeSignal, make)

/**
 * A signal that also follows a polled number; see {@link makePoll}.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerPoll = <E, R>(options: {
  readonly source: Effect.Effect<number, E, R>
  readonly interval?: Duration.Input | undefined
}): Layer.Layer<ChangeSignal, never, Exclude<R, Scope.Scope>> => Layer.effect(ChangeSignal, makePoll(options))
