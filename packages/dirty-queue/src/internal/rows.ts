import type { Claim } from "../DirtyQueue.ts"
import type { StoredClaim, StoredCounts, StoredRegistration, StoredRow } from "../DirtyQueueStorage.ts"
import type { Counts, DirtyRow, Hints, Lane, Registration, Stats } from "../DirtyRow.ts"
import type { FollowerName, Path, Scope } from "../Path.ts"
import type { RowState } from "../Transition.ts"

/*
 * From plain values to typed ones. Names come from the queue's own tables, into which they went as branded values, so
 * they are not checked again on every claim.
 */

export const toScope = (scope: string): Scope => scope as Scope

const toPath = (path: string): Path => path as Path

const toFollower = (follower: string): FollowerName => follower as FollowerName

export const toRegistration = (stored: StoredRegistration): Registration => ({
  id: stored.id,
  follower: toFollower(stored.follower),
  scope: toScope(stored.scope),
  prefix: stored.prefix,
  servedAt: stored.servedAt
})

export const toClaim = (follower: FollowerName, scope: Scope, row: StoredClaim): Claim => ({
  follower,
  scope,
  path: toPath(row.path),
  version: row.version,
  lease: row.lease,
  id: row.id,
  registration: row.registration,
  op: row.op ?? undefined,
  cid: row.cid ?? undefined,
  mtime: row.mtime ?? undefined,
  seq: row.seq === 0 ? undefined : row.seq,
  lane: toLane(row.lane),
  attempts: row.attempts,
  queuedAt: row.queuedAt
})

export const toDirtyRow = (row: StoredRow, now: number): DirtyRow => ({
  registration: row.registration,
  follower: toFollower(row.follower),
  scope: toScope(row.scope),
  path: toPath(row.path),
  state: toState(row, now),
  version: row.version,
  lane: toLane(row.lane),
  ...toHints(row),
  readyAt: row.readyAt ?? undefined,
  dirtyAt: row.dirtyAt,
  attempts: row.attempts,
  failedAt: row.failedAt ?? undefined,
  lastError: row.lastError ?? undefined
})

export const toStats = (stored: ReadonlyArray<StoredCounts>): Stats => {
  const followers = new Map<string, Counts>()
  for (const counts of stored) {
    followers.set(counts.follower, add(followers.get(counts.follower) ?? zero, counts))
  }
  return {
    total: stored.reduce(add, zero),
    followers: Array.from(followers, ([follower, counts]) => ({ ...counts, follower: toFollower(follower) }))
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const toLane = (lane: 0 | 1): Lane => (lane === 0 ? "live" : "backfill")

const toHints = (row: Pick<RowState, "op" | "cid" | "mtime" | "seq">): Hints => ({
  op: row.op ?? undefined,
  cid: row.cid ?? undefined,
  mtime: row.mtime ?? undefined,
  seq: row.seq === 0 ? undefined : row.seq
})

/** A row whose lease has ended is as free as any other. */
const toState = (row: RowState, now: number): DirtyRow["state"] => {
  if (row.readyAt === null) return "dead"
  if (row.readyAt <= now) return "ready"
  return row.lease === null ? "delayed" : "claimed"
}

const zero: Counts = {
  rows: 0,
  ready: 0,
  delayed: 0,
  claimed: 0,
  dead: 0,
  failing: 0,
  backfill: 0,
  oldestDirtyAt: undefined
}

const add = (self: Counts, that: StoredCounts): Counts => ({
  rows: self.rows + that.rows,
  ready: self.ready + that.ready,
  delayed: self.delayed + that.delayed,
  claimed: self.claimed + that.claimed,
  dead: self.dead + that.dead,
  failing: self.failing + that.failing,
  backfill: self.backfill + that.backfill,
  oldestDirtyAt:
    that.oldestDirtyAt === null ? self.oldestDirtyAt : Math.min(self.oldestDirtyAt ?? Infinity, that.oldestDirtyAt)
})
