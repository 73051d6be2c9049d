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
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import * as Memory from "./internal/stepCacheMemory.ts"
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
    readonly find: (key: string) => Effect.Effect<StoredEntry | undefined, SqlError>
    /**
     * Adds a row to the ledger and makes it the entry of its key, which has none. The result is stored once for each
     * digest, and is replaced when what is stored differs. Gives the id of the row.
     */
    readonly insert: (
      now: number,
      record: StoredRecord & { readonly value: string }
    ) => Effect.Effect<number, SqlError, WriteTransaction>
    /** Takes the head of a key away if it names this row, and tells whether it did. The row stays. */
    readonly remove: (key: string, ledger: number) => Effect.Effect<boolean, SqlError, WriteTransaction>
    readonly touch: (now: number, key: string, ledger: number) => Effect.Effect<void, SqlError, WriteTransaction>
    /** Entries by key, behind a key, without their results. */
    readonly heads: (after: string, limit: number) => Effect.Effect<ReadonlyArray<StoredHead>, SqlError>
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
 * A step cache on SQLite. Creates what is missing of its tables.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerSql: Layer.Layer<StepCacheStorage, SqlError | Migrator.MigrationError, SqlClient.SqlClient> =
  Layer.effect(StepCacheStorage, Sqlite.make)
