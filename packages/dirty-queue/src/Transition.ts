/**
 * The life of a dirty row as pure functions, one for each thing that can happen to it. The memory tier is made of them;
 * the triggers and statements of the SQL tiers say the same in SQL, which the lockstep test holds them to.
 *
 * Versions and leases are drawn from one rising counter, so on a claimed row a version above the lease says that a
 * change came in after the claim.
 *
 * @since 0.1.0
 */

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Everything that is stored about one path of one registration. Times are milliseconds since the epoch.
 *
 * @since 0.1.0
 * @category models
 */
export interface RowState {
  /** Rises with the order of insertion; breaks ties between rows that became ready at the same time. */
  readonly id: number
  /** The registration (follower and scope) that the row belongs to. */
  readonly registration: number
  readonly path: string
  /** Drawn anew by every change, never used again: what an acknowledgement has to name. */
  readonly version: number
  /** No change that is still unprocessed is older than this version. */
  readonly since: number
  /** Operation, content id and modification time of the change with the greatest `seq`: hints, never content. */
  readonly op: "put" | "delete" | null
  readonly cid: string | null
  readonly mtime: number | null
  /** Position of that change in the changelog; 0 before the first one. */
  readonly seq: number
  /** 0 live, 1 backfill. */
  readonly lane: 0 | 1
  /** From when on the row may be claimed: while it is claimed, the end of the lease. `null` on a dead letter. */
  readonly readyAt: number | null
  /** The place in the queue, kept while the row is claimed, and taken again when it is released. */
  readonly queuedAt: number
  /** Time of the first change that is still unprocessed. */
  readonly dirtyAt: number
  /** Token of the claim that holds, or held until it expired, the row. */
  readonly lease: number | null
  /** Deliveries since the last change. */
  readonly attempts: number
  /** No change makes the row ready before this time. */
  readonly retryFloor: number
  readonly failedAt: number | null
  readonly lastError: string | null
}

/**
 * What the changelog says about a path.
 *
 * @since 0.1.0
 * @category models
 */
export interface AppliedChange {
  readonly version: number
  readonly seq: number
  readonly op: "put" | "delete"
  readonly cid: string | null
  readonly mtime: number | null
  /** Time of the change. */
  readonly at: number
}

// ---------------------------------------------------------------------------------------------------------------------
// changes
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A row for a path that had none.
 *
 * @since 0.1.0
 * @category transitions
 */
export const insert = (
  row: Pick<RowState, "id" | "registration" | "path" | "version" | "lane">,
  at: number
): RowState => ({
  id: row.id,
  registration: row.registration,
  path: row.path,
  version: row.version,
  since: row.version,
  op: null,
  cid: null,
  mtime: null,
  seq: 0,
  lane: row.lane,
  readyAt: at,
  queuedAt: at,
  dirtyAt: at,
  lease: null,
  attempts: 0,
  retryFloor: 0,
  failedAt: null,
  lastError: null
})

/**
 * What the trigger on the changelog does for one registration that covers the path: a live row, new or refreshed.
 *
 * @since 0.1.0
 * @category transitions
 */
export const applyChange = (
  row: RowState | undefined,
  identity: Pick<RowState, "id" | "registration" | "path">,
  change: AppliedChange
): RowState => {
  const fresh =
    row === undefined
      ? insert({ ...identity, version: change.version, lane: 0 }, change.at)
      : { ...refresh(row, change.version, change.at), lane: 0 as const }
  return change.seq > fresh.seq
    ? { ...fresh, op: change.op, cid: change.cid, mtime: change.mtime, seq: change.seq }
    : fresh
}

/**
 * What a change and a backfill have in common on a row that is there. The version is new and the attempts start again.
 *
 * - A claimed row stays with its worker; its first change takes the place in the queue that the row has afterwards.
 * - A row that is ready keeps its place, so one that changes all the time is not put off.
 * - A row that waits for its next attempt, or is dead, becomes ready, but not before the retry floor.
 *
 * @since 0.1.0
 * @category transitions
 */
export const refresh = (row: RowState, version: number, at: number): RowState => {
  const from = Math.max(at, row.retryFloor)
  if (row.lease === null) {
    const readyAt = row.readyAt === null ? from : Math.min(row.readyAt, from)
    return { ...row, version, attempts: 0, readyAt, queuedAt: readyAt }
  }
  return { ...row, version, attempts: 0, queuedAt: isSuperseded(row) ? row.queuedAt : from }
}

/**
 * A dead letter gets all its attempts again.
 *
 * @since 0.1.0
 * @category transitions
 */
export const revive = (row: RowState, version: number, now: number): RowState => {
  const readyAt = Math.max(now, row.retryFloor)
  return { ...row, version, attempts: 0, readyAt, queuedAt: readyAt }
}

// ---------------------------------------------------------------------------------------------------------------------
// claims
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Whether a change came in after the row was claimed.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isSuperseded = (row: RowState): boolean => row.lease !== null && row.version > row.lease

/**
 * A delivery, counted here and not when it fails, so that a row which kills its worker runs out of attempts too: then
 * it becomes a dead letter instead.
 *
 * @since 0.1.0
 * @category transitions
 */
export const claim = (
  row: RowState,
  options: { readonly now: number; readonly token: number; readonly leaseFor: number; readonly maxAttempts: number }
): RowState =>
  row.attempts < options.maxAttempts
    ? { ...row, lease: options.token, readyAt: options.now + options.leaseFor, attempts: row.attempts + 1 }
    : {
        ...row,
        lease: null,
        readyAt: null,
        failedAt: options.now,
        lastError: row.lastError ?? unanswered
      }

/**
 * The error of a dead letter whose workers never answered.
 *
 * @since 0.1.0
 * @category constants
 */
export const unanswered = "No worker that was given this path answered before its lease expired"

/**
 * The row that an acknowledgement leaves when a change came in meanwhile: free, with what that change gave it, and
 * without a history of failures.
 *
 * @since 0.1.0
 * @category transitions
 */
export const ackSuperseded = (row: RowState & { readonly lease: number }): RowState => ({
  ...row,
  since: row.lease + 1,
  dirtyAt: row.queuedAt,
  readyAt: row.queuedAt,
  lease: null,
  retryFloor: 0,
  failedAt: null,
  lastError: null
})

/**
 * A failed attempt: the next one comes after `delay`, or never when there is none left or none can succeed. If a change
 * came in meanwhile, its own first attempt comes as early as the minimum interval allows.
 *
 * @since 0.1.0
 * @category transitions
 */
export const fail = (
  row: RowState,
  options: {
    readonly now: number
    readonly error: string
    readonly dead: boolean
    readonly delay: number
    readonly maxAttempts: number
    readonly minInterval: number
  }
): RowState => {
  const retryFloor = options.now + options.minInterval
  const readyAt = isSuperseded(row)
    ? Math.max(row.queuedAt, retryFloor)
    : options.dead || row.attempts >= options.maxAttempts
      ? null
      : Math.max(options.now + options.delay, retryFloor)
  return {
    ...row,
    readyAt,
    queuedAt: readyAt ?? row.queuedAt,
    lease: null,
    retryFloor,
    failedAt: options.now,
    lastError: options.error
  }
}

/**
 * A claim given back unused: the attempt does not count, and without a delay the row has its place in the queue again.
 *
 * @since 0.1.0
 * @category transitions
 */
export const release = (row: RowState, now: number, delay: number): RowState => {
  if (isSuperseded(row)) return free(row)
  const readyAt = delay > 0 ? now + delay : row.queuedAt
  return { ...row, readyAt, queuedAt: readyAt, lease: null, attempts: Math.max(row.attempts - 1, 0) }
}

/**
 * A longer lease, unless a change came in: then the row is free.
 *
 * @since 0.1.0
 * @category transitions
 */
export const renew = (row: RowState, now: number, leaseFor: number): RowState =>
  isSuperseded(row) ? free(row) : { ...row, readyAt: now + leaseFor }

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const free = (row: RowState): RowState => ({ ...row, readyAt: row.queuedAt, lease: null })
