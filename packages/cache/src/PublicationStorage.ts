/**
 * What publication remembers, in plain values: for each shared tier which recordings are there, and why others are not.
 * It lives in the database of the local step cache, so that it commits with the acknowledgement of the publication.
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
import * as Memory from "./internal/publicationMemory.ts"
import * as Postgres from "./internal/publicationPostgres.ts"
import * as Sqlite from "./internal/publicationSqlite.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A recording under its key.
 *
 * @since 0.1.0
 * @category models
 */
export interface StoredPublished {
  readonly key: string
  readonly recording: string
}

/**
 * Names a refusal: there is one for each recording, stage and kind.
 *
 * @since 0.1.0
 * @category models
 */
export interface RefusalName {
  readonly recording: string
  readonly stage: string
  readonly kind: string
}

/**
 * A refusal.
 *
 * @since 0.1.0
 * @category models
 */
export interface StoredRefusal extends RefusalName {
  readonly key: string
  /** JSON. */
  readonly refusal: string
  /** Milliseconds since the epoch. */
  readonly refusedAt: number
}

// ---------------------------------------------------------------------------------------------------------------------
// service
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A backend of publication. Every operation names the tier.
 *
 * @since 0.1.0
 * @category services
 */
export class PublicationStorage extends Context.Service<
  PublicationStorage,
  {
    /** What of these keys is in the tier. */
    readonly published: (
      tier: string,
      keys: ReadonlyArray<string>
    ) => Effect.Effect<ReadonlyArray<StoredPublished>, SqlError>
    readonly publishedCount: (tier: string) => Effect.Effect<number, SqlError>
    /** From now on these recordings are in the tier, and nothing refuses them. `now`: milliseconds since the epoch. */
    readonly publish: (
      now: number,
      tier: string,
      published: ReadonlyArray<StoredPublished>
    ) => Effect.Effect<void, SqlError, WriteTransaction>
    /** Nothing is known about these keys any more. */
    readonly forget: (tier: string, keys: ReadonlyArray<string>) => Effect.Effect<void, SqlError, WriteTransaction>

    readonly isRefused: (tier: string, name: RefusalName) => Effect.Effect<boolean, SqlError>
    /** Keeps a refusal, and tells whether it is new. */
    readonly refuse: (tier: string, refusal: StoredRefusal) => Effect.Effect<boolean, SqlError, WriteTransaction>
    /** Refusals of what is not in the tier since, the latest first. */
    readonly refusals: (tier: string, limit: number) => Effect.Effect<ReadonlyArray<StoredRefusal>, SqlError>

    /** Whether the entries from before the tier was known were all enqueued. */
    readonly isBackfilled: (tier: string) => Effect.Effect<boolean, SqlError>
    readonly setBackfilled: (now: number, tier: string) => Effect.Effect<void, SqlError, WriteTransaction>
  }
>()("@strata/cache/PublicationStorage") {}

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * In memory. Goes with `DurableWriter.layerMemory`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerMemory: Layer.Layer<PublicationStorage, never, DurableWriter> = Layer.effect(
  PublicationStorage,
  Memory.make
)

/**
 * On SQLite or Postgres, whichever the `SqlClient` in context is of. Creates what is missing of its tables.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerSql: Layer.Layer<PublicationStorage, SqlError | Migrator.MigrationError, SqlClient.SqlClient> =
  Layer.effect(
    PublicationStorage,
    SqlClient.SqlClient.use((sql) => sql.onDialectOrElse({ pg: () => Postgres.make, orElse: () => Sqlite.make }))
  )
