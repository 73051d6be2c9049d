/**
 * Writes that survive. `DurableWriter.write` runs an effect in one serialized
 * write transaction: everything the effect stored is there when `write` has
 * succeeded, and nothing of it otherwise. Conflicts with other writers are
 * retried here, so that no caller ever sees "database is locked".
 *
 * Operations that are only correct inside a write, such as `Changelog.record`,
 * require {@link WriteTransaction}, a service that only `write` provides: the
 * compiler refuses them anywhere else.
 *
 * @since 0.1.0
 */
import * as SqliteClient from "@strata/sqlite/SqliteClient"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Semaphore from "effect/Semaphore"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { observeBody } from "./internal/observe.ts"
import { isPostgres, postgresTransaction } from "./internal/postgres.ts"
import { retryConflicts } from "./internal/retry.ts"

// ---------------------------------------------------------------------------------------------------------------------
// services
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The write that is under way. Only {@link DurableWriter} provides it; an
 * operation that needs it can run nowhere but inside a write.
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
     * in, rolls back.
     */
    readonly afterCommit: <R>(effect: Effect.Effect<void, never, R>) => Effect.Effect<void, never, R>
    /**
     * Calls `undo` if this write rolls back, latest registration first. For state in memory that has to agree with
     * what was stored.
     */
    readonly onRollback: (undo: () => void) => Effect.Effect<void>
  }
>()("@strata/durable/WriteTransaction") {}

/**
 * Serialized, retried write transactions.
 *
 * @since 0.1.0
 * @category services
 */
export class DurableWriter extends Context.Service<
  DurableWriter,
  {
    /**
     * Runs `effect` in one write transaction.
     *
     * - Success is reported after the commit, which writes that wait at the same time share where the client can (see
     *   `SqliteClient.withGroupedTransaction`); each stays a transaction of its own. A failure, a defect or an interruption of `effect` rolls back all that
     *   it stored, and nothing else.
     * - A `write` inside a `write` joins it as a savepoint: it can fail and be recovered from alone, its effects last
     *   when the outermost write commits, and only the outermost is retried.
     * - Retried, with the whole body: SQLite's BUSY and LOCKED, and serialization failures, deadlocks and lock
     *   timeouts of Postgres, also when they are the `cause` or `reason` of the body's own error. Never retried:
     *   constraints, I/O errors, and lost connections, after which the commit may have happened.
     * - On Postgres it runs `SERIALIZABLE`, unless `options` say otherwise.
     * - Do only storage work inside: other writers wait.
     */
    readonly write: <A, E, R>(
      effect: Effect.Effect<A, E, R>,
      options?: WriteOptions
    ) => Effect.Effect<A, E | SqlError, Exclude<R, WriteTransaction>>
  }
>()("@strata/durable/DurableWriter") {}

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * How one write runs.
 *
 * @since 0.1.0
 * @category models
 */
export interface WriteOptions {
  /**
   * What the write sees of others on Postgres; elsewhere writes run one after the other. Default `serializable`: as if
   * they did there too. With `read committed` each statement sees what is committed when it starts, and nothing fails
   * because another write read or changed the same rows: for writes whose statements are guards by themselves, as those
   * of the dirty queue are. A nested write runs as its outermost one does.
   */
  readonly isolation?: "serializable" | "read committed" | undefined
}

/**
 * How a writer retries, and when it complains.
 *
 * @since 0.1.0
 * @category models
 */
export interface DurableWriterOptions {
  /** Delay before the first retry, doubled for each further one. Default 1 ms. */
  readonly retryBase?: Duration.Input | undefined
  /** What no delay exceeds, jitter included. Default 100 ms. */
  readonly retryCap?: Duration.Input | undefined
  /** How long a write is retried before its error is reported. Default 30 seconds. */
  readonly retryFor?: Duration.Input | undefined
  /** A write whose body holds the transaction for longer is logged as a warning, with the span it ran in. Default 1 second. */
  readonly slowWrite?: Duration.Input | undefined
}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A writer over the `SqlClient` in context.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = Effect.fnUntraced(function* (
  options?: DurableWriterOptions
): Effect.fn.Return<DurableWriter["Service"], never, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const retry = retryConflicts(options ?? {})
  const observe = observeBody(options ?? {})
  const inTransaction = SqliteClient.isSqliteClient(sql) ? sql.withGroupedTransaction : sql.withTransaction
  const outermost = isPostgres(sql) ? postgresTransaction(sql) : inTransaction
  return DurableWriter.of({
    write: (effect, options) =>
      Effect.withFiber((fiber) => {
        const level = new SqlLevel(sql)
        return Context.getOrUndefined(fiber.context, sql.transactionService) === undefined
          ? retry(undoOnFailure(level, outermost(observe(provideLevel(level, effect), level.rollback), options)))
          : nestedIn(
              Context.getOrUndefined(fiber.context, WriteTransaction),
              level,
              inTransaction(undoOnFailure(level, provideLevel(level, effect)))
            )
      })
  })
})

/**
 * A writer without a database, for the memory tiers: one write at a time, with the same rollback, nesting and
 * after-commit behaviour. What is stored in memory has to register its own undo with `onRollback`.
 *
 * @since 0.1.0
 * @category constructors
 */
export const makeMemory = (options?: DurableWriterOptions): DurableWriter["Service"] => {
  const semaphore = Semaphore.makeUnsafe(1)
  const levels = new WeakMap<WriteTransaction["Service"], MemoryLevel>()
  const observe = observeBody(options ?? {})
  return DurableWriter.of({
    write: (effect) =>
      Effect.withFiber((fiber) => {
        const current = Context.getOrUndefined(fiber.context, WriteTransaction)
        const parent = current && levels.get(current)
        return parent === undefined
          ? memoryWrite(semaphore, levels, observe(effect))
          : parent.children.withPermit(memorySavepoint(levels, parent, effect))
      })
  })
}

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The writer over the `SqlClient` in context.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options?: DurableWriterOptions): Layer.Layer<DurableWriter, never, SqlClient.SqlClient> =>
  Layer.effect(DurableWriter, make(options))

/**
 * The writer of the memory tiers.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerMemory = (options?: DurableWriterOptions): Layer.Layer<DurableWriter> =>
  Layer.sync(DurableWriter, () => makeMemory(options))

// ---------------------------------------------------------------------------------------------------------------------
// accessors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Runs `effect` in one write of the `DurableWriter` in context.
 *
 * @since 0.1.0
 * @category accessors
 */
export const write = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  options?: WriteOptions
): Effect.Effect<A, E | SqlError, Exclude<R, WriteTransaction> | DurableWriter> =>
  DurableWriter.use((writer) => writer.write(effect, options))

/**
 * Runs `effect` once after the write that is under way has committed; see {@link WriteTransaction}.
 *
 * @since 0.1.0
 * @category accessors
 */
export const afterCommit = <R>(
  effect: Effect.Effect<void, never, R>
): Effect.Effect<void, never, R | WriteTransaction> =>
  WriteTransaction.use((transaction) => transaction.afterCommit(effect))

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/** What waits for the commit is no longer inside of the write. */
const withoutWrite = <R>(context: Context.Context<R>): Context.Context<R> =>
  Context.omit(WriteTransaction)(context) as Context.Context<R>

const runUndo = (undo: ReadonlyArray<() => void>): void => {
  for (let i = undo.length - 1; i >= 0; i--) {
    undo[i]!()
  }
}

/** What a write over a `SqlClient` provides to its body. */
class SqlLevel {
  private readonly sql: SqlClient.SqlClient
  private undo: Array<() => void> | undefined = undefined

  constructor(sql: SqlClient.SqlClient) {
    this.sql = sql
  }

  afterCommit<R>(effect: Effect.Effect<void, never, R>): Effect.Effect<void, never, R> {
    return this.sql.afterCommit(Effect.updateContext(effect, withoutWrite<R>))
  }

  onRollback(undo: () => void): Effect.Effect<void> {
    return Effect.sync(() => {
      this.undo ??= []
      this.undo.push(undo)
    })
  }

  readonly rollback = (): void => {
    const { undo } = this
    this.undo = undefined
    if (undo !== undefined) runUndo(undo)
  }

  /** Leaves what is to be undone to the write that this one stands in. */
  handOver(parent: WriteTransaction["Service"]): Effect.Effect<void> {
    return this.undo === undefined ? Effect.void : parent.onRollback(this.rollback)
  }
}

const provideLevel = <A, E, R>(
  level: SqlLevel,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, Exclude<R, WriteTransaction>> => Effect.provideService(effect, WriteTransaction, level)

/** At the end of a body, before another write can look, and again for a commit that failed. */
const undoOnFailure = <A, E, R>(level: SqlLevel, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.onExitPrimitive(
    effect,
    (exit) => {
      if (Exit.isFailure(exit)) level.rollback()
      return undefined
    },
    true
  )

/** A write in a write: what it registered outlives its own end, as the outer one may still roll back. */
const nestedIn = <A, E, R>(
  parent: WriteTransaction["Service"] | undefined,
  level: SqlLevel,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.onExit(effect, (exit) => {
    if (Exit.isSuccess(exit)) return parent === undefined ? Effect.void : level.handOver(parent)
    return Effect.sync(level.rollback)
  })

interface MemoryLevel {
  readonly transaction: WriteTransaction["Service"]
  readonly hooks: Array<Effect.Effect<void>>
  readonly undo: Array<() => void>
  /** Savepoints of one level run one after the other, or rolling one back would take the changes of its sibling. */
  readonly children: Semaphore.Semaphore
}

const memoryLevel = (levels: WeakMap<WriteTransaction["Service"], MemoryLevel>): MemoryLevel => {
  const hooks: Array<Effect.Effect<void>> = []
  const undo: Array<() => void> = []
  const transaction = WriteTransaction.of({
    afterCommit: <R>(effect: Effect.Effect<void, never, R>) =>
      Effect.contextWith((context: Context.Context<R>) =>
        Effect.sync(() => {
          hooks.push(Effect.provideContext(effect, withoutWrite(context)))
        })
      ),
    onRollback: (f) => Effect.sync(() => void undo.push(f))
  })
  const level = { transaction, hooks, undo, children: Semaphore.makeUnsafe(1) }
  levels.set(transaction, level)
  return level
}

const memoryWrite = <A, E, R>(
  semaphore: Semaphore.Semaphore,
  levels: WeakMap<WriteTransaction["Service"], MemoryLevel>,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, Exclude<R, WriteTransaction>> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(restore(semaphore.take(1)), () => {
      const level = memoryLevel(levels)
      return Effect.exit(restore(Effect.provideService(effect, WriteTransaction, level.transaction))).pipe(
        Effect.flatMap((exit) => {
          levels.delete(level.transaction)
          if (Exit.isFailure(exit)) {
            runUndo(level.undo)
            return Effect.andThen(semaphore.release(1), exit)
          }
          return Effect.andThen(
            semaphore.release(1),
            Effect.andThen(Effect.forEach(level.hooks, runHook, { discard: true }), exit)
          )
        })
      )
    })
  )

const memorySavepoint = <A, E, R>(
  levels: WeakMap<WriteTransaction["Service"], MemoryLevel>,
  parent: MemoryLevel,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, Exclude<R, WriteTransaction>> =>
  Effect.suspend(() => {
    const level = memoryLevel(levels)
    return Effect.provideService(effect, WriteTransaction, level.transaction).pipe(
      Effect.onExit((exit) =>
        Effect.sync(() => {
          levels.delete(level.transaction)
          if (Exit.isFailure(exit)) {
            runUndo(level.undo)
          } else {
            parent.undo.push(...level.undo)
            parent.hooks.push(...level.hooks)
          }
        })
      )
    )
  })

const runHook = (hook: Effect.Effect<void>): Effect.Effect<void> =>
  Effect.ignoreCause(hook, {
    log: "Unhandled",
    message: "Unhandled error in an afterCommit callback"
  })
