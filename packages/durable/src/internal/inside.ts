import type * as Context from "effect/Context"
import * as TransactionConnection from "./transactionConnection.ts"
import { stateIn } from "./writeTransaction.ts"

/** Whether what a fiber with these services writes belongs to a write. */
export const isInsideWrite = (context: Context.Context<never>): boolean => stateIn(context) !== "ended"

/** Whether a fiber with these services is inside of a write, or of any other transaction of a `SqlClient`, that goes on. */
export const isInsideTransaction = (context: Context.Context<never>): boolean => {
  if (stateIn(context) === "open") return true
  for (const [key, transaction] of context.mapUnsafe) {
    if (key.startsWith(transactionPrefix) && TransactionConnection.isOpen(transaction)) return true
  }
  return false
}

/** Of the keys by which each `SqlClient` marks its transactions. */
const transactionPrefix = "effect/sql/SqlClient/TransactionConnection/"
