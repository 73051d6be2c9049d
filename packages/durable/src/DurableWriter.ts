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
import * as Layer from "effect/Layer"
import * as Semaphore from "effect/Semaphore"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import * as ClientTransaction from "./internal/clientTransaction.ts"
import * as Inside from "./internal/inside.ts"
import * as MemoryWrite from "./internal/memoryWrite.ts"
import { makeObserve } from "./internal/observe.ts"
import { isPostgres, postgresTransaction } from "./internal/postgres.ts"
import { retryConflicts } from "./internal/retry.ts"
import * as SqlWrite from "./internal/sqlWrite.ts"
import { type WriteState, WriteTransaction } from "./internal/writeTransaction.ts"

// ---------------------------------------------------------------------------------------------------------------------
// services
// ---------------------------------------------------------------------------------------------------------------------

export {
  /**
   * The write that is under way. Only {@link DurableWriter} provides it; an operation that needs it can run nowhere but
   * inside of a write.
   *
   * @since 0.1.0
   * @category services
   */
  WriteTransaction
}

export type {
  /**
   * Where a write is that a context names.
   *
   * @since 0.1.0
   * @category models
   */
  WriteState
}

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
     * - A write ends with its body. A fiber that the body has forked, and that goes on after it, is outside of it: what
     *   it writes is a write of its own, or joins the one that the ended one was nested in.
     * - It waits for no nested `write` that its body has forked and left open: that one is rolled back, whatever it goes
     *   on to do writes nothing any more, and it fails with a `SqlError`. One that has not begun yet is a write of its own.
     * - A nested `write` is rolled back with all that came after its beginning. A write that ran statements of its own
     *   beside one that was open, and is rolled back, fails with a `SqlError` too. So an answer agrees with what is stored.
     * - Of a transaction that `SqlClient.withTransaction` has begun, a `write` in it is a savepoint, and knows no more.
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
  const observe = makeObserve(options ?? {})
  const inTransaction: InTransaction = SqliteClient.isSqliteClient(sql)
    ? sql.withObservedTransaction
    : (effect, write) => Effect.suspend(() => ClientTransaction.run(sql, effect, write(), sql.withTransaction))
  const outermost: InTransaction = isPostgres(sql)
    ? (effect, write, options) =>
        Effect.suspend(() => ClientTransaction.run(sql, effect, write(), postgresTransaction(sql, options)))
    : inTransaction
  const write: DurableWriter["Service"]["write"] = (effect, options) =>
    Effect.withFiber(({ context }) => {
      if (SqlWrite.hasEnded(context)) {
        return Effect.updateContext(write(effect, options), SqlWrite.outOfEnded(sql.transactionService))
      }
      if (Context.getOrUndefined(context, sql.transactionService) === undefined) {
        return retry(outermost(effect, () => new SqlWrite.SqlWrite(sql, context, observe), options))
      }
      const self = new SqlWrite.SqlWrite(sql, context)
      return SqlWrite.nestedIn(
        Context.getOrUndefined(context, WriteTransaction),
        self,
        inTransaction(effect, () => self),
        Effect.suspend(() => write(effect, options))
      )
    })
  return DurableWriter.of({ write })
})

/**
 * A writer without a database, for the memory tiers: one write at a time, with the same rollback, nesting and
 * after-commit behaviour. What is stored in memory has to register its own undo with `onRollback`.
 *
 * @since 0.1.0
 * @category constructors
 */
export const makeMemory = (options?: DurableWriterOptions): DurableWriter["Service"] => {
  const turns = Semaphore.makeUnsafe(1)
  const observe = makeObserve(options ?? {})
  const write: DurableWriter["Service"]["write"] = (effect) =>
    Effect.withFiber(({ context }) => {
      const parent = MemoryWrite.current(context, turns)
      return parent === undefined
        ? MemoryWrite.outermost(turns, effect, context, observe)
        : MemoryWrite.nestedIn(
            parent,
            context,
            effect,
            Effect.suspend(() => write(effect))
          )
    })
  return DurableWriter.of({ write })
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

/**
 * Whether this fiber is inside of a write, which what it writes joins: true as long as the body of the outermost one runs,
 * in every fiber that was forked in it. False from its end, so that a fiber that has outlived a write is as any other. Also
 * true in the body of a nested write that has been rolled back before its end, where all that is written is refused.
 *
 * @since 0.1.0
 * @category accessors
 */
export const insideWrite: Effect.Effect<boolean> = Effect.contextWith((context: Context.Context<never>) =>
  Effect.succeed(Inside.isInsideWrite(context))
)

/**
 * Whether this fiber is inside of a write that is open, or of any other transaction of a `SqlClient`: where the network is
 * out of bounds, as others would wait for it. False from the end of a write's body, and once a write has been rolled back.
 *
 * @since 0.1.0
 * @category accessors
 */
export const insideTransaction: Effect.Effect<boolean> = Effect.contextWith((context: Context.Context<never>) =>
  Effect.succeed(isInsideTransaction(context))
)

/**
 * {@link insideTransaction} for a fiber with these services.
 *
 * @since 0.1.0
 * @category accessors
 */
export const isInsideTransaction: (context: Context.Context<never>) => boolean = Inside.isInsideTransaction

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/** Runs the body of a write in a transaction, or in a savepoint where there is one; a new `write` each time that it runs. */
type InTransaction = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  write: () => SqlWrite.SqlWrite,
  options?: WriteOptions
) => Effect.Effect<A, E | SqlError, Exclude<R, WriteTransaction>>
