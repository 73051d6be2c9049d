/**
 * One who looks on at a transaction. What is kept in memory beside a database
 * has to begin, end and be undone together with the transaction, at once and
 * however it ends, an interruption included.
 *
 * @since 0.1.0
 */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { SqlError, UnknownError } from "effect/sql/SqlError"

/**
 * What is told of one run of a transaction's effect, and may give it the services `S`. Its methods are called
 * synchronously and must not throw.
 *
 * @since 0.1.0
 * @category models
 */
export interface TransactionObserver<out S = never> {
  /** The transaction has begun, and its effect is to run: in the context that this gives. */
  readonly begin: <R>(context: Context.Context<R>) => Context.Context<R | S>
  /** The effect has ended. Nothing that this sets off has happened yet, such as a COMMIT or the turn of another one. */
  readonly end: () => void
  /**
   * What the effect wrote is undone: it has failed, or its COMMIT has. Called before `end` when the transaction was rolled
   * back before (see {@link transactionEnded}): the effect goes on, but writes nothing any more. May be called again.
   */
  readonly undone: () => void
  /** What the effect wrote has become part of the transaction that this one is nested in, whatever comes: it may be undone with that. */
  readonly joined: () => void
}

const lost = "The transaction was rolled back before its end, with the one that it is nested in, or one nested in it"

/**
 * What a transaction fails with that was rolled back before its effect has ended: the one that it is nested in has ended
 * first, or one that is nested in it was rolled back, together with what this one wrote beside it. Nothing of it is
 * committed, and what its effect still tries fails with this too.
 *
 * @since 0.1.0
 * @category errors
 */
export const transactionEnded: SqlError = new SqlError({
  reason: new UnknownError({ cause: new Error(lost), message: lost })
})

/**
 * Runs `effect` in a transaction within another one, as `withTransaction` nests them, that `observer` looks on at.
 *
 * @since 0.1.0
 * @category combinators
 */
export const observed = <A, E, R, S>(
  effect: Effect.Effect<A, E, R>,
  observer: TransactionObserver<S>,
  withTransaction: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E | SqlError, R>
): Effect.Effect<A, E | SqlError, Exclude<R, S>> => {
  const body = Effect.updateContext(
    effect,
    // `Exclude<R, S> | S` has all of `R`, which the compiler does not see.
    (context: Context.Context<Exclude<R, S>>) => observer.begin(context) as Context.Context<R>
  )
  const observedBody = Effect.onExitPrimitive(body, (exit) => {
    observer.end()
    if (Exit.isFailure(exit)) observer.undone()
    return undefined
  })
  return Effect.onExitPrimitive(withTransaction(observedBody), (exit) => {
    if (Exit.isFailure(exit)) observer.undone()
    else observer.joined()
    return undefined
  })
}
