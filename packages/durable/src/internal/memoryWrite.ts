import { transactionEnded } from "@strata/sqlite/TransactionObserver"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Semaphore from "effect/Semaphore"
import type { SqlError } from "effect/sql/SqlError"
import type { Observe } from "./observe.ts"
import { runUndo, stateOf, undoAtOnce, withoutWrite, type WriteState, WriteTransaction } from "./writeTransaction.ts"

/** How to take back one change, and when it was made. */
interface Undo {
  readonly made: number
  readonly undo: () => void
}

/** Counts changes and writes, to know what came first. */
let now = 0

/** A write in memory, or one nested in it. */
export class MemoryWrite {
  readonly hooks: Array<Effect.Effect<void>> = []
  private readonly undo: Array<Undo> = []
  /** Nested writes of one level run one after the other, or rolling one back would take the changes of its sibling. */
  children: Semaphore.Semaphore | undefined = undefined
  /** The nested write that is open. */
  child: MemoryWrite | undefined = undefined
  /** Whether its body has ended. What the body has forked may go on in its context. */
  ended = false
  /** Whether it was rolled back before its body has ended, which may go on, but changes nothing any more. */
  lost = false
  /** That of the writer. */
  readonly turns: Semaphore.Semaphore
  /** That in which the write was asked for. */
  private readonly context: Context.Context<never>
  private readonly parent: MemoryWrite | undefined
  private readonly begun = ++now

  constructor(turns: Semaphore.Semaphore, context: Context.Context<never>, parent?: MemoryWrite) {
    this.turns = turns
    this.context = context
    this.parent = parent
  }

  /** The innermost write that has not ended: this one, or one that it is nested in. */
  get standing(): MemoryWrite | undefined {
    return this.ended ? this.parent?.standing : this
  }

  /** Its body is over. A nested write whose body is not is rolled back: half of it is not to be committed. */
  end(): void {
    this.ended = true
    this.child?.rollBack()
    this.letAllGo()
  }

  /**
   * Takes back what it and the writes that are open in it have changed; so does who made changes around it meanwhile, as
   * on a database, where a savepoint is rolled back with all that came after it.
   */
  rollBack(): void {
    const outermost = this.parent?.outermostChanged(this.begun)
    const undo: Array<Undo> = []
    this.lose(undo)
    outermost?.lose(undo)
    runUndo(undo.toSorted((a, b) => a.made - b.made).map((change) => change.undo))
  }

  private outermostChanged(since: number): MemoryWrite | undefined {
    const last = this.undo.at(-1)
    return this.parent?.outermostChanged(since) ?? (last !== undefined && last.made > since ? this : undefined)
  }

  private lose(undo: Array<Undo>): void {
    this.lost = true
    undo.push(...this.undo.splice(0))
    this.child?.lose(undo)
    this.leave()
    this.letAllGo()
  }

  /** It is no longer open. */
  leave(): void {
    if (this.parent?.child === this) this.parent.child = undefined
  }

  /** Leaves what it registered to the write that it is nested in. */
  handOver(parent: MemoryWrite): void {
    parent.undo.push(...this.undo)
    parent.undo.sort((a, b) => a.made - b.made)
    parent.hooks.push(...this.hooks)
  }

  /** Those that wait for a turn have nothing to wait for any more. */
  private letAllGo(): void {
    if (this.children !== undefined) Effect.runFork(this.children.resize(Number.MAX_SAFE_INTEGER))
  }

  readonly afterCommit = <R>(effect: Effect.Effect<void, never, R>): Effect.Effect<void, never, R> => {
    return Effect.contextWith((context: Context.Context<R>) => {
      const hook = Effect.provideContext(effect, withoutWrite(context))
      const { standing } = this
      if (standing === undefined) return hook
      if (!standing.lost) standing.hooks.push(hook)
      return Effect.void
    })
  }

  readonly onRollback = (undo: () => void): Effect.Effect<void> => {
    return Effect.suspend(() => {
      const { standing } = this
      if (standing?.lost === true) return undoAtOnce(undo)
      standing?.undo.push({ made: ++now, undo })
      return Effect.void
    })
  }

  readonly stateUnsafe = (): WriteState => stateOf(this, this.context)
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
): Effect.Effect<A, E | SqlError, Exclude<R, WriteTransaction>> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(restore(turns.take(1)), () => {
      const write = new MemoryWrite(turns, context)
      const held = observe(context)
      return Effect.flatMap(Effect.exit(restore(Effect.provideService(effect, WriteTransaction, write))), (exit) => {
        write.end()
        held()
        if (Exit.isFailure(exit) || write.lost) {
          write.rollBack()
          return Effect.andThen(turns.release(1), (): Exit.Exit<A, E | SqlError> =>
            Exit.isFailure(exit) ? exit : refused
          )
        }
        const hooks = Effect.forEach(write.hooks, runHook, { discard: true })
        return Effect.andThen(turns.release(1), Effect.andThen(hooks, exit))
      })
    })
  )

/**
 * A write in a write, when it is its turn; `orElse` if the outer one has ended by then. What it registered outlives its
 * own end, as the outer one may still roll back.
 */
export const nestedIn = <A, E, R>(
  parent: MemoryWrite,
  context: Context.Context<never>,
  effect: Effect.Effect<A, E, R>,
  orElse: Effect.Effect<A, E | SqlError, Exclude<R, WriteTransaction>>
): Effect.Effect<A, E | SqlError, Exclude<R, WriteTransaction>> =>
  Effect.uninterruptibleMask((restore) => {
    parent.children ??= Semaphore.makeUnsafe(1)
    const { children } = parent
    return Effect.flatMap(restore(children.take(1)), () => {
      if (parent.ended || parent.lost) {
        return Effect.andThen(children.release(1), parent.ended ? restore(orElse) : refused)
      }
      const write = new MemoryWrite(parent.turns, context, parent)
      parent.child = write
      const body = restore(Effect.provideService(effect, WriteTransaction, write))
      return Effect.flatMap(Effect.exit(body), (exit) => Effect.andThen(children.release(1), end(parent, write, exit)))
    })
  })

const end = <A, E>(parent: MemoryWrite, write: MemoryWrite, exit: Exit.Exit<A, E>): Exit.Exit<A, E | SqlError> => {
  write.end()
  write.leave()
  if (write.lost) return Exit.isFailure(exit) && Cause.hasInterrupts(exit.cause) ? exit : refused
  if (Exit.isFailure(exit)) write.rollBack()
  else write.handOver(parent)
  return exit
}

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const refused = Exit.fail(transactionEnded)

const runHook = (hook: Effect.Effect<void>): Effect.Effect<void> =>
  Effect.ignoreCause(hook, { log: "Unhandled", message: "Unhandled error in an afterCommit callback" })
