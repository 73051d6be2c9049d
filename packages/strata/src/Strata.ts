/**
 * What an app imports: the layers that belong together, in one line. An app picks a bundle at its edge; its own code asks
 * for the services and stays the same on all of them.
 *
 * @since 0.1.0
 */
import * as Cache from "@strata/cache/Cache"
import type { CacheError } from "@strata/cache/CacheError"
import * as PostgresCache from "@strata/cache/PostgresCache"
import * as Changelog from "@strata/dirty-queue/Changelog"
import * as ChangeSignal from "@strata/dirty-queue/ChangeSignal"
import * as DirtyQueue from "@strata/dirty-queue/DirtyQueue"
import * as MemoryStore from "@strata/dirty-queue/MemoryStore"
import * as DurableWriter from "@strata/durable/DurableWriter"
import * as FollowerScheduler from "@strata/follower/FollowerScheduler"
import * as Journal from "@strata/journal/Journal"
import type { JournalStorage } from "@strata/journal/JournalStorage"
import * as DataVersion from "@strata/sqlite/DataVersion"
import * as SqliteClient from "@strata/sqlite/SqliteClient"
import * as Clock from "effect/Clock"
import * as Config from "effect/Config"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import type * as Migrator from "effect/sql/Migrator"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import * as PostgresClient from "./PostgresClient.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The services that every bundle offers.
 *
 * @since 0.1.0
 * @category models
 */
export type Services =
  | DurableWriter.DurableWriter
  | Changelog.Changelog
  | DirtyQueue.DirtyQueue
  | ChangeSignal.ChangeSignal
  | FollowerScheduler.FollowerScheduler
  | Journal.Journal
  | JournalStorage

/**
 * The settings that every bundle takes; what is absent has the defaults of the service it belongs to.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  readonly writer?: DurableWriter.DurableWriterOptions | undefined
  readonly queue?: DirtyQueue.DirtyQueueOptions | undefined
  readonly scheduler?: FollowerScheduler.FollowerSchedulerOptions | undefined
  readonly journal?: Journal.JournalOptions | undefined
}

/**
 * The settings of {@link layerSqlite}: those of its client, and of its services.
 *
 * @since 0.1.0
 * @category models
 */
export interface SqliteOptions extends Omit<SqliteClient.SqliteClientOptions, "readonly">, Options {
  /** How often other processes' commits are looked for. Default 100 ms. */
  readonly pollInterval?: Duration.Input | undefined
}

/**
 * The settings of {@link layerPostgres}: those of its client, and of its services.
 *
 * @since 0.1.0
 * @category models
 */
export interface PostgresOptions extends Omit<PostgresClient.PostgresClientOptions, "readonly">, Options {}

// ---------------------------------------------------------------------------------------------------------------------
// errors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Followers are too far behind.
 *
 * @since 0.1.0
 * @category errors
 */
export class NotReady extends Schema.TaggedError<NotReady>("@strata/strata/NotReady")("NotReady", {
  /** Age of the oldest change that is not processed. */
  oldestDirtyMs: Schema.Finite,
  maxAgeMs: Schema.Finite
}) {
  override get message(): string {
    return `The oldest change has waited ${this.oldestDirtyMs} ms, more than ${this.maxAgeMs} ms`
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// readiness
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Succeeds when the store answers and no change has waited for longer than `maxAge` (default 1 minute), for the
 * readiness probe of a service. Dead letters do not count: they wait for somebody, and `DirtyQueue.stats` shows them.
 *
 * @since 0.1.0
 * @category readiness
 */
export const ready = Effect.fn("Strata.ready")(function* (options?: {
  readonly maxAge?: Duration.Input | undefined
}): Effect.fn.Return<void, NotReady | SqlError, DirtyQueue.DirtyQueue> {
  const queue = yield* DirtyQueue.DirtyQueue
  const { total } = yield* queue.stats()
  const maxAgeMs = Duration.toMillis(Duration.fromInputUnsafe(options?.maxAge ?? "1 minute"))
  const oldestDirtyMs = (yield* Clock.currentTimeMillis) - (total.oldestDirtyAt ?? Number.POSITIVE_INFINITY)
  if (oldestDirtyMs > maxAgeMs) {
    return yield* new NotReady({ oldestDirtyMs, maxAgeMs })
  }
})

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Everything on one SQLite file, which several processes may use. Changes of this process wake its followers at once,
 * those of others within `pollInterval`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerSqlite = (
  options: SqliteOptions
): Layer.Layer<
  Services | SqliteClient.SqliteClient | SqliteClient.SqliteReader | SqlClient.SqlClient,
  SqlError | Migrator.MigrationError
> =>
  layerServices(options).pipe(
    Layer.provideMerge(Layer.mergeAll(DurableWriter.layer(options.writer), layerSignal(options))),
    Layer.provideMerge(SqliteClient.layerReader),
    Layer.provideMerge(SqliteClient.layer(options))
  )

/**
 * Everything in one Postgres, version 15 or newer, which processes of several machines may use. Changes of any of them
 * wake the followers of all. Times are those of the database. One connection of the pool listens.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerPostgres = (
  options: PostgresOptions
): Layer.Layer<
  Services | SqlClient.SqlClient,
  SqlError | Migrator.MigrationError | PostgresClient.PostgresClientError
> =>
  layerServices(options).pipe(
    Layer.provideMerge(Layer.mergeAll(DurableWriter.layer(options.writer), layerPostgresSignal)),
    Layer.provideMerge(PostgresClient.layer(options))
  )

/**
 * The cache of slow steps on top of {@link layerSqlite}, in the same database, so that a step's
 * result, its journal entry and what is to be published commit together. Artifacts are files in `directory`, or in the
 * store that `artifacts` makes. Where machines share a Postgres, {@link layerCachePostgres} has them in it.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerCache: (
  options: Cache.SqlOptions
) => Layer.Layer<
  Cache.Services,
  CacheError | SqlError | Migrator.MigrationError | DirtyQueue.DirtyQueueError,
  Services | SqlClient.SqlClient
> = Cache.layerSql

/**
 * {@link layerCache} on top of {@link layerPostgres}, with artifacts of up to 4 MiB each in the same Postgres, in tables
 * of their own, `strata_local_…`. They are read and written by at most 4 connections beside those of the bundle.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerCachePostgres = (
  options: Cache.CacheOptions & {
    /** That of {@link layerPostgres}. */
    readonly url: Redacted.Redacted
  }
): Layer.Layer<
  Cache.Services,
  CacheError | SqlError | Migrator.MigrationError | DirtyQueue.DirtyQueueError,
  Services | SqlClient.SqlClient
> =>
  Cache.layerSql({
    ...options,
    artifacts: Effect.flatMap(PostgresCache.fromUrl(options.url), (address) =>
      PostgresCache.artifactStore({ ...address, prefix: "local", name: "local" })
    )
  })

/**
 * The cache of slow steps on top of {@link layerTest}.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerCacheTest: (
  options?: Cache.CacheOptions
) => Layer.Layer<Cache.Services, CacheError | SqlError | DirtyQueue.DirtyQueueError, Services> = Cache.layerMemory

/**
 * Everything in memory: for tests, where it is quick, starts empty and obeys `TestClock`. It has no `SqlClient`: an app
 * with tables of its own, or a transactional `IndexWriter`, is tested on `layerSqlite({ filename: ":memory:" })`, which
 * starts empty too.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerTest: Layer.Layer<Services> = Layer.mergeAll(
  Changelog.layerMemory(),
  DirtyQueue.layerMemory(),
  FollowerScheduler.layer(),
  Journal.layerMemory()
).pipe(
  Layer.provideMerge(Layer.mergeAll(DurableWriter.layerMemory(), ChangeSignal.layer)),
  Layer.provide(MemoryStore.layer)
)

/**
 * {@link layerSqlite} or {@link layerPostgres} from the environment, or whatever `ConfigProvider` is in context:
 *
 * - `STRATA_DATABASE`: the database file, or a URL that begins with `postgres:`. Default `strata.db`.
 * - `STRATA_SYNCHRONOUS`: `FULL` (default), `NORMAL`, `EXTRA` or `OFF`; of a file.
 * - `STRATA_LEASE`: how long a claim lasts, as in `30 seconds`.
 * - `STRATA_MAX_ATTEMPTS`: after how many attempts a path is set aside.
 * - `STRATA_POLL_INTERVAL`: how often other processes' commits are looked for in a file, as in `100 millis`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerConfig: Layer.Layer<
  Services | SqlClient.SqlClient,
  Config.ConfigError | SqlError | Migrator.MigrationError | PostgresClient.PostgresClientError
> = Layer.unwrap(
  Effect.map(
    Config.all({
      database: Config.Redacted("DATABASE").pipe(Config.withDefault(Redacted.make("strata.db"))),
      synchronous: Config.Literals(["OFF", "NORMAL", "FULL", "EXTRA"], "SYNCHRONOUS").pipe(Config.withDefault("FULL")),
      lease: optional(Config.Duration("LEASE")),
      maxAttempts: optional(Config.Int("MAX_ATTEMPTS")),
      pollInterval: optional(Config.Duration("POLL_INTERVAL"))
    }).pipe(Config.nested("STRATA")),
    ({ database, lease, maxAttempts, pollInterval, synchronous }): typeof layerConfig => {
      const queue = { lease, maxAttempts }
      const filename = Redacted.value(database)
      // That of another database is refused there, and not taken for the name of a file.
      return PostgresClient.isAddress(filename) || otherAddress.test(filename)
        ? layerPostgres({ url: database, queue })
        : layerSqlite({ filename, synchronous, pollInterval, queue })
    }
  )
)

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const otherAddress = /^(?!file:)[a-z][a-z\d+.-]+:\/\//i

const layerServices = (options: Options) =>
  Layer.mergeAll(
    Changelog.layer({ clock: options.queue?.clock }),
    DirtyQueue.layer(options.queue),
    FollowerScheduler.layer(options.scheduler),
    Journal.layerSql(options.journal)
  )

/** Loaded with the driver, which not everybody has installed; the client below it fails before when it is missing. */
const layerPostgresSignal = Layer.unwrap(
  Effect.map(
    Effect.promise(() => import("@strata/dirty-queue/PostgresSignal")),
    (signal) => signal.layer()
  )
)

/** A function declaration, since `layerConfig` is built above it. */
function optional<A>(config: Config.Config<A>): Config.Config<A | undefined> {
  return Config.map(Config.option(config), Option.getOrUndefined)
}

/** A database in memory is seen by no other process, and cannot be opened a second time. */
const layerSignal = (options: SqliteOptions) =>
  options.filename === ":memory:"
    ? ChangeSignal.layer
    : Layer.effect(
        ChangeSignal.ChangeSignal,
        Effect.flatMap(DataVersion.make(options.filename), (source) =>
          ChangeSignal.makePoll({ source, interval: options.pollInterval })
        )
      )
