import * as Context from "effect/Context"
import { WriteTransaction } from "../WriteTransaction.ts"

/** What waits for the commit is no longer inside of the write. */
export const withoutWrite = <R>(context: Context.Context<R>): Context.Context<R> =>
  Context.omit(WriteTransaction)(context) as Context.Context<R>

/** Latest first. */
export const runUndo = (undo: ReadonlyArray<() => void>): void => {
  for (let i = undo.length - 1; i >= 0; i--) {
    undo[i]!()
  }
}
