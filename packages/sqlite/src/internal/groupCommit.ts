import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import * as Metrics from "../Metrics.ts"
import type { SqliteConnection } from "./connection.ts"
import * as Level from "./transactionLevel.ts"

/** What transactions need of the client they belong to. */
export interface Options {
  readonly transactionService: SqlClient.SqlClient["transactionService"]
  /** Leases the connection for the life of the scope. */
  readonly lease: Effect.Effect<SqliteConnection, SqlError, Scope.Scope>
  /** Leaves the connection without a transaction after a COMMIT that failed. */
  readonly onCommitFailure: (connection: SqliteConnection) => Effect.Effect<void, SqlError>
  readonly maxMembers: number
  readonly maxMillis: number
}

export type Run = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E | SqlError, R>

type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/** Transactions that share one BEGIN and one COMMIT. */
interface Group {
  readonly connection: SqliteConnection
  readonly deadline: number
  members: number
  /** SQLite rolls the whole transaction back by itself after some errors, such as a full disk. */
  aborted: boolean
  /** Whether everything was committed; `false` when the group was aborted and its members have to run again. */
  readonly outcome: Deferred.Deferred<boolean, SqlError>
  /** Lets the leader commit. */
  close: () => void
}

/** A fiber's turn: in a group, or to lead one of its own. */
interface Turn {
  readonly group: Group | undefined
}

interface Waiter {
  turn: Turn | undefined
  resume: ((turn: Turn) => void) | undefined
}

/**
 * Runs transactions one after the other, and lets those that wait share a COMMIT.
 *
 * The fiber that finds nobody at work leads: it begins the transaction, runs its own body, lets the waiting fibers run
 * theirs in the order of their arrival, each in a savepoint, and commits when nobody waits or the bounds are reached. So
 * a lone transaction costs what a plain one does, and no time is spent on waiting for company. Bodies run in their own
 * fibers, with their own context, and can be interrupted; from the end of its body to the outcome of the COMMIT a fiber
 * cannot.
 */
export const make = (options: Options): Run => {
  const waiting: Array<Waiter> = []
  let busy = false
  /**
   * Whether others are likely to be about to ask for a transaction. They then get the chance to, by a yield: SQLite
   * answers synchronously, so a body may have run from start to end before any of them could line up. A lone writer,
   * for whom a yield is all cost, is found out by the first one that brought nobody.
   */
  let crowded = true

  /**
   * Gives the next waiting fiber its turn. It goes on in a microtask: resumed here, it could run to its own end, and so
   * give turns itself, before this call has returned.
   */
  const handOver = (group: Group | undefined): boolean => {
    const next = waiting.shift()
    if (next === undefined) return false
    const turn = { group }
    next.turn = turn
    queueMicrotask(() => next.resume?.(turn))
    return true
  }

  /** The next waiting fiber leads a new group. */
  const stepDown = (): void => {
    busy = handOver(undefined)
  }

  /** The next waiting fiber joins `group`, unless it is full, or late, or broken: then the leader commits. */
  const passOn = (group: Group): Effect.Effect<void> =>
    Effect.clockWith((clock) =>
      Effect.sync(() => {
        const open =
          !group.aborted && group.members < options.maxMembers && clock.currentTimeMillisUnsafe() < group.deadline
        if (!open || !handOver(group)) group.close()
      })
    )

  /** Gives up a place in the line, or a turn that came together with the interruption. */
  const leave = (waiter: Waiter): Effect.Effect<void> => {
    if (waiter.turn !== undefined) {
      return waiter.turn.group === undefined ? Effect.sync(stepDown) : passOn(waiter.turn.group)
    }
    return Effect.sync(() => void waiting.splice(waiting.indexOf(waiter), 1))
  }

  const run: Run = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.uninterruptibleMask((restore) =>
      Effect.suspend((): Effect.Effect<A, E | SqlError, R> => {
        if (!busy) {
          busy = true
          return lead(restore, effect)
        }
        crowded = true
        const waiter: Waiter = { turn: undefined, resume: undefined }
        waiting.push(waiter)
        return Effect.flatMap(Effect.exit(restore(awaitTurn(waiter))), (exit): Effect.Effect<A, E | SqlError, R> => {
          if (Exit.isFailure(exit)) return Effect.andThen(leave(waiter), Effect.failCause(exit.cause))
          return exit.value.group === undefined ? lead(restore, effect) : follow(exit.value.group, restore, effect)
        })
      })
    )

  const lead = <A, E, R>(restore: Restore, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | SqlError, R> =>
    Effect.suspend(() => {
      const scope = Scope.makeUnsafe()
      let group: Group | undefined
      let level: Level.Level | undefined
      const transaction = Effect.gen(function* () {
        const connection = yield* restore(Scope.provide(options.lease, scope))
        yield* connection.execute("BEGIN IMMEDIATE", [], undefined)
        level = Level.make(connection, 0)
        const exit = yield* Effect.exit(restore(Level.provide(options.transactionService, level, effect)))
        if (Exit.isFailure(exit)) {
          yield* rollback(connection)
          return exit
        }
        group = yield* openGroup(connection, options)
        yield* letOthersJoin(group)
        yield* commit(group)
        return exit
      })
      return Effect.exit(transaction).pipe(
        Effect.tap((exit) => Scope.close(scope, exit)),
        Effect.tap((exit) => Effect.sync(() => settle(group, exit))),
        Effect.flatMap((exit): Effect.Effect<A, E | SqlError, R> => {
          if (Exit.isFailure(exit)) return Effect.failCause(exit.cause)
          if (Exit.isFailure(exit.value)) return exit.value
          return group?.aborted === true
            ? restore(run(effect))
            : Effect.andThen(level === undefined ? Effect.void : Level.runHooks(level), exit.value)
        })
      )
    })

  const letOthersJoin = (group: Group): Effect.Effect<void> =>
    Effect.andThen(
      waiting.length === 0 && crowded ? Effect.yieldNow : Effect.void,
      Effect.suspend(() => {
        crowded = waiting.length > 0
        if (!crowded) return Effect.void
        const closed = Deferred.makeUnsafe<void>()
        group.close = () => Deferred.doneUnsafe(closed, Exit.void)
        return Effect.andThen(passOn(group), Deferred.await(closed))
      })
    )

  const commit = (group: Group): Effect.Effect<void, SqlError> =>
    group.aborted
      ? rollback(group.connection)
      : Effect.andThen(
          Metrics.observeCommit(
            group.members,
            Effect.tapError(group.connection.execute("COMMIT", [], undefined), () =>
              options.onCommitFailure(group.connection)
            )
          ),
          Effect.void
        )

  /** Tells the members what became of the group, and lets the next fiber lead. */
  const settle = (group: Group | undefined, exit: Exit.Exit<unknown, SqlError>): void => {
    stepDown()
    if (group === undefined || group.members === 1) return
    Deferred.doneUnsafe(group.outcome, Exit.isSuccess(exit) ? Exit.succeed(!group.aborted) : Exit.failCause(exit.cause))
  }

  const follow = <A, E, R>(
    group: Group,
    restore: Restore,
    effect: Effect.Effect<A, E, R>
  ): Effect.Effect<A, E | SqlError, R> => {
    const level = Level.make(group.connection, 1)
    group.members++
    return Level.savepoint(
      group.connection,
      "strata",
      restore(Level.provide(options.transactionService, level, effect))
    ).pipe(
      Effect.exit,
      Effect.tap(() => {
        group.aborted ||= !group.connection.isTransaction()
        return passOn(group)
      }),
      Effect.flatMap((exit): Effect.Effect<A, E | SqlError, R> => {
        if (Exit.isFailure(exit)) return exit
        return Effect.flatMap(Deferred.await(group.outcome), (committed): Effect.Effect<A, E | SqlError, R> =>
          committed ? Effect.andThen(Level.runHooks(level), exit) : restore(run(effect))
        )
      })
    )
  }

  return run
}

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const awaitTurn = (waiter: Waiter): Effect.Effect<Turn> =>
  Effect.callback((resume) => {
    if (waiter.turn !== undefined) return resume(Effect.succeed(waiter.turn))
    waiter.resume = (turn) => resume(Effect.succeed(turn))
  })

const openGroup = (connection: SqliteConnection, options: Options): Effect.Effect<Group> =>
  Effect.map(Clock.currentTimeMillis, (now) => ({
    connection,
    deadline: now + options.maxMillis,
    members: 1,
    aborted: !connection.isTransaction(),
    outcome: Deferred.makeUnsafe(),
    close: () => {}
  }))

/** Some errors have rolled back already. */
const rollback = (connection: SqliteConnection): Effect.Effect<void, SqlError> =>
  Effect.suspend(() =>
    connection.isTransaction() ? Effect.asVoid(connection.execute("ROLLBACK", [], undefined)) : Effect.void
  )
