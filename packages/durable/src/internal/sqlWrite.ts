import { transactionEnded, type TransactionObserver } from "@strata/sqlite/TransactionObserver"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Observe } from "./observe.ts"
import * as TransactionConnection from "./transactionConnection.ts"
import { runUndo, stateOf, undoAtOnce, withoutWrite, type WriteState, WriteTransaction } from "./writeTransaction.ts"

type TransactionService = SqlClient.SqlClient["transactionService"]

/** What a write over a `SqlClient` provides to its body, for as long as its transaction or savepoint is open. */
export class SqlWrite implements TransactionObserver<WriteTransaction> {
  private readonly sql: SqlClient.SqlClient
  private readonly observe: Observe | undefined
  private held: (() => void) | undefined = undefined
  private undo: Array<() => void> | undefined = undefined
  /** That in which the write was asked for. */
  readonly context: Context.Context<never>
  begun = false
  /** Whether its body has ended. What the body has forked may go on in its context. */
  ended = false
  /** Whether it was rolled back before its body has ended, which may go on, but writes nothing any more. */
  lost = false
  /** Whether what it wrote is part of the write that it is nested in. */
  hasJoined = false

  constructor(sql: SqlClient.SqlClient, context: Context.Context<never>, observe?: Observe) {
    this.sql = sql
    this.context = context
    this.observe = observe
  }

  begin<R>(context: Context.Context<R>): Context.Context<R | WriteTransaction> {
    this.begun = true
    this.held = this.observe?.(this.context)
    return Context.add(context, WriteTransaction, this)
  }

  end(): void {
    this.ended = true
    this.held?.()
  }

  undone(): void {
    this.lose()
    const { undo } = this
    this.undo = undefined
    if (undo !== undefined) runUndo(undo)
  }

  joined(): void {
    this.hasJoined = true
    if (this.undo === undefined) return
    const outer = Context.getOrUndefined(standing(this.context), WriteTransaction)
    if (outer instanceof SqlWrite) outer.add(() => this.undone())
    else if (outer !== undefined) Effect.runSync(outer.onRollback(() => this.undone()))
  }

  /** What it wrote is committed, whatever comes: an interruption may come together with the COMMIT. */
  committed(): void {
    this.undo = undefined
  }

  /** It is rolled back, or is going to be. */
  lose(): void {
    this.lost ||= this.begun && !this.ended
  }

  readonly afterCommit = <R>(effect: Effect.Effect<void, never, R>): Effect.Effect<void, never, R> =>
    Effect.suspend(() => {
      if (!this.ended) return this.lost ? Effect.void : this.hook(effect)
      const outer = Context.getOrUndefined(standing(this.context), WriteTransaction)
      const hook = outer === undefined ? this.hook(effect) : outer.afterCommit(effect)
      return Effect.updateContext(hook, outOfEnded(this.sql.transactionService))
    })

  readonly onRollback = (undo: () => void): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (this.ended) return onRollbackIn(standing(this.context), undo)
      if (this.lost) return undoAtOnce(undo)
      this.add(undo)
      return Effect.void
    })

  readonly stateUnsafe = (): WriteState => stateOf(this, this.context)

  private add(undo: () => void): void {
    this.undo ??= []
    this.undo.push(undo)
  }

  private hook<R>(effect: Effect.Effect<void, never, R>): Effect.Effect<void, never, R> {
    return this.sql.afterCommit(Effect.updateContext(effect, withoutWrite<R>))
  }
}

/**
 * A write in a write; it is `orElse` if the outer one has ended before it could begin. What it registered outlives its own
 * end, as the outer one may still roll back.
 */
export const nestedIn = <A, E, R>(
  parent: WriteTransaction["Service"] | undefined,
  write: SqlWrite,
  savepoint: Effect.Effect<A, E, R>,
  orElse: Effect.Effect<A, E, R>
): Effect.Effect<A, E | SqlError, R> =>
  Effect.catchCause(savepoint, (cause): Effect.Effect<A, E | SqlError, R> => {
    if (Cause.hasInterrupts(cause) || !(write.lost || isRefused(cause))) return Effect.failCause(cause)
    return !write.begun && parent instanceof SqlWrite && parent.ended ? orElse : Exit.fail(transactionEnded)
  })

/** Whether the write in context has ended: a fiber that was forked in a write may outlive it. */
export const hasEnded = (context: Context.Context<never>): boolean => endedIn(context) !== undefined

/** A context as if the writes in it that have ended had never been: outside of all, or in one that they were nested in. */
export const outOfEnded =
  (transaction: TransactionService) =>
  <R>(context: Context.Context<R>): Context.Context<R> => {
    const outer = standing(context)
    if (outer === context) return context
    const own = Context.getOrUndefined(context, transaction)
    // One that was begun since, by who has outlived the writes, is not theirs.
    if (own !== undefined && !TransactionConnection.hasEnded(own)) {
      const kept = Context.omit(WriteTransaction)(context) as Context.Context<R>
      return Context.merge(kept, Context.pick(WriteTransaction)(outer)) as Context.Context<R>
    }
    const kept = Context.omit(WriteTransaction, transaction)(context) as Context.Context<R>
    return Context.merge(kept, Context.pick(WriteTransaction, transaction)(outer)) as Context.Context<R>
  }

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const isRefused = (cause: Cause.Cause<unknown>): boolean =>
  cause.reasons.some((reason) =>
    Cause.isFailReason(reason)
      ? reason.error === transactionEnded
      : Cause.isDieReason(reason) && reason.defect === transactionEnded
  )

const endedIn = (context: Context.Context<never>): SqlWrite | undefined => {
  const write = Context.getOrUndefined(context, WriteTransaction)
  return write instanceof SqlWrite && write.ended ? write : undefined
}

/** The context in which the outermost of the ended writes was asked for; that itself if there is none. */
const standing = (context: Context.Context<never>): Context.Context<never> => {
  let outer = context
  for (let ended = endedIn(outer); ended !== undefined; ended = endedIn(outer)) outer = ended.context
  return outer
}

/** Where no write is under way, nothing is to roll back. */
const onRollbackIn = (context: Context.Context<never>, undo: () => void): Effect.Effect<void> =>
  Context.getOrUndefined(context, WriteTransaction)?.onRollback(undo) ?? Effect.void
