/**
 * The embedded database under `effect/sql`: one SQLite file opened through
 * `node:sqlite`, offered as a `SqlClient`.
 *
 * A client owns one connection, which statements and transactions share in
 * arrival order. Open a second client on the same file for reads that must not
 * wait behind a write, see {@link SqliteClientOptions.readonly}.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Client from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import * as Statement from "effect/sql/Statement"
import * as Connection from "./internal/connection.ts"
import * as GroupCommit from "./internal/groupCommit.ts"
import * as SqliteStatement from "./internal/statement.ts"
import * as Level from "./internal/transactionLevel.ts"
import { observed, type TransactionObserver } from "./TransactionObserver.ts"

const TypeId = "~@strata/sqlite/SqliteClient"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * How a database file is opened.
 *
 * @since 0.1.0
 * @category models
 */
export interface SqliteClientOptions {
  /** Path of the database file, or `:memory:`. The file is created when missing, its folder is not. */
  readonly filename: string
  /**
   * Opens the file for reading only. The pragmas that write the file
   * (`journalMode`) are then left as they are. Default `false`.
   */
  readonly readonly?: boolean | undefined
  /** `PRAGMA journal_mode`. Default `WAL`: readers and the one writer do not wait for each other. */
  readonly journalMode?: "WAL" | "DELETE" | "TRUNCATE" | undefined
  /**
   * `PRAGMA synchronous`. Default `FULL`: a commit that was reported survives a power cut. With `NORMAL` and WAL the
   * last commits may be lost in a power cut, never in a crash of the process, and the file stays consistent.
   */
  readonly synchronous?: "OFF" | "NORMAL" | "FULL" | "EXTRA" | undefined
  /** `PRAGMA wal_autocheckpoint`, in pages. Default 4,000 (16 MB of 4 KiB pages): fewer checkpoints inside commits. */
  readonly walAutocheckpoint?: number | undefined
  /** `PRAGMA journal_size_limit`, in bytes: what the WAL file is cut to after a checkpoint. Default 64 MiB. */
  readonly journalSizeLimit?: number | undefined
  /** `PRAGMA cache_size`, in KiB. Default 16,384. */
  readonly cacheSize?: number | undefined
  /**
   * `PRAGMA mmap_size`, in bytes: how much of the file is read where the system has it in memory, instead of a copy for
   * each page, which is what a look at a random row of a large table costs most. Writes and the WAL are not mapped.
   * Default 0x7fff0000, just below 2 GiB: the most that SQLite maps. Mapped pages count as the process's resident memory,
   * and are the system's to take back. Where the disk under a mapped page fails, or another program cuts the file short,
   * the process dies of SIGBUS in place of a `SqlError`: 0 maps nothing.
   *
   * Source: https://www.sqlite.org/mmap.html
   */
  readonly mmapSize?: number | undefined
  /** `PRAGMA foreign_keys`. Default `true`. */
  readonly foreignKeys?: boolean | undefined
  /** How long opening waits for a peer that holds the file, as when it changes the journal mode. Default 10 seconds. */
  readonly openTimeout?: Duration.Input | undefined
  /**
   * How many of the transactions that wait for their turn share a COMMIT at most, see
   * {@link SqliteClient.withGroupedTransaction}. Default 256.
   */
  readonly groupSize?: number | undefined
  /** After what time no further transaction joins a group. Default 20 ms. */
  readonly groupTime?: Duration.Input | undefined
  /** How many prepared statements are kept, oldest first out. Default 256. */
  readonly prepareCacheSize?: number | undefined
  /** Attributes added to every span of this client. */
  readonly spanAttributes?: Record<string, unknown> | undefined
  /** Turns names in queries into column names, as camel case to snake case. Default: none. */
  readonly transformQueryNames?: ((name: string) => string) | undefined
  /** Turns column names of results into names. Default: none. */
  readonly transformResultNames?: ((name: string) => string) | undefined
}

// ---------------------------------------------------------------------------------------------------------------------
// service
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A `SqlClient` on one SQLite file, with what only SQLite offers beside.
 *
 * A write that meets another process's lock fails at once with a
 * `LockTimeoutError` (`busy_timeout` is 0, so that the event loop is never
 * blocked); `DurableWriter` retries it.
 *
 * @since 0.1.0
 * @category services
 */
export interface SqliteClient extends Client.SqlClient {
  readonly [TypeId]: typeof TypeId
  /** The options the client was opened with. */
  readonly options: SqliteClientOptions
  /**
   * As `withTransaction`, but transactions that wait at the same time share a COMMIT, which is nearly all that a small
   * one costs.
   *
   * - Each stays a transaction of its own: a failure, a defect or an interruption undoes what it wrote, and nothing
   *   else, and makes no other run again. Each is reported as a success after the COMMIT; when that fails, all fail.
   * - They run in the order of their arrival. A group is closed as soon as nobody waits, so a lone transaction costs
   *   what a plain one does, and never waits for company.
   * - It can be interrupted while it waits and while its effect runs. After that it belongs to the group, whose outcome
   *   it waits for: `groupTime` and the effect of one other member at most.
   * - When SQLite itself rolls back the whole transaction, as on a full disk, the transaction that met the error fails
   *   and the others of the group run again: the only case in which they do.
   * - `withTransaction` inside of it is a savepoint, and `afterCommit` runs after its group's COMMIT. A savepoint that is
   *   still open when the effect ends is rolled back, and fails.
   */
  readonly withGroupedTransaction: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E | SqlError, R>
  /** As `withGroupedTransaction`, with one that looks on at each run of the effect, and may give it services. */
  readonly withObservedTransaction: <A, E, R, S>(
    effect: Effect.Effect<A, E, R>,
    observe: () => TransactionObserver<S>
  ) => Effect.Effect<A, E | SqlError, Exclude<R, S>>
  /**
   * Copies the committed state into a new database file at `destination`,
   * without holding up writers, and ends when the copy is complete.
   */
  readonly backup: (destination: string) => Effect.Effect<void, SqlError>
}

/**
 * The tag under which {@link layer} offers the client, beside `SqlClient`.
 *
 * @since 0.1.0
 * @category services
 */
export const SqliteClient = Context.Service<SqliteClient>("@strata/sqlite/SqliteClient")

/**
 * A second client on the same database, for reads that must not wait behind a write.
 *
 * @since 0.1.0
 * @category services
 */
export class SqliteReader extends Context.Service<SqliteReader, Client.SqlClient>()("@strata/sqlite/SqliteReader") {}

/**
 * Whether a client is one of this module, with what only SQLite offers.
 *
 * @since 0.1.0
 * @category guards
 */
export const isSqliteClient = (client: Client.SqlClient): client is SqliteClient => TypeId in client

/**
 * Whether a transaction that a context has under a client's `transactionService` goes on, or one that it is nested in: a
 * fiber may outlive that in which it was forked. Only those that this package opened itself are known to have ended.
 *
 * @since 0.1.0
 * @category guards
 */
export const isOpenTransaction: (
  transaction: Context.Service.Shape<Client.SqlClient["transactionService"]>
) => boolean = Level.isOpen

/**
 * Whether a transaction that a context has under a client's `transactionService` has ended, whatever it is nested in. Only
 * those that this package opened itself are known to have.
 *
 * @since 0.1.0
 * @category guards
 */
export const hasEndedTransaction: (
  transaction: Context.Service.Shape<Client.SqlClient["transactionService"]>
) => boolean = Level.hasEnded

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Opens a client for the life of the scope. Closing the scope closes the file,
 * which writes the WAL back when this was the last connection.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = Effect.fnUntraced(function* (
  options: SqliteClientOptions
): Effect.fn.Return<SqliteClient, SqlError, Scope.Scope | Reactivity.Reactivity> {
  const connection = yield* Effect.acquireRelease(open(options), (connection) => Effect.sync(connection.close))
  const semaphore = yield* Semaphore.make(1)
  const compiler = Statement.makeCompilerSqlite(options.transformQueryNames)
  const transformRows =
    options.transformResultNames === undefined
      ? undefined
      : Statement.defaultTransforms(options.transformResultNames).array
  const acquirers = Client.makeSqliteAcquirers({
    connection: Effect.succeed(connection),
    semaphore,
    isTransaction: (connection: Connection.SqliteConnection) => connection.isTransaction()
  })
  const client = yield* Client.make({
    ...acquirers,
    compiler,
    transformRows,
    driver: "sqlite-node",
    beginTransaction: options.readonly === true ? "BEGIN" : "BEGIN IMMEDIATE",
    prepareTransactionControls: true,
    releaseSavepoint: (name) => `RELEASE SAVEPOINT ${name}`,
    spanAttributes: [...Object.entries(options.spanAttributes ?? {}), ["db.system.name", "sqlite"]]
  })
  const transactions = grouped(client, acquirers, options)
  const backup = makeBackup(options, connection, semaphore)
  const assemble = (base: Client.SqlClient, rows: typeof transformRows): SqliteClient => {
    const statement = SqliteStatement.make({
      base,
      connection,
      transactionService: client.transactionService,
      borrower: acquirers.borrower,
      transformRows: rows
    })
    const self: SqliteClient = Object.assign(statement, base, { unsafe: statement.unsafe }, transactions, {
      [TypeId]: TypeId as typeof TypeId,
      options,
      backup,
      withoutTransforms: () => (rows === undefined ? self : assemble(client.withoutTransforms(), undefined))
    })
    return Object.assign(self, { safe: self })
  }
  return assemble(client, transformRows)
})

/**
 * A client on one file, under the tags `SqliteClient` and `SqlClient`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options: SqliteClientOptions): Layer.Layer<SqliteClient | Client.SqlClient, SqlError> =>
  Layer.effectContext(
    Effect.map(make(options), (client) =>
      Context.make(SqliteClient, client).pipe(Context.add(Client.SqlClient, client))
    )
  ).pipe(Layer.provide(Reactivity.layer))

/**
 * The reader of the database that the `SqliteClient` in context has open: a read-only connection of its own, or for a
 * database in memory, which has only one, that client itself.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerReader: Layer.Layer<SqliteReader, SqlError, SqliteClient> = Layer.effect(
  SqliteReader,
  Effect.gen(function* () {
    const client = yield* SqliteClient
    return client.options.filename === ":memory:" ? client : yield* make({ ...client.options, readonly: true })
  })
).pipe(Layer.provide(Reactivity.layer))

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/** The parts of a client that know of grouped transactions; outside of one they are those that `SqlClient.make` made. */
const grouped = (
  client: Client.SqlClient,
  acquirers: ReturnType<typeof Client.makeSqliteAcquirers<Connection.SqliteConnection>>,
  options: SqliteClientOptions
): Pick<SqliteClient, "withTransaction" | "withGroupedTransaction" | "withObservedTransaction" | "afterCommit"> => {
  const { afterCommit, transactionService, withTransaction } = client
  const withoutEnded = Level.withoutEnded(transactionService)
  const run = GroupCommit.make({
    transactionService,
    lease: acquirers.transactionAcquirer,
    onCommitFailure: acquirers.onCommitFailure,
    maxMembers: options.groupSize ?? 256,
    maxMillis: Duration.toMillis(Duration.fromInputUnsafe(options.groupTime ?? Duration.millis(20)))
  })
  const join: Client.SqlClient["withTransaction"] = (effect) =>
    Effect.withFiber((fiber) => {
      const level = Level.current(fiber.context, transactionService)
      return level === undefined
        ? Effect.updateContext(withTransaction(effect), withoutEnded)
        : Level.nested(
            transactionService,
            level,
            effect,
            Effect.suspend(() => join(effect))
          )
    })
  const joinObserved = <A, E, R>(effect: Effect.Effect<A, E, R>, observe: () => TransactionObserver<unknown>) =>
    Effect.withFiber((fiber) => {
      const level = Level.current(fiber.context, transactionService)
      return level === undefined
        ? observed(effect, observe(), join)
        : Level.nested(transactionService, level, effect, Level.refused, observe)
    })
  const group: typeof run = (effect, observe) =>
    Effect.withFiber(({ context }) => {
      if (Context.getOrUndefined(context, transactionService) === undefined) return run(effect, observe)
      if (Level.place(context, transactionService) === "outside") {
        return Effect.updateContext(run(effect, observe), withoutEnded)
      }
      return observe === undefined ? join(effect) : joinObserved(effect, observe)
    })
  return {
    withGroupedTransaction: (effect) => group(effect),
    // What the observer provides is in the effect's context when it runs.
    withObservedTransaction: <A, E, R, S>(effect: Effect.Effect<A, E, R>, observe: () => TransactionObserver<S>) =>
      group(effect as Effect.Effect<A, E, Exclude<R, S>>, observe),
    withTransaction: join,
    afterCommit: (effect) =>
      Effect.withFiber((fiber) => {
        const level = Level.current(fiber.context, transactionService)
        return level === undefined
          ? Effect.updateContext(afterCommit(effect), withoutEnded)
          : Level.afterCommit(transactionService, level, effect)
      })
  }
}

/** Opening takes locks (journal mode, recovery of a WAL left by a crash), so it meets peers and has to wait for them. */
const open = (options: SqliteClientOptions) =>
  Connection.open({
    filename: options.filename,
    readonly: options.readonly === true,
    prepareCacheSize: options.prepareCacheSize ?? 256,
    pragmas: pragmas(options)
  }).pipe(
    Effect.retry({
      while: (error) => error.reason._tag === "LockTimeoutError",
      schedule: Schedule.spaced(Duration.millis(10)).pipe(
        Schedule.jittered,
        Schedule.upTo({ duration: options.openTimeout ?? Duration.seconds(10) })
      )
    })
  )

const pragmas = (options: SqliteClientOptions): ReadonlyArray<string> => [
  "busy_timeout = 0",
  ...(options.readonly === true ? [] : [`journal_mode = ${options.journalMode ?? "WAL"}`]),
  `synchronous = ${options.synchronous ?? "FULL"}`,
  `wal_autocheckpoint = ${options.walAutocheckpoint ?? 4000}`,
  `journal_size_limit = ${options.journalSizeLimit ?? 64 * 1024 * 1024}`,
  `cache_size = ${-(options.cacheSize ?? 16_384)}`,
  `mmap_size = ${options.mmapSize ?? 0x7fff_0000}`,
  `foreign_keys = ${options.foreignKeys === false ? "OFF" : "ON"}`,
  "temp_store = MEMORY"
]

/**
 * A file is copied over a connection of its own, in one step: a snapshot that neither waits for writers nor is
 * started again by them. A database in memory has only the one connection.
 */
const makeBackup = (
  options: SqliteClientOptions,
  connection: Connection.SqliteConnection,
  semaphore: Semaphore.Semaphore
) =>
  Effect.fn("SqliteClient.backup")(function* (destination: string): Effect.fn.Return<void, SqlError> {
    if (options.filename === ":memory:") {
      return yield* semaphore.withPermit(connection.backup(destination))
    }
    return yield* Effect.scoped(
      Effect.flatMap(
        Effect.acquireRelease(open({ ...options, readonly: true }), (reader) => Effect.sync(reader.close)),
        (reader) => reader.backup(destination)
      )
    )
  })
