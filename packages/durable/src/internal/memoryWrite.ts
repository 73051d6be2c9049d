import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Semaphore from "effect/Semaphore"
import type { Observe } from "./observe.ts"
import { runUndo, withoutWrite, WriteTransaction } from "./writeTransaction.ts"

/** A write in memory, or one nested in it. */
export class MemoryWrite {
  readonly hooks: Array<Effect.Effect<void>> = []
  readonly undo: Array<() => void> = []
  /** Nested writes of one level run one after the other, or rolling one back would take the changes of its sibling. */
  readonly children = Semaphore.makeUnsafe(1)
  /** Whether its body has ended. What the body has forked may go on in its context. */
  ended = false
  /** That of the writer. */
  readonly turns: Semaphore.Semaphore
  private readonly parent: MemoryWrite | undefined

  constructor(turns: Semaphore.Semaphore, parent?: MemoryWrite) {
    this.turns = turns
    this.parent = parent
  }

  /** The innermost write that has not ended: this one, or one that it is nested in. */
  get standing(): MemoryWrite | undefined {
    return this.ended ? this.parent?.standing : this
  }

  readonly afterCommit = <R>(effect: Effect.Effect<void, never, R>): Effect.Effect<void, never, R> => {
    return Effect.contextWith((context: Context.Context<R>) => {
      const hook = Effect.provideContext(effect, withoutWrite(context))
      const { standing } = this
      if (standing === undefined) return hook
      standing.hooks.push(hook)
      return Effect.void
    })
  }

  readonly onRollback = (undo: () => void): Effect.Effect<void> => {
    return Effect.sync(() => void this.standing?.undo.push(undo))
  }
}

/** The write of this writer that is under way in a context. */
export const current = (context: Context.Context<never>, turns: Semaphore.Semaphore): MemoryWrite | undefined => {
  const write = Context.getOrUndefined(context, WriteTransaction)
  return write instanceof MemoryWrite && write.turns === turns ? write.standing : undefined
}

/** A write when it is its turn. */
export const outermost = <A, E, R>(
  turns: Semaphore.Semaphore,
  effect: Effect.Effect<A, E, R>,
  context: Context.Context<never>,
  observe: Observe
): Effect.Effect<A, E, Exclude<R, WriteTransaction>> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(restore(turns.take(1)), () => {
      const write = new MemoryWrite(turns)
      const held = observe(context)
      return Effect.flatMap(Effect.exit(restore(Effect.provideService(effect, WriteTransaction, write))), (exit) => {
        write.ended = true
        held()
        if (Exit.isFailure(exit)) {
          runUndo(write.undo)
          return Effect.andThen(turns.release(1), exit)
        }
        const hooks = Effect.forEach(write.hooks, runHook, { discard: true })
        return Effect.andThen(turns.release(1), Effect.andThen(hooks, exit))
      })
    })
  )

/** A write in a write: what it registered outlives its own end, as the outer one may still roll back. */
export const nestedIn = <A, E, R>(
  parent: MemoryWrite,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, Exclude<R, WriteTransaction>> =>
  parent.children.withPermit(
    Effect.suspend(() => {
      const write = new MemoryWrite(parent.turns, parent)
      return Effect.onExit(Effect.provideService(effect, WriteTransaction, write), (exit) =>
        Effect.sync(() => {
          write.ended = true
          if (Exit.isFailure(exit)) {
            runUndo(write.undo)
          } else {
            parent.undo.push(...write.undo)
            parent.hooks.push(...write.hooks)
          }
        })
      )
    })
  )

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const runHook = (hook: Effect.Effect<void>): Effect.Effect<void> =>
  Effect.ignoreCause(hook, { log: "Unhandled", message: "Unhandled error in an afterCommit callback" })
