/**
 * What a backend of the changelog has to do, in plain values: `Changelog.makeEncoded` makes the typed service of it.
 *
 * @since 0.1.0
 */
import type { WriteTransaction } from "@strata/durable/DurableWriter"
import type * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A change to be appended.
 *
 * @since 0.1.0
 * @category models
 */
export interface StoredChange {
  readonly scope: string
  readonly path: string
  readonly op: "put" | "delete"
  /** Always `null` on a `delete`. */
  readonly cid: string | null
  readonly mtime: number | null
}

/**
 * A recorded change.
 *
 * @since 0.1.0
 * @category models
 */
export interface StoredEntry extends StoredChange {
  readonly seq: number
  readonly recordedAt: number
}

// ---------------------------------------------------------------------------------------------------------------------
// storage
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A backend. `R` is what its changes run in, see `DirtyQueueStorage`.
 *
 * @since 0.1.0
 * @category services
 */
export interface ChangelogStorage<R = WriteTransaction> {
  /** The time of the store's own clock, in milliseconds. */
  readonly databaseTime: Effect.Effect<number, SqlError>
  /**
   * Appends changes in the order in which they come, with rising sequence numbers that were never used before, applies
   * each to the dirty rows of every registration that covers it, with a newly drawn version (see
   * `Transition.applyChange`), and gives the first and the last sequence number.
   */
  readonly append: (
    now: number,
    changes: ReadonlyArray<StoredChange>
  ) => Effect.Effect<{ readonly first: number; readonly last: number }, SqlError, R>
  /** Appends at the store's own time, where the store can do both in one. */
  readonly appendNow?:
    | ((
        changes: ReadonlyArray<StoredChange>
      ) => Effect.Effect<{ readonly first: number; readonly last: number }, SqlError, R>)
    | undefined
  /** Entries with a greater `seq` than `after`, in order. */
  readonly read: (options: {
    readonly scope: string | undefined
    readonly prefix: string
    readonly after: number
    readonly limit: number
  }) => Effect.Effect<ReadonlyArray<StoredEntry>, SqlError>
  /** The lowest `seq` of an entry that was recorded at `time` or later. */
  readonly firstSince: (time: number) => Effect.Effect<number | undefined, SqlError>
  /** Removes up to `limit` entries with a `seq` below `before`, oldest first, and gives their number. */
  readonly prune: (options: {
    readonly scope: string | undefined
    readonly prefix: string
    readonly before: number
    readonly limit: number
  }) => Effect.Effect<number, SqlError, R>
}
