import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"

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
     * what was stored.
     */
    readonly onRollback: (undo: () => void) => Effect.Effect<void>
  }
>()("@strata/durable/WriteTransaction") {}

/** What waits for the commit is no longer inside of the write. */
export const withoutWrite = <R>(context: Context.Context<R>): Context.Context<R> =>
  Context.omit(WriteTransaction)(context) as Context.Context<R>

/** Latest first. */
export const runUndo = (undo: ReadonlyArray<() => void>): void => {
  for (let i = undo.length - 1; i >= 0; i--) {
    undo[i]!()
  }
}
