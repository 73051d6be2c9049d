/**
 * What a backend of the local step cache has to do, in plain values. The typed services are made of it, and know no
 * database; backends know no Schemas. There is a ledger of everything that was recorded, to which rows are only added
 * until they are collected, and for each key that has an entry a head, which names one row of the ledger.
 *
 * @since 0.1.0
 */
import type { DurableWriter, WriteTransaction } from "@strata/durable/DurableWriter"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Migrator from "effect/sql/Migrator"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import * as Memory from "./internal/stepCacheMemory.ts"
import * as Postgres from "./internal/stepCachePostgres.ts"
import * as Sqlite from "./internal/stepCacheSqlite.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A recorded entry without its result. Times are milliseconds since the epoch.
 *
 * @since 0.1.0
 * @category models
 */
export interface StoredRecord {
  readonly key: string
  readonly recording: string
  /** Of the result. */
  readonly digest: string
  /** A JSON array of `{ digest, name, size }`. */
  readonly artifacts: string
  readonly recordedBy: string
  readonly recordedAt: number
  readonly action: string
  readonly version: string
  readonly durationMs: number
  /** The tier it was read from; null when it was recorded here. */
  readonly from: string | null
}

/**
 * A row of the ledger. Ids rise, and are never given again.
 *
 * @since 0.1.0
 * @category models
 */
export interface StoredLedgerRow extends StoredRecord {
  readonly ledger: number
}

/**
 * The entry of a key.
 *
 * @since 0.1.0
 * @category models
 */
export interface StoredHead extends StoredLedgerRow {
  /** When it was last served, not finer than the service cares to write it down. */
  readonly usedAt: number
}

/**
 * The entry of a key with its result.
 *
 * @since 0.1.0
 * @category models
 */
export interface StoredEntry extends StoredHead {
  /** The result's canonical JSON, as far as what is stored can be trusted. */
  readonly value: string
}

/**
 * What the journal tells about a key, on its way into a table that stands beside the others: a row of the ledger that
 * became its entry, or that it lost its entry.
 *
 * @since 0.1.0
 * @category models
 */
export type StagedEvent = StoredLedgerRow | { readonly key: string; readonly ledger: null }

/**
 * How the tables differ from what is staged, as lists of keys in byte order.
 *
 * @since 0.1.0
 * @category models
 */
export interface StoredDifferences {
  /** Staged, but the tables lack a row of the ledger or the head, or have them otherwise. */
  readonly missing: ReadonlyArray<string>
  /** In the tables, and not staged. */
  readonly unexplained: ReadonlyArray<string>
}

/**
 * A row that needs a result which is not there.
 *
 * @since 0.1.0
 * @category models
 */
export interface UnjoinedResult {
  readonly key: string
  readonly digest: string
}

/**
 * Makes ledger and heads what the journal tells, in the write that has emptied them.
 *
 * @since 0.1.0
 * @category models
 */
export interface Restoring {
  /**
   * Adds rows to the ledger, as they were, whose ids rise and are above those of all that were restored before, then
   * takes away those that were collected. Gives those whose results are not there: they are left out, and the write has to be rolled back.
   */
  readonly rows: (
    events: ReadonlyArray<StagedEvent>,
    collected: ReadonlyArray<number>
  ) => Effect.Effect<ReadonlyArray<StoredLedgerRow>, SqlError, WriteTransaction>
  /**
   * Makes the heads what all events say: for each key the last one decides. Every entry counts as used `now`. Gives their
   * number.
   */
  readonly heads: (now: number) => Effect.Effect<number, SqlError, WriteTransaction>
}

/**
 * A place beside the tables for what the journal tells, to be compared with them.
 *
 * @since 0.1.0
 * @category models
 */
export interface Staging {
  /** Adds events behind those that are staged, and rows of the ledger that were collected. */
  readonly stage: (
    events: ReadonlyArray<StagedEvent>,
    collected: ReadonlyArray<number>
  ) => Effect.Effect<void, SqlError>
  /** Staged rows of the ledger, without those that were collected, whose results are not there. */
  readonly unjoined: Effect.Effect<ReadonlyArray<UnjoinedResult>, SqlError>
  readonly differences: Effect.Effect<StoredDifferences, SqlError>
}

/**
 * What may stay in the cache. An entry's bytes are those of its result and of its artifacts; what entries share counts
 * for each of them.
 *
 * @since 0.1.0
 * @category models
 */
export interface StoredLimits {
  /** Entries that were last used before go. Milliseconds since the epoch. */
  readonly usedBefore: number
  readonly maxEntries: number
  readonly maxBytes: number
}

/**
 * Where the entries begin that are beyond the limits, in the order of their last use, latest first, and of their keys.
 *
 * @since 0.1.0
 * @category models
 */
export interface StoredCutoff {
  readonly usedAt: number
  readonly key: string
}

/**
 * What there is. Sizes are in bytes.
 *
 * @since 0.1.0
 * @category models
 */
export interface StoredStats {
  readonly entries: number
  /** Entries by the tier they were read from; null for those that were recorded here. */
  readonly origins: ReadonlyArray<{ readonly from: string | null; readonly entries: number }>
  readonly ledger: number
  readonly results: number
  readonly resultBytes: number
  /** Blobs that the ledger refers to, each once. */
  readonly artifacts: number
  readonly artifactBytes: number
}

// ---------------------------------------------------------------------------------------------------------------------
// service
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A backend.
 *
 * @since 0.1.0
 * @category services
 */
export class StepCacheStorage extends Context.Service<
  StepCacheStorage,
  {
    /**
     * Lets no other write that begins with it go on beside the write under way. Comes first in a write that records
     * entries, takes them out or takes blobs away: what such a write has looked at stays as it is until it has ended.
     */
    readonly lock: Effect.Effect<void, SqlError, WriteTransaction>
    readonly find: (key: string) => Effect.Effect<StoredEntry | undefined, SqlError>
    /**
     * Adds a row to the ledger and makes it the entry of its key, which has none. The result is stored once for each
     * digest, and is replaced when what is stored differs. Gives the id of the row.
     */
    readonly insert: (
      now: number,
      record: StoredRecord & { readonly value: string }
    ) => Effect.Effect<number, SqlError, WriteTransaction>
    /**
     * Takes the head of a key away if it names this row and, with `usedAt`, was not used since; tells whether it did. The
     * row stays.
     */
    readonly remove: (
      key: string,
      ledger: number,
      usedAt?: number
    ) => Effect.Effect<boolean, SqlError, WriteTransaction>
    readonly touch: (now: number, key: string, ledger: number) => Effect.Effect<void, SqlError, WriteTransaction>
    /** Entries by key, behind a key, without their results. */
    readonly heads: (after: string, limit: number) => Effect.Effect<ReadonlyArray<StoredHead>, SqlError>

    /** Forgets heads and ledger, and runs `use` with what makes them anew. */
    readonly withRestoring: <A, E, R>(
      use: (restoring: Restoring) => Effect.Effect<A, E, R>
    ) => Effect.Effect<A, E | SqlError, R | WriteTransaction>
    /** Runs `use` with a place for what the journal tells that is empty, and that nobody else uses meanwhile. */
    readonly withStaging: <A, E, R>(
      use: (staging: Staging) => Effect.Effect<A, E, R>
    ) => Effect.Effect<A, E | SqlError, R>
    /** Results behind an id, in the order of their ids. */
    readonly results: (
      after: number,
      limit: number
    ) => Effect.Effect<
      ReadonlyArray<{ readonly id: number; readonly digest: string; readonly value: string }>,
      SqlError
    >

    /** Where entries begin to be beyond the limits, if some are: those that were used least lately. */
    readonly cutoff: (limits: StoredLimits) => Effect.Effect<StoredCutoff | undefined, SqlError>
    /** Entries at a cutoff and behind it, by key, behind a key. */
    readonly beyond: (
      cutoff: StoredCutoff,
      after: string,
      limit: number
    ) => Effect.Effect<ReadonlyArray<StoredHead>, SqlError>
    /** Ids of rows of the ledger that are no heads and were recorded before a time, in their order, behind an id. */
    readonly outdated: (
      recordedBefore: number,
      after: number,
      limit: number
    ) => Effect.Effect<ReadonlyArray<number>, SqlError>
    /** Deletes those of the rows of the ledger that are no heads, and gives their ids. */
    readonly deleteLedger: (
      ids: ReadonlyArray<number>
    ) => Effect.Effect<ReadonlyArray<number>, SqlError, WriteTransaction>
    /** Digests of results that no row of the ledger refers to, in their order, behind a digest. */
    readonly unused: (after: string, limit: number) => Effect.Effect<ReadonlyArray<string>, SqlError>
    /** Deletes those of the results that no row of the ledger refers to. */
    readonly deleteResults: (
      digests: ReadonlyArray<string>
    ) => Effect.Effect<ReadonlyArray<{ readonly digest: string; readonly bytes: number }>, SqlError, WriteTransaction>
    /** Those of the blobs that no row of the ledger refers to. */
    readonly unreferenced: (digests: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<string>, SqlError>
    readonly stats: Effect.Effect<StoredStats, SqlError>
  }
>()("@strata/cache/StepCacheStorage") {}

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A step cache in memory, empty. Goes with `DurableWriter.layerMemory`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerMemory: Layer.Layer<StepCacheStorage, never, DurableWriter> = Layer.effect(
  StepCacheStorage,
  Memory.make
)

/**
 * A step cache on SQLite or Postgres, whichever the `SqlClient` in context is of. Creates what is missing of its tables.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerSql: Layer.Layer<StepCacheStorage, SqlError | Migrator.MigrationError, SqlClient.SqlClient> =
  Layer.effect(
    StepCacheStorage,
    SqlClient.SqlClient.use((sql) => sql.onDialectOrElse({ pg: () => Postgres.make, orElse: () => Sqlite.make }))
  )
