/**
 * What still has to be processed. For each follower that is registered in a scope, the queue holds one row per path
 * that changed and was not yet processed, however often it changed: a follower claims ready rows for the time of a
 * lease, processes the current content of their paths, and acknowledges them. Rows come from the changelog, whose
 * entries turn into rows in the same write, and from backfills.
 *
 * Claiming and answering belong to the runtime of an app. No public surface, such as a web API, may offer them; for
 * surfaces there is {@link Reader}.
 *
 * @since 0.1.0
 */
import type { DurableWriter } from "@strata/durable/DurableWriter"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Option from "effect/Option"
import type * as Migrator from "effect/sql/Migrator"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { ChangeSignal } from "./ChangeSignal.ts"
import type { DirtyQueueError } from "./DirtyQueueError.ts"
import type { Answer, DirtyQueueStorage } from "./DirtyQueueStorage.ts"
import type { DirtyRow, Filter, Hints, Lane, ListOptions, Registration, Stats } from "./DirtyRow.ts"
import * as Memory from "./internal/memoryQueue.ts"
import * as Prefixed from "./internal/prefixedQueue.ts"
import * as Service from "./internal/queueService.ts"
import * as SqlStorage from "./internal/sqlStorage.ts"
import type { MemoryStore } from "./MemoryStore.ts"
import type { FollowerName, Path, Scope } from "./Path.ts"
import type { Prefix } from "./Prefix.ts"

export {
  /**
   * @since 0.1.0
   * @category errors
   */
  DirtyQueueError
} from "./DirtyQueueError.ts"

export type {
  /**
   * @since 0.1.0
   * @category models
   */
  Answer
} from "./DirtyQueueStorage.ts"

/**
 * @since 0.1.0
 * @category models
 */
export type { Counts, DirtyRow, Filter, Hints, Lane, ListOptions, Registration, Stats } from "./DirtyRow.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * How rows are leased and retried. Durations are rounded to milliseconds.
 *
 * @since 0.1.0
 * @category models
 */
export interface DirtyQueueOptions {
  /** How long a claim lasts unless it is renewed. Default 30 seconds. */
  readonly lease?: Duration.Input | undefined
  /** Deliveries since the last change of a path, after which it becomes a dead letter. Default 8. */
  readonly maxAttempts?: number | undefined
  /** Delay after the first failed attempt. Default 1 second. */
  readonly retryBase?: Duration.Input | undefined
  /** By what each further failure multiplies the delay. Default 2. */
  readonly retryFactor?: number | undefined
  /** What no delay exceeds. Default 5 minutes. */
  readonly retryCap?: Duration.Input | undefined
  /** The part of a delay, from 0 to 1, by which chance shortens it at most. Default 0.2. */
  readonly retryJitter?: number | undefined
  /** A path that failed is not attempted again before this time, even if it changes. Default 500 ms. */
  readonly minRetryInterval?: Duration.Input | undefined
  /** The part of each claim, from 0 to 1, that backfilled rows get before live ones. Default 0.25. */
  readonly backfillShare?: number | undefined
  /**
   * Whose time counts. `effect`, Effect's Clock, is right where all workers run on one machine. `database` asks the
   * store, so that machines whose clocks disagree agree. Default `database` on Postgres and D1, and otherwise `effect`.
   */
  readonly clock?: "effect" | "database" | undefined
}

/**
 * The right to process a path until the lease ends.
 *
 * @since 0.1.0
 * @category models
 */
export interface Claim extends Hints {
  readonly follower: FollowerName
  readonly scope: Scope
  readonly path: Path
  /** Names the state of the row that was given out. */
  readonly version: number
  /** Names the call of `claim`. */
  readonly lease: number
  /** Names the row, with `path` or with `id`. */
  readonly registration: number
  readonly id: number
  readonly lane: Lane
  /** Deliveries since the last change, this one included. */
  readonly attempts: number
  /** When the row became ready, milliseconds since the epoch. */
  readonly queuedAt: number
}

/**
 * A claim that could not be processed.
 *
 * @since 0.1.0
 * @category models
 */
export interface Failure {
  readonly claim: Claim
  /** Kept with the row; cut to 2,000 characters. */
  readonly error: string
  /** `retry` (default) until there are no attempts left, or `dead` at once when no attempt can succeed. */
  readonly kind?: "retry" | "dead" | undefined
  /** Until the next attempt, in place of the delay that {@link DirtyQueueOptions} give. */
  readonly delay?: Duration.Input | undefined
}

// ---------------------------------------------------------------------------------------------------------------------
// service
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The queue. What changes something runs in a write of the `DurableWriter` that the queue was made with, and joins one
 * that is under way, so that an index and its acknowledgement can commit together. A queue that was made without one, as
 * on D1, joins none.
 *
 * @since 0.1.0
 * @category services
 */
export class DirtyQueue extends Context.Service<
  DirtyQueue,
  {
    /**
     * From now on every change in `scope` whose path starts with exactly `prefix` (default: every change) makes a row
     * for `follower`. Content from before has to be enqueued. Does nothing when the follower is registered so already,
     * and fails with `PrefixMismatch` when it is registered with another prefix, which only `unregister` can change.
     * Fails with `NameTooLong` when a name has more bytes than `Path` takes.
     */
    readonly register: (options: {
      readonly follower: FollowerName
      readonly scope: Scope
      readonly prefix?: Prefix | undefined
    }) => Effect.Effect<Registration & { readonly created: boolean }, SqlError | DirtyQueueError>
    /** Removes a registration with all its rows, and gives their number: 0 when there was none. */
    readonly unregister: (options: {
      readonly follower: FollowerName
      readonly scope: Scope
    }) => Effect.Effect<number, SqlError>
    /** In the order of registration. */
    readonly registrations: (filter?: Filter) => Effect.Effect<ReadonlyArray<Registration>, SqlError>

    /**
     * Makes paths dirty for one follower, without a change: in the backfill lane, unless their rows are live already.
     * A claim that is out on one of them is superseded, a dead letter is revived. All in one write: bring millions of
     * paths in several calls. Fails with `NotRegistered`, `OutsidePrefix` or `NameTooLong`.
     */
    readonly enqueue: (options: {
      readonly follower: FollowerName
      readonly scope: Scope
      readonly paths: ReadonlyArray<Path>
    }) => Effect.Effect<void, SqlError | DirtyQueueError>
    /** Gives dead letters all their attempts again, from now on, and tells how many. */
    readonly revive: (
      options?: Filter & { readonly prefix?: Prefix | undefined; readonly path?: Path | undefined }
    ) => Effect.Effect<number, SqlError>

    /**
     * Claims up to `limit` rows (100,000 at most) that are ready, for `lease` (default: the queue's): in each lane those that became
     * ready first. Backfilled rows get their share of every claim, and each lane gets what the other leaves. The
     * delivery counts as an attempt; a row that has none left, since no worker ever answered, becomes a dead letter and
     * is not delivered. Costs the same however many rows there are, and writes nothing when none is ready.
     */
    readonly claim: (options: {
      readonly follower: FollowerName
      readonly scope: Scope
      readonly limit: number
      readonly lease?: Duration.Input | undefined
    }) => Effect.Effect<ReadonlyArray<Claim>, SqlError | DirtyQueueError>
    /**
     * Processed: removes the rows. In the order of the claims, each answer is
     *
     * - `Done`,
     * - `Superseded` when the path changed after it was claimed: the row is free again, for the change, or
     * - `Lost` when another has claimed it since the lease ended, or the row is gone. The work counts for nothing; roll
     *   back what can be rolled back.
     */
    readonly ack: (claims: ReadonlyArray<Claim>) => Effect.Effect<ReadonlyArray<Answer>, SqlError>
    /**
     * Not processed: the row is retried after a growing delay, or becomes a dead letter. When the answer is
     * `Superseded`, the change gets its attempt after the minimum retry interval.
     */
    readonly fail: (failures: ReadonlyArray<Failure>) => Effect.Effect<ReadonlyArray<Answer>, SqlError>
    /**
     * Gives claims back: the attempt does not count, and the rows have their places in the queue again, or come back
     * after `delay`.
     */
    readonly release: (
      claims: ReadonlyArray<Claim>,
      options?: { readonly delay?: Duration.Input | undefined }
    ) => Effect.Effect<ReadonlyArray<Answer>, SqlError>
    /**
     * Starts leases anew, from now on. A claim that is answered `Superseded` or `Lost` is over: its row may be with
     * another worker at once, so stop working on it.
     */
    readonly renew: (
      claims: ReadonlyArray<Claim>,
      options?: { readonly lease?: Duration.Input | undefined }
    ) => Effect.Effect<ReadonlyArray<Answer>, SqlError>

    /** Rows that are not processed, dead letters too. */
    readonly pending: (
      options?: ListOptions & {
        /**
         * Only rows with a change that is not processed and was made when {@link currentVersion} had at most this
         * value: once there are none, everything recorded until then is processed.
         */
        readonly versionAtMost?: number | undefined
      }
    ) => Effect.Effect<ReadonlyArray<DirtyRow>, SqlError>
    /** Rows whose last attempt failed, and that will be attempted again. */
    readonly failing: (options?: ListOptions) => Effect.Effect<ReadonlyArray<DirtyRow>, SqlError>
    /** Rows that will not be attempted again. */
    readonly deadLetters: (options?: ListOptions) => Effect.Effect<ReadonlyArray<DirtyRow>, SqlError>
    /** Counts every row, so not for every tick. Sets the gauges of `Metrics`. */
    readonly stats: (filter?: Filter) => Effect.Effect<Stats, SqlError>
    /** When the next row is ready, possibly in the past: milliseconds since the epoch. */
    readonly nextReadyAt: (filter?: Filter) => Effect.Effect<Option.Option<number>, SqlError>
    /** Scopes in which the follower has ready rows, least recently served first. Default limit 100. */
    readonly readyScopes: (options: {
      readonly follower: FollowerName
      readonly limit?: number | undefined
    }) => Effect.Effect<ReadonlyArray<Scope>, SqlError>
    /** Puts a scope behind all other scopes of the follower. */
    readonly markServed: (options: {
      readonly follower: FollowerName
      readonly scope: Scope
    }) => Effect.Effect<void, SqlError | DirtyQueueError>

    /** The version drawn last: every change that is recorded from now on has a greater one. */
    readonly currentVersion: Effect.Effect<number, SqlError>
    /**
     * To be called once on a database that was restored from a backup: takes every row back from workers that claimed
     * it before or after the backup was made, whose answers are `Lost` from now on.
     */
    readonly newEpoch: Effect.Effect<void, SqlError>
  }
>()("@strata/dirty-queue/DirtyQueue") {}

/**
 * The part of the queue that only looks: what a public surface may show.
 *
 * @since 0.1.0
 * @category services
 */
export type Reader = Pick<
  DirtyQueue["Service"],
  "registrations" | "pending" | "failing" | "deadLetters" | "stats" | "nextReadyAt"
>

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The queue over any storage.
 *
 * @since 0.1.0
 * @category constructors
 */
export const makeEncoded: (
  storage: DirtyQueueStorage,
  options?: DirtyQueueOptions
) => Effect.Effect<DirtyQueue["Service"], never, DurableWriter | ChangeSignal> = Service.make

/**
 * The queue over a storage without transactions: each operation is a change of its own, and none joins a write that is
 * under way.
 *
 * @since 0.1.0
 * @category constructors
 */
export const makeEncodedUnjoined: (
  storage: DirtyQueueStorage<never>,
  options?: DirtyQueueOptions
) => Effect.Effect<DirtyQueue["Service"], never, ChangeSignal> = Service.makeUnjoined

/**
 * The queue in memory: for tests, and where nothing has to survive the process.
 *
 * @since 0.1.0
 * @category constructors
 */
export const makeMemory = (
  options?: DirtyQueueOptions
): Effect.Effect<DirtyQueue["Service"], never, MemoryStore | DurableWriter | ChangeSignal> =>
  Effect.flatMap(Memory.make, (storage) => makeEncoded(storage, options))

/**
 * The queue on SQLite or Postgres, whichever the `SqlClient` in context is of. Creates what is missing of its tables.
 *
 * @since 0.1.0
 * @category constructors
 */
export const makeSql = (
  options?: DirtyQueueOptions
): Effect.Effect<
  DirtyQueue["Service"],
  SqlError | Migrator.MigrationError,
  SqlClient.SqlClient | DurableWriter | ChangeSignal
> => Effect.flatMap(SqlStorage.queue(options), ({ options, storage }) => makeEncoded(storage, options))

/**
 * The reading part of a queue, and nothing else.
 *
 * @since 0.1.0
 * @category constructors
 */
export const reader = (queue: DirtyQueue["Service"]): Reader => ({
  registrations: queue.registrations,
  pending: queue.pending,
  failing: queue.failing,
  deadLetters: queue.deadLetters,
  stats: queue.stats,
  nextReadyAt: queue.nextReadyAt
})

/**
 * The queue as seen from inside of a prefix: paths and prefixes are given and taken without it, and lists hold only
 * what it covers. Counts and times are those of the whole queue. Register followers through the view: `claim` fails
 * with `OutsidePrefix`, and releases what it claimed, when a registration goes beyond the prefix. A path that equals
 * the prefix has no name inside of it; it becomes a dead letter when it is claimed.
 *
 * @since 0.1.0
 * @category constructors
 */
export const prefixed: (queue: DirtyQueue["Service"], prefix: Prefix) => DirtyQueue["Service"] = Prefixed.make

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The queue in memory.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerMemory = (
  options?: DirtyQueueOptions
): Layer.Layer<DirtyQueue, never, MemoryStore | DurableWriter | ChangeSignal> =>
  Layer.effect(DirtyQueue, makeMemory(options))

/**
 * The queue on SQLite or Postgres, see {@link makeSql}.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  options?: DirtyQueueOptions
): Layer.Layer<DirtyQueue, SqlError | Migrator.MigrationError, SqlClient.SqlClient | DurableWriter | ChangeSignal> =>
  Layer.effect(DirtyQueue, makeSql(options))
