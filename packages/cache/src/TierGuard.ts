/**
 * Keeps a shared tier that errs, hangs or refuses from being felt: every call has a deadline, a bound on how many there
 * are at a time, and a circuit breaker. While the breaker is open nothing is asked of the tier; when its time is up one
 * call in the background finds out whether the tier is back, and no caller waits for that.
 *
 * @since 0.1.0
 */
import { insideTransaction } from "@strata/durable/DurableWriter"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Metric from "effect/Metric"
import * as CircuitBreaker from "effect/persistence/CircuitBreaker"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { BreakerOpen, CacheError, InsideWrite, outlook, TimedOut } from "./CacheError.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The bounds of a tier.
 *
 * @since 0.1.0
 * @category models
 */
export interface TierGuardOptions {
  /** How long a call may take in all, with the time that it waits for others. Default 1 minute. */
  readonly deadline?: Duration.Input | undefined
  /** How many calls there are at a time; further ones wait. Default 32. */
  readonly concurrency?: number | undefined
  /** After how many failures in a row the tier is left alone. One refusal of access is enough. Default 5. */
  readonly failures?: number | undefined
  /** For how long it is left alone, doubled each time in a row that it is not back then. Default 2 seconds. */
  readonly openBase?: Duration.Input | undefined
  /** The longest such time. Default 1 minute. */
  readonly openCap?: Duration.Input | undefined
}

/**
 * Whether a tier is asked (`Closed`), left alone (`Open`, for `retryAfterMs` more), or being tried (`HalfOpen`).
 *
 * @since 0.1.0
 * @category models
 */
export type State =
  | { readonly _tag: "Closed" }
  | { readonly _tag: "Open"; readonly retryAfterMs: number }
  | { readonly _tag: "HalfOpen" }

/**
 * The guard of one tier.
 *
 * @since 0.1.0
 * @category models
 */
export interface TierGuard {
  readonly tier: string
  /** How long a call may take unless it says otherwise, in milliseconds. */
  readonly deadlineMs: number
  /**
   * Runs a call of the tier within its bounds. Fails with `BreakerOpen`, without a call, while the tier is left alone,
   * with `InsideWrite`, without a call, inside of a write, and with `TimedOut` after the deadline.
   */
  readonly run: <A, R>(
    call: Effect.Effect<A, CacheError, R>,
    options?: { readonly deadline?: Duration.Input | undefined }
  ) => Effect.Effect<A, CacheError, R>
  readonly state: Effect.Effect<State>
}

// ---------------------------------------------------------------------------------------------------------------------
// metrics
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Calls of shared tiers, by `tier` and `outcome`: `ok`, or the tag of the reason.
 *
 * @since 0.1.0
 * @category metrics
 */
export const calls = Metric.counter("strata_cache_tier_calls_total", {
  description: "Calls of shared tiers, by outcome",
  incremental: true
})

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A guard. `probe` is the call by which it finds out, in the background, whether the tier is back: a cheap one, that any
 * answer of the tier makes succeed.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = Effect.fnUntraced(function* (
  tier: string,
  probe: Effect.Effect<unknown, CacheError>,
  options: TierGuardOptions = {}
): Effect.fn.Return<TierGuard, never, Scope.Scope> {
  const circuit = yield* makeCircuit(tier, options)
  const room = yield* Semaphore.make(options.concurrency ?? 32)
  const deadlineMs = toMillis(options.deadline ?? "1 minute")
  const guarded = <A, R>(call: Effect.Effect<A, CacheError, R>, within: number) =>
    circuit.execute(inTime(tier, call, within)).pipe(Effect.onExit((exit) => count(tier, exit)))
  const awaitReturn = yield* makeProber(circuit.state, guarded(probe, deadlineMs))
  return {
    tier,
    deadlineMs,
    run: (call, given) => {
      const within = given?.deadline === undefined ? deadlineMs : toMillis(given.deadline)
      const runOrLeave = (remaining: number) =>
        Effect.flatMap(circuit.state, (state) =>
          state._tag === "Closed"
            ? Effect.tapError(guarded(call, remaining), () => awaitReturn)
            : Effect.fail(leftAlone(tier, state))
        )
      return outsideOfWrites(tier, inTurn(tier, room, within, runOrLeave))
    },
    state: circuit.state
  }
})

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const toMillis = (duration: Duration.Input): number => Duration.toMillis(Duration.fromInputUnsafe(duration))

interface Circuit {
  readonly execute: <A, R>(call: Effect.Effect<A, CacheError, R>) => Effect.Effect<A, CacheError, R>
  readonly state: Effect.Effect<State>
}

/** Two breakers over one circuit: the second one opens it at the first failure, for a tier that refuses access. */
const makeCircuit = Effect.fnUntraced(function* (tier: string, options: TierGuardOptions) {
  const cap = Duration.fromInputUnsafe(options.openCap ?? "1 minute")
  const openDuration = Schedule.exponential(options.openBase ?? "2 seconds").pipe(
    Schedule.modifyDelay(({ duration }) => Effect.succeed(Duration.min(duration, cap)))
  )
  const breaker = yield* CircuitBreaker.make({
    tripPolicy: CircuitBreaker.consecutive(options.failures ?? 5),
    openDuration
  })
  const strict = yield* CircuitBreaker.make({ tripPolicy: CircuitBreaker.consecutive(1), openDuration })
  const trip = Effect.ignore(strict.execute(Effect.fail("refused"), { key: tier }))
  const circuit: Circuit = {
    execute: (call) =>
      breaker.execute(call, { key: tier, classify }).pipe(
        Effect.catchTag("CircuitBreakerError", () => Effect.flatMap(state, (now) => Effect.fail(leftAlone(tier, now)))),
        Effect.tapError((error) => (error.reason._tag === "Forbidden" ? trip : Effect.void))
      ),
    state: Effect.suspend(() => state)
  }
  // The store is in memory, and cannot fail.
  const state = Effect.orElseSucceed(Effect.map(breaker.state(tier), toState), (): State => ({ _tag: "Closed" }))
  return circuit
}, Effect.provide(CircuitBreaker.layerStoreMemory()))

const toState = (state: CircuitBreaker.State): State =>
  state._tag === "Open" ? { _tag: "Open", retryAfterMs: Duration.toMillis(state.retryAfter) } : { _tag: state._tag }

/** A tier that says that something cannot be done is well. */
const classify = (exit: Exit.Exit<unknown, CacheError>): CircuitBreaker.Outcome => {
  if (Exit.isSuccess(exit)) return CircuitBreaker.success
  const error = Exit.findErrorOption(exit)
  if (error._tag === "None") return CircuitBreaker.failure()
  switch (error.value.reason._tag) {
    case "Forbidden":
    case "Redirected":
    case "Unexpected":
    case "StorageFailed":
      return CircuitBreaker.failure()
    default:
      return outlook(error.value) === "away" ? CircuitBreaker.failure() : CircuitBreaker.success
  }
}

/** A call that was let through just before may be trying already. */
const lookAgainMs = 50

/**
 * Makes an effect that does nothing while the tier is asked, and else sees to it that one fiber tries it, each time that
 * it was left alone for long enough, until it is back.
 */
const makeProber = (state: Effect.Effect<State>, probe: Effect.Effect<unknown, CacheError>) =>
  Effect.map(Effect.scope, (scope): Effect.Effect<void> => {
    let isTrying = false
    const tryUntilBack = Effect.gen(function* () {
      let now = yield* state
      while (now._tag !== "Closed") {
        yield* Effect.sleep(now._tag === "Open" ? now.retryAfterMs : lookAgainMs)
        yield* Effect.ignore(probe)
        now = yield* state
      }
    })
    return Effect.flatMap(state, (now) => {
      if (now._tag === "Closed" || isTrying) return Effect.void
      isTrying = true
      return tryUntilBack.pipe(
        Effect.ensuring(Effect.sync(() => void (isTrying = false))),
        Effect.forkIn(scope, { startImmediately: true }),
        Effect.asVoid
      )
    })
  })

const outsideOfWrites = <A, R>(tier: string, call: Effect.Effect<A, CacheError, R>): Effect.Effect<A, CacheError, R> =>
  Effect.flatMap(insideTransaction, (isInside) =>
    isInside ? Effect.fail(new CacheError({ reason: new InsideWrite({ tier }) })) : call
  )

/**
 * Runs a call when there is room, with the time that is left then. One that waits until its time is up says nothing about
 * the tier: those that it waits for do.
 */
const inTurn = <A, R>(
  tier: string,
  room: Semaphore.Semaphore,
  within: number,
  call: (remaining: number) => Effect.Effect<A, CacheError, R>
): Effect.Effect<A, CacheError, R> =>
  Effect.suspend(() => {
    let waits = true
    const patience = Effect.andThen(
      Effect.sleep(within),
      Effect.suspend(() => (waits ? timedOut(tier, within) : Effect.never))
    )
    const turn = Effect.flatMap(Clock.currentTimeMillis, (start) =>
      room.withPermit(
        Effect.flatMap(Clock.currentTimeMillis, (now) => {
          waits = false
          return call(within - (now - start))
        })
      )
    )
    return Effect.raceFirst(turn, patience)
  })

const inTime = <A, R>(tier: string, call: Effect.Effect<A, CacheError, R>, within: number) =>
  Effect.timeoutOrElse(call, { duration: within, orElse: () => timedOut(tier, within) })

const timedOut = (tier: string, afterMs: number): Effect.Effect<never, CacheError> =>
  Effect.fail(new CacheError({ reason: new TimedOut({ tier, phase: "total", afterMs }) }))

const leftAlone = (tier: string, state: State): CacheError =>
  new CacheError({ reason: new BreakerOpen({ tier, retryAfterMs: state._tag === "Open" ? state.retryAfterMs : 0 }) })

const count = (tier: string, exit: Exit.Exit<unknown, CacheError>): Effect.Effect<void> => {
  const error = Exit.findErrorOption(exit)
  const failed = error._tag === "Some" ? error.value.reason._tag : "interrupted"
  return Metric.update(Metric.withAttributes(calls, { tier, outcome: Exit.isSuccess(exit) ? "ok" : failed }), 1)
}
