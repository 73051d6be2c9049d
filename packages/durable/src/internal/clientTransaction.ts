import { transactionEnded } from "@strata/sqlite/TransactionObserver"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { SqlWrite } from "./sqlWrite.ts"
import * as TransactionConnection from "./transactionConnection.ts"
import type { WriteTransaction } from "./writeTransaction.ts"

/** Runs the body of a write in a transaction, or savepoint, of a client that knows nothing of writes. */
export const run = <A, E, R>(
  sql: SqlClient.SqlClient,
  effect: Effect.Effect<A, E, R>,
  write: SqlWrite,
  withTransaction: SqlClient.SqlClient["withTransaction"]
): Effect.Effect<A, E | SqlError, Exclude<R, WriteTransaction>> =>
  Effect.withFiber((fiber) => {
    const around = TransactionConnection.own(Context.getOrUndefined(fiber.context, sql.transactionService))
    const isLate = () => around?.isOver === true
    const transaction = Effect.onExitPrimitive(withTransaction(bodyOf(sql, effect, write, isLate)), (exit) => {
      // An interruption may come when the savepoint has been released.
      if (Exit.isFailure(exit) && !write.hasJoined) write.undone()
      return undefined
    })
    return around === undefined ? transaction : around.inTurn(transaction)
  })

const bodyOf = <A, E, R>(
  sql: SqlClient.SqlClient,
  effect: Effect.Effect<A, E, R>,
  write: SqlWrite,
  isLate: () => boolean
): Effect.Effect<A, E | SqlError, Exclude<R, WriteTransaction>> =>
  Effect.suspend(() => {
    // The outer one may have ended while the savepoint was opened.
    if (isLate()) return Exit.fail(transactionEnded)
    let connection: TransactionConnection.TransactionConnection | undefined
    const kept = sql.afterCommit(Effect.sync(() => write.committed()))
    const whole: Effect.Effect<A, E, R> = Effect.flatMap(kept, () => effect)
    const body = Effect.updateContext(whole, (context: Context.Context<Exclude<R, WriteTransaction>>) => {
      connection = TransactionConnection.TransactionConnection.enter(sql, context, write)
      // `Exclude<R, WriteTransaction> | WriteTransaction` has all of `R`, which the compiler does not see.
      return write.begin(context) as Context.Context<R>
    })
    return Effect.onExitPrimitive(body, (exit) => {
      write.end()
      const left = connection?.end()
      if (Exit.isSuccess(exit)) return left
      write.undone()
      return left === undefined ? undefined : Effect.ignore(left)
    })
  })
