import type { TransactionObserver } from "@strata/sqlite/TransactionObserver"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as SqlClient from "effect/sql/SqlClient"
import type { Observe } from "./observe.ts"
import { runUndo, withoutWrite, WriteTransaction } from "./writeTransaction.ts"

type TransactionService = SqlClient.SqlClient["transactionService"]

/** What a write over a `SqlClient` provides to its body, for as long as its transaction or savepoint is open. */
export class SqlWrite implements TransactionObserver<WriteTransaction> {
  private readonly sql: SqlClient.SqlClient
  private readonly observe: Observe | undefined
  private held: (() => void) | undefined = undefined
  private undo: Array<() => void> | undefined = undefined
  /** That in which the write was asked for. */
  readonly context: Context.Context<never>
  /** Whether its body has ended. What the body has forked may go on in its context. */
  ended = false

  constructor(sql: SqlClient.SqlClient, context: Context.Context<never>, observe?: Observe) {
    this.sql = sql
    this.context = context
    this.observe = observe
  }

  begin<R>(context: Context.Context<R>): Context.Context<R | WriteTransaction> {
    this.held = this.observe?.(this.context)
    return Context.add(context, WriteTransaction, this)
  }

  end(): void {
    this.ended = true
    this.held?.()
  }

  undone(): void {
    const { undo } = this
    this.undo = undefined
    if (undo !== undefined) runUndo(undo)
  }

  readonly afterCommit = <R>(effect: Effect.Effect<void, never, R>): Effect.Effect<void, never, R> =>
    Effect.suspend(() => {
      const hook = this.sql.afterCommit(Effect.updateContext(effect, withoutWrite<R>))
      return this.ended ? Effect.updateContext(hook, outOfEnded(this.sql.transactionService)) : hook
    })

  readonly onRollback = (undo: () => void): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (this.ended) return onRollbackIn(standing(this.context), undo)
      this.undo ??= []
      this.undo.push(undo)
      return Effect.void
    })

  /** Leaves what is to be undone to the write that this one stands in. */
  handOver(parent: WriteTransaction["Service"]): Effect.Effect<void> {
    return this.undo === undefined ? Effect.void : parent.onRollback(() => this.undone())
  }
}

/** A write in a write: what it registered outlives its own end, as the outer one may still roll back. */
export const nestedIn = <A, E, R>(
  parent: WriteTransaction["Service"] | undefined,
  write: SqlWrite,
  savepoint: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  parent === undefined
    ? savepoint
    : Effect.onExit(savepoint, (exit) => (Exit.isSuccess(exit) ? write.handOver(parent) : Effect.void))

/** Whether the write in context has ended: a fiber that was forked in a write may outlive it. */
export const hasEnded = (context: Context.Context<never>): boolean => endedIn(context) !== undefined

/** A context as if the writes in it that have ended had never been: outside of all, or in one that they were nested in. */
export const outOfEnded =
  (transaction: TransactionService) =>
  <R>(context: Context.Context<R>): Context.Context<R> => {
    const outer = standing(context)
    if (outer === context) return context
    const kept = Context.omit(WriteTransaction, transaction)(context) as Context.Context<R>
    return Context.merge(kept, Context.pick(WriteTransaction, transaction)(outer)) as Context.Context<R>
  }

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

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
