import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as Semaphore from "effect/Semaphore"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { SqliteConnection } from "./connection.ts"

/** A transaction, or a savepoint in one, that this package opened itself instead of through `SqlClient.make`. */
export interface Level {
  /** What statements find in their context: the connection to use, and the depth of savepoints. */
  readonly service: readonly [connection: SqliteConnection, depth: number]
  /** Callbacks to run after the outermost commit. */
  readonly hooks: Array<Effect.Effect<void>>
  /** Savepoints of one level run one after the other, or rolling one back would take its sibling's changes. */
  readonly children: Semaphore.Semaphore
}

type TransactionService = SqlClient.SqlClient["transactionService"]

/** By service value, so that taking the service out of a context hides the level too. */
const levels = new WeakMap<object, Level>()

export const make = (connection: SqliteConnection, depth: number): Level => {
  const level: Level = { service: [connection, depth], hooks: [], children: Semaphore.makeUnsafe(1) }
  levels.set(level.service, level)
  return level
}

/** The level in context, unless there is none or it is one of `SqlClient.make`. */
export const current = (context: Context.Context<never>, service: TransactionService): Level | undefined => {
  const value = Context.getOrUndefined(context, service)
  return value === undefined ? undefined : levels.get(value)
}

/** Makes statements of `effect` run in `level`, and its invalidations wait for the commit. */
export const provide = <A, E, R>(
  service: TransactionService,
  level: Level,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.updateContext(effect, (context: Context.Context<R>) => {
    const inside = Context.add(context, service, level.service)
    const reactivity = Context.getOrUndefined(context, Reactivity.Reactivity)
    return reactivity === undefined
      ? inside
      : Context.add(inside, Reactivity.Reactivity, deferInvalidations(service, level, reactivity))
  })

/** Runs `effect` once after the outermost commit, with the services in scope now but for the transaction. */
export const afterCommit = <R>(
  service: TransactionService,
  level: Level,
  effect: Effect.Effect<void, never, R>
): Effect.Effect<void, never, R> =>
  Effect.contextWith((context: Context.Context<R>) =>
    Effect.sync(() => {
      level.hooks.push(Effect.provideContext(effect, Context.omit(service)(context) as Context.Context<R>))
    })
  )

export const runHooks = (level: Level): Effect.Effect<void> =>
  level.hooks.length === 0 ? Effect.void : Effect.forEach(level.hooks, runHook, { discard: true })

/** Runs `body` between `SAVEPOINT` and `RELEASE`, and undoes what it wrote when it fails. To be run uninterruptibly. */
export const savepoint = <A, E, R>(
  connection: SqliteConnection,
  name: string,
  body: Effect.Effect<A, E, R>
): Effect.Effect<A, E | SqlError, R> =>
  Effect.flatMap(connection.execute(`SAVEPOINT ${name}`, [], undefined), () =>
    Effect.flatMap(Effect.exit(body), (exit) => {
      const release = connection.execute(`RELEASE ${name}`, [], undefined)
      if (Exit.isSuccess(exit)) return Effect.andThen(release, exit)
      // Some errors, such as a full disk, have ended the whole transaction already.
      if (!connection.isTransaction()) return exit
      return connection
        .execute(`ROLLBACK TO ${name}`, [], undefined)
        .pipe(Effect.andThen(release), Effect.andThen(exit))
    })
  )

/** A savepoint in `parent`, whose callbacks follow those of the parent once it is released. */
export const nested = <A, E, R>(
  service: TransactionService,
  parent: Level,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E | SqlError, R> =>
  Effect.uninterruptibleMask((restore) => {
    const [connection, depth] = parent.service
    const level = make(connection, depth + 1)
    return restore(parent.children.take(1)).pipe(
      Effect.andThen(savepoint(connection, `strata_${depth + 1}`, restore(provide(service, level, effect)))),
      Effect.tap(() => Effect.sync(() => void parent.hooks.push(...level.hooks))),
      Effect.ensuring(parent.children.release(1))
    )
  })

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

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
