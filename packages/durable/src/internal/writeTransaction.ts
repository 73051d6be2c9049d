import { transactionEnded } from "@strata/sqlite/TransactionObserver"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"

/**
 * Where a write is that a context names.
 *
 * @since 0.1.0
 * @category models
 */
export type WriteState = "open" | "lost" | "ended"

/**
 * The write that is under way. Only `DurableWriter` provides it; an operation that needs it can run nowhere but inside of
 * a write.
 *
 * @since 0.1.0
 * @category services
 */
export class WriteTransaction extends Context.Service<
  WriteTransaction,
  {
    /**
     * Runs `effect` once after the outermost write has committed, in the order of registration and with the services
     * in scope here, but for the write itself, which has ended. Dropped when this write, or the nested write it stands
     * in, rolls back. The caller of the write waits for it and cannot be interrupted meanwhile, so fork what takes long.
     */
    readonly afterCommit: <R>(effect: Effect.Effect<void, never, R>) => Effect.Effect<void, never, R>
    /**
     * Calls `undo` if this write rolls back, latest registration first. For state in memory that has to agree with
     * what was stored. Where the write has been rolled back already, while its body goes on, `undo` is called at once,
     * and the body goes no further.
     */
    readonly onRollback: (undo: () => void) => Effect.Effect<void>
    /**
     * Where this write is, which a fiber that was forked in it may outlive; `DurableWriter.insideWrite` and
     * `insideTransaction` ask it.
     *
     * - `open`: it goes on, or one that it is nested in does.
     * - `lost`: its body goes on, but it has been rolled back, and all that is tried in it is refused.
     * - `ended`: the bodies have ended, so that the commit or rollback of the outermost one is under way or over.
     */
    readonly stateUnsafe: () => WriteState
  }
>()("@strata/durable/WriteTransaction") {}

/** What waits for the commit is no longer inside of the write. */
export const withoutWrite = <R>(context: Context.Context<R>): Context.Context<R> =>
  Context.omit(WriteTransaction)(context) as Context.Context<R>

/** That of the write in a context, which is as one that has ended where there is none. */
export const stateIn = (context: Context.Context<never>): WriteState =>
  Context.getOrUndefined(context, WriteTransaction)?.stateUnsafe() ?? "ended"

/** That of a write which was asked for in `context`. */
export const stateOf = (
  write: { readonly ended: boolean; readonly lost: boolean },
  context: Context.Context<never>
): WriteState => {
  if (!write.ended && !write.lost) return "open"
  const outer = stateIn(context)
  return outer === "ended" && !write.ended ? "lost" : outer
}

/** Latest first. */
export const runUndo = (undo: ReadonlyArray<() => void>): void => {
  for (let i = undo.length - 1; i >= 0; i--) {
    undo[i]!()
  }
}

/** Takes back a change that a write made, or is about to make, when all of it has been rolled back. */
export const undoAtOnce = (undo: () => void): Effect.Effect<never> =>
  Effect.suspend(() => {
    undo()
    return Effect.die(transactionEnded)
  })
