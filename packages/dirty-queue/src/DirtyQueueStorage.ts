/**
 * What a backend of the dirty queue has to do, in plain values: `DirtyQueue.makeEncoded` makes the typed service of it.
 * The memory and SQLite tiers are two implementations; `Transition` says what each operation does to a row, and the
 * suites in `@strata/dirty-queue/testing` prove it.
 *
 * Operations that change something run inside of a write of `DurableWriter` (see their `WriteTransaction`), which
 * replays them after a conflict; on a store without transactions each of them is a change of its own
 * (`DirtyQueueStorage<never>`). Times and durations are integer milliseconds.
 *
 * @since 0.1.0
 */
import type { WriteTransaction } from "@strata/durable/DurableWriter"
import type * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import type { RowState } from "./Transition.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A follower's interest in one scope.
 *
 * @since 0.1.0
 * @category models
 */
export interface StoredRegistration {
  readonly id: number
  readonly follower: string
  readonly scope: string
  readonly prefix: string
  readonly servedAt: number
}

/**
 * Which registrations an operation is about; what is absent does not restrict.
 *
 * @since 0.1.0
 * @category models
 */
export interface StorageFilter {
  readonly follower: string | undefined
  readonly scope: string | undefined
}

/**
 * A claimed row.
 *
 * @since 0.1.0
 * @category models
 */
export interface StoredClaim extends Pick<
  RowState,
  "id" | "registration" | "path" | "version" | "op" | "cid" | "mtime" | "seq" | "lane" | "attempts" | "queuedAt"
> {
  readonly lease: number
}

/**
 * What an answer to a claim has to name: the row, the version it was given out with, and the token of the claim. A
 * backend finds the row by its id, or by its registration and path.
 *
 * @since 0.1.0
 * @category models
 */
export interface Receipt extends Pick<RowState, "id" | "registration" | "path" | "version"> {
  readonly lease: number
}

/**
 * A failed attempt.
 *
 * @since 0.1.0
 * @category models
 */
export interface StoredFailure extends Receipt {
  readonly error: string
  /** No attempt can succeed. */
  readonly dead: boolean
  /** From now to the next attempt. */
  readonly delay: number
}

/**
 * What became of a receipt: `Done`; `Superseded`, since a change came in after the claim, and the row is free again;
 * `Lost`, since the row is gone or the lease has passed to another.
 *
 * @since 0.1.0
 * @category models
 */
export type Answer = "Done" | "Superseded" | "Lost"

/**
 * A row as it is listed.
 *
 * @since 0.1.0
 * @category models
 */
export interface StoredRow extends RowState {
  readonly follower: string
  readonly scope: string
}

/**
 * Which rows to list: ordered by registration and path, after a row of the page before.
 *
 * @since 0.1.0
 * @category models
 */
export interface StorageListOptions extends StorageFilter {
  readonly kind: "all" | "failing" | "dead"
  readonly prefix: string
  readonly sinceAtMost: number
  readonly after: { readonly registration: number; readonly path: string } | undefined
  readonly limit: number
}

/**
 * The rows of one registration in numbers. `failing` rows are among `ready`, `delayed` and `claimed`, and so are those
 * of `backfill`; `dead` is apart.
 *
 * @since 0.1.0
 * @category models
 */
export interface StoredCounts {
  readonly follower: string
  readonly rows: number
  readonly ready: number
  readonly delayed: number
  readonly claimed: number
  readonly dead: number
  readonly failing: number
  readonly backfill: number
  /** Of the rows that are not dead. */
  readonly oldestDirtyAt: number | null
}

// ---------------------------------------------------------------------------------------------------------------------
// storage
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A backend. `R` is what its changes run in: a write, or nothing where each of them commits by itself, all of it or
 * nothing.
 *
 * @since 0.1.0
 * @category services
 */
export interface DirtyQueueStorage<R = WriteTransaction> {
  /** The time of the store's own clock, which all its clients share. */
  readonly databaseTime: Effect.Effect<number, SqlError>
  /** Wakes the followers of other processes once the write under way has committed, where the store can. */
  readonly announce?: Effect.Effect<void, SqlError, R> | undefined

  /** Gives the registration that is there afterwards: an existing one stays as it is, whatever its prefix. */
  readonly register: (
    now: number,
    options: { readonly follower: string; readonly scope: string; readonly prefix: string }
  ) => Effect.Effect<{ readonly registration: StoredRegistration; readonly created: boolean }, SqlError, R>
  /** Removes a registration with its rows, and gives their number. */
  readonly unregister: (
    now: number,
    options: { readonly follower: string; readonly scope: string }
  ) => Effect.Effect<number, SqlError, R>
  /** In the order of registration. */
  readonly registrations: (filter: StorageFilter) => Effect.Effect<ReadonlyArray<StoredRegistration>, SqlError>

  /**
   * Inserts rows into the backfill lane, and refreshes those that are there, all with one newly drawn version. The
   * paths are distinct, and get their places in the order in which they come.
   */
  readonly enqueue: (
    now: number,
    options: { readonly registration: number; readonly paths: ReadonlyArray<string> }
  ) => Effect.Effect<void, SqlError, R>
  /** Revives dead letters with one newly drawn version, and gives their number. */
  readonly revive: (
    now: number,
    options: StorageFilter & { readonly prefix: string; readonly path: string | undefined }
  ) => Effect.Effect<number, SqlError, R>

  /**
   * Claims up to `limit` ready rows, in order of their place in the queue, with one newly drawn token. What is ready is
   * taken by `readyAt`, then `id`. Of each 1,000 rows that are asked for, the backfill lane may take
   * `backfillPermille` before the live lane, and keeps a remainder for the next claim while it uses its share up; each
   * lane takes what the other leaves. Rows without attempts left become dead letters and are counted instead.
   * `undefined` when there is no such registration. Nothing is written when nothing is ready.
   */
  readonly claim: (
    now: number,
    options: {
      readonly follower: string
      readonly scope: string
      readonly limit: number
      readonly leaseFor: number
      readonly maxAttempts: number
      readonly backfillPermille: number
    }
  ) => Effect.Effect<{ readonly claims: ReadonlyArray<StoredClaim>; readonly dead: number } | undefined, SqlError, R>
  /** A claim at the store's own time, which it gives too, where the store can do both in one. */
  readonly claimNow?:
    | ((
        options: Parameters<DirtyQueueStorage["claim"]>[1]
      ) => Effect.Effect<
        { readonly now: number; readonly claims: ReadonlyArray<StoredClaim>; readonly dead: number } | undefined,
        SqlError,
        R
      >)
    | undefined
  /** Removes rows. Answers are in the order of the receipts, here and below. */
  readonly ack: (receipts: ReadonlyArray<Receipt>) => Effect.Effect<ReadonlyArray<Answer>, SqlError, R>
  readonly fail: (
    now: number,
    failures: ReadonlyArray<StoredFailure>,
    options: { readonly maxAttempts: number; readonly minInterval: number }
  ) => Effect.Effect<{ readonly answers: ReadonlyArray<Answer>; readonly dead: number }, SqlError, R>
  readonly release: (
    now: number,
    receipts: ReadonlyArray<Receipt>,
    delay: number
  ) => Effect.Effect<ReadonlyArray<Answer>, SqlError, R>
  readonly renew: (
    now: number,
    receipts: ReadonlyArray<Receipt>,
    leaseFor: number
  ) => Effect.Effect<ReadonlyArray<Answer>, SqlError, R>

  readonly list: (options: StorageListOptions) => Effect.Effect<ReadonlyArray<StoredRow>, SqlError>
  /** One element for each registration, in the order of registration. */
  readonly stats: (now: number, filter: StorageFilter) => Effect.Effect<ReadonlyArray<StoredCounts>, SqlError>
  readonly nextReadyAt: (filter: StorageFilter) => Effect.Effect<number | null, SqlError>
  /** Scopes of a follower with ready rows, least recently served first. */
  readonly readyScopes: (
    now: number,
    options: { readonly follower: string; readonly limit: number }
  ) => Effect.Effect<ReadonlyArray<string>, SqlError>
  /** Puts a scope behind all other scopes of its follower. False when there is no such registration. */
  readonly markServed: (
    now: number,
    options: { readonly follower: string; readonly scope: string }
  ) => Effect.Effect<boolean, SqlError, R>

  /** The version, or token, drawn last. */
  readonly currentVersion: Effect.Effect<number, SqlError>
  /** Leaves out the next `jump` versions and releases every claim. */
  readonly newEpoch: (now: number, jump: number) => Effect.Effect<void, SqlError, R>
}
