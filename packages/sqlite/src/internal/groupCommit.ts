import type * as Cause from "effect/Cause"
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import * as Metrics from "../Metrics.ts"
import type { TransactionObserver } from "../TransactionObserver.ts"
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

export type Run = <A, E, R>(effect: Effect.Effect<A, E, R>, observe?: Observe) => Effect.Effect<A, E | SqlError, R>

/** One that looks on at a run of the effect. */
type Observe = () => TransactionObserver<unknown>

type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/** Whether everything was committed; `false` when the group was aborted and its members have to run again. */
type Outcome = Exit.Exit<boolean, SqlError>

/** Transactions that share one BEGIN and one COMMIT. */
interface Group {
  readonly connection: SqliteConnection
  readonly clock: Clock.Clock
  readonly deadline: number
  members: number
  /** SQLite rolls the whole transaction back by itself after some errors, such as a full disk. */
  aborted: boolean
  /** The members, but for the leader, that wait to hear the outcome. */
  readonly listeners: Array<(outcome: Outcome) => void>
  /** Lets the leader commit, once it waits for that. */
  close: (() => void) | undefined
}

/** A fiber's turn: in a group, or without one to lead its own. */
interface Turn {
  readonly group: Group | undefined
}

interface Waiter {
  turn: Turn | undefined
  resume: ((turn: Turn) => void) | undefined
}

/** What a leader knows after its COMMIT. */
interface Led<A> {
  readonly value: A
  readonly level: Level.Level
  readonly group: Group
  readonly outcome: Outcome
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
   * How many transactions in a row had no company. SQLite answers synchronously, so a body may run from start to end
   * before any other fiber could line up: a leader has to yield to let them. For a lone writer a yield is all cost, so
   * after one that brought nobody only every eighth leader does, and in the long run one of 128: fewer than a p99 shows.
   */
  let alone = 0
  /** The group whose turn nobody has: whoever asks for a transaction takes it without lining up. */
  let idle: Group | undefined

  /** The next waiting fiber leads a new group. It goes on in a microtask: resumed here, it would run before this one ends. */
  const stepDown = (): void => {
    const next = waiting.shift()
    busy = next !== undefined
    if (next === undefined) return
    const turn = { group: undefined }
    next.turn = turn
    queueMicrotask(() => next.resume?.(turn))
  }

  /** Whether members are given their turns further down the stack, by a loop that goes on with the next one. */
  let passing = false
  let passedOn: Group | undefined

  /**
   * The next waiting fiber joins `group`, unless it is full, or late, or broken: then the leader commits. A fiber whose
   * body is synchronous has had its turn when it comes back, and left the next one to this loop: otherwise each member
   * would run on top of the one before.
   */
  const passOn = (group: Group): void => {
    passedOn = group
    if (passing) return
    passing = true
    while (passedOn !== undefined) {
      const current: Group = passedOn
      passedOn = undefined
      const next = waiting.length > 0 && isOpen(current, options) ? waiting.shift() : undefined
      if (next === undefined) {
        // What the leader does then is no turn: it may begin a group of its own.
        passing = false
        if (current.close === undefined) idle = current
        else current.close()
        return
      }
      const turn = { group: current }
      next.turn = turn
      apart(() => next.resume?.(turn))
    }
    passing = false
  }

  /** Gives up a place in the line, or a turn that came together with the interruption. */
  const leave = (waiter: Waiter): void => {
    if (waiter.turn === undefined) waiting.splice(waiting.indexOf(waiter), 1)
    else if (waiter.turn.group === undefined) stepDown()
    else passOn(waiter.turn.group)
  }

  const run: Run = <A, E, R>(effect: Effect.Effect<A, E, R>, observe?: Observe) =>
    Effect.uninterruptibleMask((restore): Effect.Effect<A, E | SqlError, R> => {
      if (!busy) {
        busy = true
        return lead(restore, effect, observe)
      }
      if (idle !== undefined && isOpen(idle, options)) {
        const group = idle
        idle = undefined
        return follow(group, restore, effect, observe)
      }
      alone = 0
      const waiter: Waiter = { turn: undefined, resume: undefined }
      waiting.push(waiter)
      return Effect.matchCauseEffect(restore(awaitTurn(waiter)), {
        onFailure: (cause) => {
          leave(waiter)
          return Effect.failCause(cause)
        },
        onSuccess: (turn): Effect.Effect<A, E | SqlError, R> =>
          turn.group === undefined ? lead(restore, effect, observe) : follow(turn.group, restore, effect, observe)
      })
    })

  const lead = <A, E, R>(
    restore: Restore,
    effect: Effect.Effect<A, E, R>,
    observe: Observe | undefined
  ): Effect.Effect<A, E | SqlError, R> => {
    const scope = Scope.makeUnsafe()
    const transaction = Effect.flatMap(restore(Scope.provide(options.lease, scope)), (connection) =>
      transact(connection, restore, effect, observe)
    )
    return Effect.matchCauseEffect(transaction, {
      onFailure: (cause) => Effect.andThen(Scope.close(scope, Exit.failCause(cause)), stepDownWith(cause)),
      onSuccess: (led) => Effect.andThen(Scope.close(scope, led.outcome), conclude(led, restore, effect, observe))
    })
  }

  /** The leader's own transaction, and those of its group. */
  const transact = <A, E, R>(
    connection: SqliteConnection,
    restore: Restore,
    effect: Effect.Effect<A, E, R>,
    observe: Observe | undefined
  ): Effect.Effect<Led<A>, E | SqlError, R> => {
    const begun = connection.unsafe.control("BEGIN IMMEDIATE")
    if (begun !== undefined) return begun
    const level = new Level.Level(connection, 0, observe?.())
    return Effect.matchCauseEffect(restore(Level.provide(options.transactionService, level, effect)), {
      onFailure: (cause) => {
        level.end()
        level.undone()
        return Effect.andThen(rollback(connection), Effect.failCause(cause))
      },
      onSuccess: (value): Effect.Effect<Led<A>, SqlError> => {
        level.end()
        const failed = level.undoLeftOver()
        if (failed !== undefined) {
          level.undone()
          return Effect.andThen(rollback(connection), failed)
        }
        return Effect.clockWith((clock) => {
          const group = openGroup(connection, clock, options)
          const closed = Effect.andThen(
            letOthersJoin(group),
            Effect.suspend(() => commit(group))
          )
          return Effect.map(Effect.exit(closed), (outcome): Led<A> => ({ value, level, group, outcome }))
        })
      }
    })
  }

  const rollback = (connection: SqliteConnection): Effect.Effect<void, SqlError> => {
    // Some errors, such as a full disk, have rolled back already.
    if (!connection.isTransaction()) return Effect.void
    return connection.unsafe.control("ROLLBACK") === undefined ? Effect.void : options.onCommitFailure(connection)
  }

  const letOthersJoin = (group: Group): Effect.Effect<void> => {
    // A body that went on after such an error: its own COMMIT fails, and there is nothing to join.
    if (!group.connection.isTransaction()) return Effect.void
    if (waiting.length > 0) return runOthers(group)
    const every = alone < 128 ? 8 : 128
    if (alone++ % every !== 0) return Effect.void
    idle = group
    return Effect.andThen(Effect.yieldNow, closed(group))
  }

  /** Waits for the end of the turn that somebody may have, and of those that follow. */
  const closed = (group: Group): Effect.Effect<void> =>
    Effect.callback((resume) => {
      if (group.members > 1 || waiting.length > 0) alone = 0
      if (idle === group) {
        idle = undefined
        resume(Effect.void)
      } else {
        group.close = () => apart(() => resume(Effect.void))
      }
    })

  const runOthers = (group: Group): Effect.Effect<void> =>
    Effect.callback((resume) => {
      group.close = () => apart(() => resume(Effect.void))
      passOn(group)
    })

  const commit = (group: Group): Effect.Effect<boolean, SqlError> => {
    if (group.aborted) return Effect.as(rollback(group.connection), false)
    return Effect.contextWith((context): Effect.Effect<boolean, SqlError> => {
      const start = group.clock.currentTimeMillisUnsafe()
      const failed = group.connection.unsafe.control("COMMIT")
      if (failed !== undefined) return Effect.andThen(options.onCommitFailure(group.connection), failed)
      Metrics.committed(group.members, group.clock.currentTimeMillisUnsafe() - start, context)
      return Exit.succeed(true)
    })
  }

  const stepDownWith = <E>(cause: Cause.Cause<E>): Effect.Effect<never, E> =>
    Effect.suspend(() => {
      stepDown()
      return Effect.failCause(cause)
    })

  /** Lets the next fiber lead, tells the members what became of the group, and ends the leader's own transaction. */
  const conclude = <A, E, R>(
    { group, level, outcome, value }: Led<A>,
    restore: Restore,
    effect: Effect.Effect<A, E, R>,
    observe: Observe | undefined
  ): Effect.Effect<A, E | SqlError, R> =>
    Effect.suspend((): Effect.Effect<A, E | SqlError, R> => {
      stepDown()
      for (const listener of group.listeners) apart(() => listener(outcome))
      return end(outcome, level, value, restore, effect, observe)
    })

  const follow = <A, E, R>(
    group: Group,
    restore: Restore,
    effect: Effect.Effect<A, E, R>,
    observe: Observe | undefined
  ): Effect.Effect<A, E | SqlError, R> => {
    const { connection } = group
    group.members++
    const refused = connection.unsafe.control(savepoint.open)
    if (refused !== undefined) {
      group.aborted ||= !connection.isTransaction()
      passOn(group)
      return refused
    }
    const level = new Level.Level(connection, 1, observe?.())
    return Effect.matchCauseEffect(restore(Level.provide(options.transactionService, level, effect)), {
      onFailure: (cause) => {
        level.end()
        undo(group, level)
        passOn(group)
        return Effect.failCause(cause)
      },
      onSuccess: (value): Effect.Effect<A, E | SqlError, R> => {
        level.end()
        const failed = level.undoLeftOver() ?? connection.unsafe.control(savepoint.release)
        if (failed !== undefined) {
          undo(group, level)
          passOn(group)
          return failed
        }
        // The leader may be ready to commit as soon as the turn ends, so the fiber listens first.
        return Effect.callback((resume) => {
          group.listeners.push((outcome) => resume(end(outcome, level, value, restore, effect, observe)))
          passOn(group)
        })
      }
    })
  }

  /** What cannot be undone alone is not committed with the others either. */
  const undo = (group: Group, level: Level.Level): void => {
    level.undone()
    const undone = Level.undo(group.connection, savepoint)
    group.aborted ||= undone !== undefined || !group.connection.isTransaction()
  }

  /** How a transaction whose body succeeded ends for its caller. */
  const end = <A, E, R>(
    outcome: Outcome,
    level: Level.Level,
    value: A,
    restore: Restore,
    effect: Effect.Effect<A, E, R>,
    observe: Observe | undefined
  ): Effect.Effect<A, E | SqlError, R> => {
    if (Exit.isSuccess(outcome) && outcome.value) return Level.runHooks(level, value)
    level.undone()
    return Exit.isFailure(outcome) ? Effect.failCause(outcome.cause) : restore(run(effect, observe))
  }

  return run
}

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const savepoint = Level.savepointNamed("strata")

const awaitTurn = (waiter: Waiter): Effect.Effect<Turn> =>
  Effect.callback((resume) => {
    if (waiter.turn !== undefined) return resume(Effect.succeed(waiter.turn))
    waiter.resume = (turn) => resume(Effect.succeed(turn))
  })

const openGroup = (connection: SqliteConnection, clock: Clock.Clock, options: Options): Group => ({
  connection,
  clock,
  deadline: clock.currentTimeMillisUnsafe() + options.maxMillis,
  members: 1,
  aborted: false,
  listeners: [],
  close: undefined
})

const isOpen = (group: Group, options: Options): boolean =>
  !group.aborted && group.members < options.maxMembers && group.clock.currentTimeMillisUnsafe() < group.deadline

/** A fiber that goes on may end, and what observes its end may throw: that is not for the fiber that let it go on. */
const apart = (goOn: () => void): void => {
  try {
    goOn()
  } catch (defect) {
    queueMicrotask(() => {
      throw defect
    })
  }
}
