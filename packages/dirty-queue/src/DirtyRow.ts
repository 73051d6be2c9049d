/**
 * What the dirty queue shows of itself: registrations, rows, and rows in numbers. Times are milliseconds since the epoch.
 *
 * @since 0.1.0
 */
import type { FollowerName, Path, Scope } from "./Path.ts"
import type { Prefix } from "./Prefix.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A row's lane: changes are live, what `enqueue` added is backfill until it changes.
 *
 * @since 0.1.0
 * @category models
 */
export type Lane = "live" | "backfill"

/**
 * What the newest known change of a path said about it: hints for scheduling. Content is what the content's store has
 * when it is read. All are absent on a backfilled path that has not changed since.
 *
 * @since 0.1.0
 * @category models
 */
export interface Hints {
  readonly op: "put" | "delete" | undefined
  /** Content id: whatever the recorder of the change identifies content by. */
  readonly cid: string | undefined
  /** Modification time of the content, milliseconds since the epoch. */
  readonly mtime: number | undefined
  /** Position of the change in the changelog. */
  readonly seq: number | undefined
}

/**
 * A follower in a scope.
 *
 * @since 0.1.0
 * @category models
 */
export interface Registration {
  readonly id: number
  readonly follower: FollowerName
  readonly scope: Scope
  readonly prefix: Prefix
  /** When `markServed` was last called, milliseconds since the epoch; 0 before that. */
  readonly servedAt: number
}

/**
 * Which registrations are meant; what is absent does not restrict.
 *
 * @since 0.1.0
 * @category models
 */
export interface Filter {
  readonly follower?: FollowerName | undefined
  readonly scope?: Scope | undefined
}

/**
 * A page of rows, in order of registration and path.
 *
 * @since 0.1.0
 * @category models
 */
export interface ListOptions extends Filter {
  readonly prefix?: Prefix | undefined
  /** The last row of the page before. */
  readonly after?: Pick<DirtyRow, "registration" | "path"> | undefined
  /** Default 100. */
  readonly limit?: number | undefined
}

/**
 * A path that is not processed yet. Times are milliseconds since the epoch.
 *
 * - `ready`: may be claimed.
 * - `delayed`: waits for `readyAt`.
 * - `claimed`: is with a worker until it answers, or `readyAt`.
 * - `dead`: waits for a change or `revive`.
 *
 * @since 0.1.0
 * @category models
 */
export interface DirtyRow extends Hints {
  readonly registration: number
  readonly follower: FollowerName
  readonly scope: Scope
  readonly path: Path
  readonly state: "ready" | "delayed" | "claimed" | "dead"
  readonly version: number
  readonly lane: Lane
  /** Absent on dead letters. */
  readonly readyAt: number | undefined
  /** Time of the first change that is not processed. */
  readonly dirtyAt: number
  readonly attempts: number
  readonly failedAt: number | undefined
  readonly lastError: string | undefined
}

/**
 * Rows in numbers.
 *
 * @since 0.1.0
 * @category models
 */
export interface Counts {
  /** All rows: those that are `ready`, `delayed`, `claimed` and `dead`. */
  readonly rows: number
  readonly ready: number
  readonly delayed: number
  readonly claimed: number
  readonly dead: number
  /** Rows whose last attempt failed and that are not dead. */
  readonly failing: number
  /** Rows in the backfill lane that are not dead. */
  readonly backfill: number
  /** Time of the oldest change that is not processed, on rows that are not dead. */
  readonly oldestDirtyAt: number | undefined
}

/**
 * Rows in numbers, in all and by follower.
 *
 * @since 0.1.0
 * @category models
 */
export interface Stats {
  readonly total: Counts
  readonly followers: ReadonlyArray<Counts & { readonly follower: FollowerName }>
}
