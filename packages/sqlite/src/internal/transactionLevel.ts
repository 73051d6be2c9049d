import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as Semaphore from "effect/Semaphore"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { type TransactionObserver, transactionEnded } from "../TransactionObserver.ts"
import type { SqliteConnection } from "./connection.ts"

type TransactionService = SqlClient.SqlClient["transactionService"]

/** Counts what happens to levels, to know what came first. */
let now = 0

/** A transaction, or a savepoint in one, that this package opened itself instead of through `SqlClient.make`. */
export class Level {
  /**
   * What statements find in their context: the connection to use, and the depth of savepoints. It names its level, so
   * that taking it out of a context hides the level too.
   */
  readonly service: readonly [connection: SqliteConnection, depth: number]
  /** Callbacks to run after the outermost commit. */
  hooks: Array<Effect.Effect<void>> | undefined = undefined
  /** Savepoints of one level run one after the other, or rolling one back would take its sibling's changes. */
  children: Semaphore.Semaphore | undefined = undefined
  /** Whether its body has ended. What a body has forked may go on in its context, and then finds nothing to write in. */
  ended = false
  /** Whether what it stands in has ended or failed before its own body, and has taken back its savepoint. */
  cut = false
  /** Whether it can only fail, as it was cut off, or lost what it wrote: its body may go on, but writes nothing any more. */
  lost = false
  /** The savepoint in it that is open. */
  child: Level | undefined = undefined
  /** How many savepoints are open in it or wait for their turn, if not fewer. */
  nested = 0
  private leftOver: Level | undefined = undefined
  private readonly begun = ++now
  /** When its body last ran a statement while a savepoint in it was open. */
  private touched = 0
  private readonly observer: TransactionObserver<unknown> | undefined
  private readonly parent: Level | undefined

  constructor(
    connection: SqliteConnection,
    depth: number,
    observer: TransactionObserver<unknown> | undefined,
    parent?: Level
  ) {
    this.observer = observer
    this.parent = parent
    const service: [SqliteConnection, number] & { level?: Level } = [connection, depth]
    service.level = this
    this.service = service
  }

  /** The innermost level that has not ended: this one, or one that it stood in. */
  get standing(): Level | undefined {
    return this.ended ? this.parent?.standing : this
  }

  /** The innermost level around it that has not ended. */
  get outer(): Level | undefined {
    return this.parent?.standing
  }

  /** What its body, which begins now, finds in its context, but for the level. */
  begin<R>(context: Context.Context<R>): Context.Context<R> {
    // Whoever brings an observer takes the services that it adds out of the requirements.
    return this.observer === undefined ? context : (this.observer.begin(context) as Context.Context<R>)
  }

  /**
   * Its body is over: to be called before anything that this sets off, such as a COMMIT, or the turn of another one. When
   * it has succeeded, `undoLeftOver` follows.
   */
  end(): void {
    this.ended = true
    this.observer?.end()
    if (this.nested === 0) return
    this.leftOver = this.child
    this.child?.cutOff()
    this.child = undefined
    this.letAllGo()
  }

  /** Takes back a savepoint whose body has not ended: half of it would be committed, and then be told that it failed. */
  undoLeftOver(): Exit.Exit<never, SqlError> | undefined {
    if (this.leftOver !== undefined) {
      const failed = undo(this.service[0], savepointNamed(`strata_${this.service[1] + 1}`))
      if (failed !== undefined) return failed
      this.leftOver.takeAlong()
    }
    return this.lost ? refused : undefined
  }

  /** Its body runs a statement, which the rollback of a savepoint that is open takes back too. */
  touch(): void {
    if (this.child !== undefined) this.touched = ++now
  }

  /** To be called when its savepoint was taken back: who ran statements around it meanwhile has lost them, and fails. */
  takeAlong(): void {
    let lost: Level | undefined
    for (let level = this.parent; level !== undefined; level = level.parent) {
      if (level.touched > this.begun) lost = level
    }
    lost?.lose()
  }

  private cutOff(): void {
    this.cut = true
    this.lose()
  }

  private lose(): void {
    this.lost = true
    this.child?.cutOff()
    this.child = undefined
    this.observer?.undone()
    this.letAllGo()
  }

  /** Those that wait for a turn have nothing to wait for any more. They go on once this call has ended. */
  private letAllGo(): void {
    if (this.children !== undefined) Effect.runFork(this.children.resize(Number.MAX_SAFE_INTEGER))
  }

  /** What its body wrote is part of its parent. */
  joined(): void {
    this.observer?.joined()
    const { parent } = this
    if (this.hooks === undefined || parent === undefined) return
    parent.hooks ??= []
    parent.hooks.push(...this.hooks)
  }

  /** What its body wrote is undone. */
  undone(): void {
    this.observer?.undone()
  }
}

/** The level in context, unless there is none, or all have ended, or it is one of `SqlClient.make`. */
export const current = (context: Context.Context<never>, service: TransactionService): Level | undefined =>
  named(Context.getOrUndefined(context, service))?.standing

/** Where a fiber writes: in the transaction in its context, outside of any, or nowhere, as that can only fail. */
export const place = (
  context: Context.Context<never>,
  service: TransactionService
): "inside" | "outside" | "nowhere" => {
  const value = Context.getOrUndefined(context, service)
  if (value === undefined) return "outside"
  const level = named(value)
  if (level === undefined) return "inside"
  const { standing } = level
  if (standing === undefined) return "outside"
  return standing.lost ? "nowhere" : "inside"
}

/** As `place`, for a statement that is about to run there. */
export const placeOfStatement: typeof place = (context, service) => {
  current(context, service)?.touch()
  return place(context, service)
}

/** Whether a transaction that a context has goes on; one of `SqlClient.make` is taken to. */
export const isOpen = (transaction: Context.Service.Shape<TransactionService>): boolean => {
  const level = named(transaction)
  if (level === undefined) return true
  let standing = level.standing
  while (standing?.lost === true) standing = standing.outer
  return standing !== undefined
}

/** Whether a transaction that a context has is over, however those go on that it is nested in. */
export const hasEnded = (transaction: Context.Service.Shape<TransactionService>): boolean =>
  named(transaction)?.ended === true

/** What becomes of all that a level tries that was cut off. */
export const refused = Exit.fail(transactionEnded)

/** A context without the levels that have ended, for what looks for a transaction in it by itself. */
export const withoutEnded =
  (service: TransactionService) =>
  <R>(context: Context.Context<R>): Context.Context<R> => {
    const level = named(Context.getOrUndefined(context, service))
    if (level === undefined || !level.ended) return context
    const { standing } = level
    return standing === undefined
      ? (Context.omit(service)(context) as Context.Context<R>)
      : (Context.add(context, service, standing.service) as Context.Context<R>)
  }

/**
 * Makes statements of `effect` run in `level`, and its invalidations wait for the commit. Whoever runs this calls
 * `level.end` as soon as it has ended, also by an interruption, which a region that cannot be interrupted makes sure of.
 */
export const provide = <A, E, R>(
  service: TransactionService,
  level: Level,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.updateContext(effect, (context: Context.Context<R>) => {
    const inside = Context.add(level.begin(context), service, level.service)
    const reactivity = Context.getOrUndefined(context, Reactivity.Reactivity)
    return reactivity === undefined
      ? inside
      : Context.add(inside, Reactivity.Reactivity, deferInvalidations(service, level, reactivity))
  })

/**
 * Runs `effect` once after the outermost commit, with the services in scope now but for the transaction; at once when
 * that has ended.
 */
export const afterCommit = <R>(
  service: TransactionService,
  level: Level,
  effect: Effect.Effect<void, never, R>
): Effect.Effect<void, never, R> =>
  Effect.contextWith((context: Context.Context<R>) => {
    const hook = Effect.provideContext(effect, Context.omit(service)(context) as Context.Context<R>)
    const { standing } = level
    if (standing === undefined) return hook
    if (standing.lost) return Effect.void
    standing.hooks ??= []
    standing.hooks.push(hook)
    return Effect.void
  })

/** Runs the callbacks of a level that is committed, and gives `value`. */
export const runHooks = <A>(level: Level, value: A): Effect.Effect<A> =>
  level.hooks === undefined
    ? Effect.succeed(value)
    : Effect.as(Effect.forEach(level.hooks, runHook, { discard: true }), value)

/** The statements of a savepoint. */
export interface Savepoint {
  readonly open: string
  readonly release: string
  readonly rollback: string
}

export const savepointNamed = (name: string): Savepoint => ({
  open: `SAVEPOINT ${name}`,
  release: `RELEASE ${name}`,
  rollback: `ROLLBACK TO ${name}`
})

/** Takes back what was written since `savepoint`, and the savepoint itself. */
export const undo = (connection: SqliteConnection, savepoint: Savepoint): Exit.Exit<never, SqlError> | undefined => {
  // Some errors, such as a full disk, have ended the whole transaction already.
  if (!connection.isTransaction()) return undefined
  return connection.unsafe.control(savepoint.rollback) ?? connection.unsafe.control(savepoint.release)
}

/**
 * A savepoint in `parent`, whose callbacks follow those of the parent once it is released; `orElse` if the parent has ended
 * before it is its turn.
 */
export const nested = <A, E, R>(
  service: TransactionService,
  parent: Level,
  effect: Effect.Effect<A, E, R>,
  orElse: Effect.Effect<A, E | SqlError, R>,
  observe?: () => TransactionObserver<unknown>
): Effect.Effect<A, E | SqlError, R> =>
  Effect.uninterruptibleMask((restore): Effect.Effect<A, E | SqlError, R> => {
    if (parent.lost) return refused
    parent.children ??= Semaphore.makeUnsafe(1)
    parent.nested++
    const { children } = parent
    return Effect.flatMap(restore(children.take(1)), () =>
      parent.ended || parent.lost
        ? Effect.andThen(children.release(1), restore(orElse))
        : Effect.ensuring(savepointIn(service, parent, restore, effect, observe), children.release(1))
    )
  })

const savepointIn = <A, E, R>(
  service: TransactionService,
  parent: Level,
  restore: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>,
  effect: Effect.Effect<A, E, R>,
  observe: (() => TransactionObserver<unknown>) | undefined
): Effect.Effect<A, E | SqlError, R> => {
  const [connection, depth] = parent.service
  const savepoint = savepointNamed(`strata_${depth + 1}`)
  const failed = connection.unsafe.control(savepoint.open)
  if (failed !== undefined) {
    parent.nested--
    return failed
  }
  const level = new Level(connection, depth + 1, observe?.(), parent)
  parent.child = level
  const end = () => {
    level.end()
    if (level.cut) return
    parent.child = undefined
    parent.nested--
  }
  return Effect.matchCauseEffect(restore(provide(service, level, effect)), {
    onFailure: (cause): Effect.Effect<never, E | SqlError> => {
      end()
      if (level.cut) return Cause.hasInterrupts(cause) ? Effect.failCause(cause) : refused
      level.undone()
      const failed = undo(connection, savepoint)
      level.takeAlong()
      return failed ?? Effect.failCause(cause)
    },
    onSuccess: (value): Effect.Effect<A, SqlError> => {
      end()
      if (level.cut) return refused
      const failed = level.undoLeftOver() ?? connection.unsafe.control(savepoint.release)
      if (failed !== undefined) {
        level.undone()
        const stuck = undo(connection, savepoint)
        level.takeAlong()
        return stuck ?? failed
      }
      level.joined()
      return Effect.succeed(value)
    }
  })
}

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const named = (value: Context.Service.Shape<TransactionService> | undefined): Level | undefined =>
  value !== undefined && "level" in value && value.level instanceof Level ? value.level : undefined

const runHook = (hook: Effect.Effect<void>): Effect.Effect<void> =>
  Effect.ignoreCause(hook, { log: "Unhandled", message: "Unhandled error in an afterCommit callback" })

const deferInvalidations = (
  service: TransactionService,
  level: Level,
  reactivity: Reactivity.Reactivity
): Reactivity.Reactivity => {
  const invalidate: typeof reactivity.invalidate = (keys) =>
    afterCommit(
      service,
      level,
      Effect.sync(() => reactivity.invalidateUnsafe(keys))
    )
  return { ...reactivity, invalidate, mutation: (keys, effect) => Effect.tap(effect, invalidate(keys)) }
}
