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
  /** `PRAGMA mmap_size`, in bytes. Default 0: off. */
  readonly mmapSize?: number | undefined
  /** `PRAGMA foreign_keys`. Default `true`. */
  readonly foreignKeys?: boolean | undefined
  /** How long opening waits for a peer that holds the file, as when it changes the journal mode. Default 10 seconds. */
  readonly openTimeout?: Duration.Input | undefined
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
  /** The options the client was opened with. */
  readonly options: SqliteClientOptions
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
  const client = yield* Client.make({
    ...Client.makeSqliteAcquirers({
      connection: Effect.succeed(connection),
      semaphore,
      isTransaction: (connection) => connection.isTransaction()
    }),
    compiler,
    transformRows,
    driver: "sqlite-node",
    beginTransaction: options.readonly === true ? "BEGIN" : "BEGIN IMMEDIATE",
    prepareTransactionControls: true,
    releaseSavepoint: (name) => `RELEASE SAVEPOINT ${name}`,
    spanAttributes: [...Object.entries(options.spanAttributes ?? {}), ["db.system.name", "sqlite"]]
  })
  return Object.assign(client, { options, backup: makeBackup(options, connection, semaphore) })
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

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

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
  `mmap_size = ${options.mmapSize ?? 0}`,
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
