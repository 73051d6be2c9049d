import { unanswered } from "../Transition.ts"
import { refreshed } from "./schema.ts"

/*
 * Every statement is one fixed text, so that the driver finds it prepared, and batches are one JSON parameter, so that
 * no batch size meets a limit on bind parameters. What finds rows names its index or joins in a fixed order
 * (`CROSS JOIN`): statistics cannot turn a claim into a scan and a sort.
 */

// ---------------------------------------------------------------------------------------------------------------------
// changelog
// ---------------------------------------------------------------------------------------------------------------------

/** Parameters: `[[scope, path, op, cid, mtime], …]` as JSON, the time. */
export const appendChanges = `
INSERT INTO strata_changelog (scope, path, op, cid, mtime, recorded_at)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, ?2 FROM json_each(?1)`

/** The sequence number given last, also when its entry is pruned. */
export const lastSeq = `SELECT seq FROM sqlite_sequence WHERE name = 'strata_changelog'`

/** Parameters: prefix, first sequence number after which to read, limit, and the scope if there is one. */
export const readChanges = (scoped: boolean): string => `
SELECT seq, scope, path, op, cid, mtime, recorded_at
FROM strata_changelog ${scoped ? "INDEXED BY strata_changelog_scope" : "NOT INDEXED"}
WHERE seq > ?2 ${scoped ? "AND scope = ?4" : ""} AND substr(path, 1, length(?1)) = ?1
ORDER BY seq LIMIT ?3`

/** Parameters: the sequence number below which to prune, limit, prefix, and the scope if there is one. */
export const pruneChanges = (scoped: boolean): string => `
DELETE FROM strata_changelog WHERE seq IN (
  SELECT seq FROM strata_changelog ${scoped ? "INDEXED BY strata_changelog_scope" : "NOT INDEXED"}
  WHERE seq < ?1 ${scoped ? "AND scope = ?4" : ""} AND substr(path, 1, length(?3)) = ?3
  ORDER BY seq LIMIT ?2
)
RETURNING 1`

/** The oldest entry that is not older than a time: where pruning by time ends. */
export const firstSeqSince = `
SELECT seq FROM strata_changelog NOT INDEXED WHERE recorded_at >= ?1 ORDER BY seq LIMIT 1`

// ---------------------------------------------------------------------------------------------------------------------
// registrations and versions
// ---------------------------------------------------------------------------------------------------------------------

const registration = "id, follower, scope, prefix, served_at"

export const insertRegistration = `
INSERT INTO strata_follower (follower, scope, prefix) VALUES (?1, ?2, ?3)
ON CONFLICT (follower, scope) DO NOTHING RETURNING ${registration}`

export const findRegistration = `SELECT ${registration} FROM strata_follower WHERE follower = ?1 AND scope = ?2`

export const deleteRegistration = `DELETE FROM strata_follower WHERE id = ?1`

export const deleteRows = `DELETE FROM strata_dirty WHERE registration = ?1 RETURNING 1`

export const listRegistrations = (filter: RegistrationFilter): string => `
SELECT ${registration} FROM strata_follower AS r WHERE ${ofRegistration(filter)} ORDER BY id`

/**
 * The time of service rises strictly within a follower, so that scopes served within one millisecond keep their turn.
 */
export const markServed = `
UPDATE strata_follower
SET served_at = max(?3, (SELECT max(served_at) + 1 FROM strata_follower WHERE follower = ?1))
WHERE follower = ?1 AND scope = ?2 RETURNING 1`

export const readyScopes = `
SELECT scope FROM strata_follower AS r INDEXED BY strata_follower_served
WHERE follower = ?1 AND (${readyInLane(0)} OR ${readyInLane(1)})
ORDER BY served_at, id LIMIT ?3`

export const drawVersion = `UPDATE strata_dirty_version SET value = value + 1 WHERE id = 1 RETURNING value`

export const jumpVersion = `UPDATE strata_dirty_version SET value = value + ?1 WHERE id = 1`

export const currentVersion = `SELECT value FROM strata_dirty_version WHERE id = 1`

/** As an expression: what {@link drawVersion} drew before in the same batch. */
const drawn = `(${currentVersion})`

// ---------------------------------------------------------------------------------------------------------------------
// claims
// ---------------------------------------------------------------------------------------------------------------------

/** A registration with its backfill credit and the earliest row of each lane: whether a claim will find anything. */
export const peek = `
SELECT id, backfill_credit, ${earliest("r.id", 0)}, ${earliest("r.id", 1)}
FROM strata_follower AS r WHERE follower = ?1 AND scope = ?2`

export const setCredit = `UPDATE strata_follower SET backfill_credit = ?2 WHERE id = ?1`

/** Of what was asked for in one claim, the part of the backfill lane in thousandths; whole rows are not kept. */
export const addCredit = `UPDATE strata_follower SET backfill_credit = (backfill_credit + ?2) % 1000 WHERE id = ?1`

/**
 * {@link peek}, and for each lane how many rows a claim could deliver, and whether one of the first has no attempts left.
 * Parameters: follower, scope, now, limit, greatest number of attempts.
 */
export const survey = `
SELECT id, backfill_credit, ${earliest("r.id", 0)}, ${earliest("r.id", 1)},
  ${deliverable(0)}, ${deliverable(1)}, ${isSpent(0)} OR ${isSpent(1)}
FROM strata_follower AS r WHERE follower = ?1 AND scope = ?2`

/**
 * Makes dead letters of what has no attempts left, as far as a claim of one lane gets: up to the last row that it
 * delivers. Parameters: registration, lane, now, limit, greatest number of attempts.
 */
export const bury = `
UPDATE strata_dirty SET
  lease = NULL,
  ready_at = NULL,
  failed_at = ?3,
  last_error = ifnull(last_error, '${unanswered}')
WHERE id IN (
  WITH last (ready_at, id) AS (
    SELECT ready_at, id FROM strata_dirty INDEXED BY strata_dirty_ready
    WHERE registration = ?1 AND lane = ?2 AND ready_at <= ?3 AND attempts < ?5
    ORDER BY ready_at, id LIMIT 1 OFFSET ?4 - 1
  )
  SELECT d.id FROM strata_dirty AS d INDEXED BY strata_dirty_ready
  WHERE d.registration = ?1 AND d.lane = ?2 AND d.ready_at <= ifnull((SELECT ready_at FROM last), ?3)
    AND d.attempts >= ?5
    AND (NOT EXISTS (SELECT 1 FROM last) OR (d.ready_at, d.id) < (SELECT ready_at, id FROM last))
)
RETURNING 1`

/**
 * Claims what is ready in one lane, first in, first out; a row without attempts left comes back without a lease, as a
 * dead letter.
 *
 * Parameters: registration, lane, now, limit, token, end of the lease, greatest number of attempts.
 */
export const claim = claimAs("?5")

/** {@link claim} with the version that was drawn before in the same batch as its token. */
export const claimAsDrawn = claimAs(drawn)

function claimAs(token: string): string {
  return `
UPDATE strata_dirty SET
  lease = CASE WHEN attempts < ?7 THEN ${token} END,
  ready_at = CASE WHEN attempts < ?7 THEN ?6 END,
  failed_at = CASE WHEN attempts < ?7 THEN failed_at ELSE ?3 END,
  last_error = CASE WHEN attempts < ?7 THEN last_error ELSE ifnull(last_error, '${unanswered}') END,
  attempts = attempts + (attempts < ?7)
WHERE id IN (
  SELECT id FROM strata_dirty INDEXED BY strata_dirty_ready
  WHERE registration = ?1 AND lane = ?2 AND ready_at <= ?3
  ORDER BY ready_at, id LIMIT ?4
)
RETURNING id, path, version, lease, op, cid, mtime, seq, lane, attempts, queued_at`
}

const ofLease = "lease = ?2 AND version < lease"

/**
 * How many of some rows are as they were given out: a version that was drawn after the lease is greater than it, so the
 * lease alone tells whether a change came in. Parameters: ids as a JSON array, lease.
 */
export const countUnchanged = `
SELECT count(*) FROM json_each(?1) AS j CROSS JOIN strata_dirty AS d ON d.id = j.value WHERE ${ofLease}`

/** Parameters: as for {@link countUnchanged}. */
export const ackAll = `DELETE FROM strata_dirty WHERE id IN (SELECT value FROM json_each(?1)) AND ${ofLease}`

/** {@link ackAll}, telling which rows they were. */
export const ack = `${ackAll} RETURNING id, version`

/** Frees what {@link ack} left because a change came in. Parameter: `[[id, version, lease], …]` as JSON. */
export const ackSuperseded = `
UPDATE strata_dirty SET
  since = strata_dirty.lease + 1,
  dirty_at = queued_at,
  ready_at = queued_at,
  lease = NULL,
  retry_floor = 0,
  failed_at = NULL,
  last_error = NULL
FROM json_each(?1) AS j
WHERE strata_dirty.id = j.value ->> 0 AND strata_dirty.lease = j.value ->> 2
RETURNING strata_dirty.id, version`

/**
 * Parameters: `[[id, version, lease, error, dead, delay], …]` as JSON, now, greatest number of attempts, the retry
 * floor.
 */
export const fail = `
UPDATE strata_dirty SET
  ready_at = CASE
    WHEN version > lease THEN max(queued_at, ?4)
    WHEN j.value ->> 4 OR attempts >= ?3 THEN NULL
    ELSE max(?2 + (j.value ->> 5), ?4)
  END,
  queued_at = CASE
    WHEN version > lease THEN max(queued_at, ?4)
    WHEN j.value ->> 4 OR attempts >= ?3 THEN queued_at
    ELSE max(?2 + (j.value ->> 5), ?4)
  END,
  lease = NULL,
  retry_floor = ?4,
  failed_at = ?2,
  last_error = j.value ->> 3
FROM json_each(?1) AS j
WHERE strata_dirty.id = j.value ->> 0 AND strata_dirty.lease = j.value ->> 2
RETURNING strata_dirty.id, version, ready_at IS NULL`

/** Parameters: `[[id, version, lease], …]` as JSON, now, delay. */
export const release = `
UPDATE strata_dirty SET
  ready_at = CASE WHEN version > lease OR ?3 <= 0 THEN queued_at ELSE ?2 + ?3 END,
  queued_at = CASE WHEN version > lease OR ?3 <= 0 THEN queued_at ELSE ?2 + ?3 END,
  attempts = CASE WHEN version > lease THEN attempts ELSE max(attempts - 1, 0) END,
  lease = NULL
FROM json_each(?1) AS j
WHERE strata_dirty.id = j.value ->> 0 AND strata_dirty.lease = j.value ->> 2
RETURNING strata_dirty.id, version`

/** Parameters: `[[id, version, lease], …]` as JSON, the new end of the lease. */
export const renew = `
UPDATE strata_dirty SET
  ready_at = CASE WHEN version > lease THEN queued_at ELSE ?2 END,
  lease = CASE WHEN version > lease THEN NULL ELSE lease END
FROM json_each(?1) AS j
WHERE strata_dirty.id = j.value ->> 0 AND strata_dirty.lease = j.value ->> 2
RETURNING strata_dirty.id, version`

/** Gives back every claim, as a release without a delay does. */
export const releaseAll = `
UPDATE strata_dirty SET
  ready_at = queued_at,
  attempts = CASE WHEN version > lease THEN attempts ELSE max(attempts - 1, 0) END,
  lease = NULL
WHERE lease IS NOT NULL`

// ---------------------------------------------------------------------------------------------------------------------
// backfill and revival
// ---------------------------------------------------------------------------------------------------------------------

/** Parameters: registration, paths as a JSON array, version, now. */
export const enqueue = enqueueAs("?3")

/**
 * {@link enqueue} with the version that was drawn before in the same batch, and of nothing when the registration is gone.
 */
export const enqueueAsDrawn = enqueueAs(drawn, "EXISTS (SELECT 1 FROM strata_follower WHERE id = ?1)")

function enqueueAs(version: string, condition = "true"): string {
  return `
INSERT INTO strata_dirty (registration, path, version, since, lane, ready_at, queued_at, dirty_at)
SELECT ?1, value, ${version}, ${version}, 1, ?4, ?4, ?4 FROM json_each(?2) WHERE ${condition}
ON CONFLICT (registration, path) DO UPDATE SET
          ${refreshed()}`
}

/** Parameters: version, now, prefix, then those of the filter. */
export const revive = (filter: RevivalFilter): string => reviveAs("?1", filter)

/** {@link revive} with the version that was drawn before in the same batch. */
export const reviveAsDrawn = (filter: RevivalFilter): string => reviveAs(drawn, filter)

const reviveAs = (version: string, filter: RevivalFilter): string => `
UPDATE strata_dirty SET
  version = ${version},
  attempts = 0,
  ready_at = max(?2, retry_floor),
  queued_at = max(?2, retry_floor)
WHERE id IN (
  SELECT d.id FROM strata_follower AS r CROSS JOIN strata_dirty AS d INDEXED BY strata_dirty_failed
  WHERE ${ofRegistration(filter, 4)} AND d.registration = r.id AND d.last_error IS NOT NULL AND d.ready_at IS NULL
    AND substr(d.path, 1, length(?3)) = ?3 ${filter.path ? "AND d.path = ?6" : ""}
)
RETURNING 1`

// ---------------------------------------------------------------------------------------------------------------------
// reads
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Rows by registration and path. Parameters: prefix, greatest `since`, limit, registration and path to start after,
 * then those of the filter.
 */
export const listRows = (kind: RowKind, filter: RegistrationFilter): string => `
SELECT d.id, d.registration, d.path, d.version, d.since, d.op, d.cid, d.mtime, d.seq, d.lane, d.ready_at, d.queued_at,
  d.dirty_at, d.lease, d.attempts, d.retry_floor, d.failed_at, d.last_error, r.follower, r.scope
FROM strata_follower AS r ${filter.scope ? "" : "NOT INDEXED"}
CROSS JOIN strata_dirty AS d ${kind === "all" ? "" : "INDEXED BY strata_dirty_failed"}
WHERE ${ofRegistration(filter, 6)} AND r.id >= ?4 AND d.registration = r.id
  AND d.path > CASE WHEN r.id = ?4 THEN ?5 ELSE '' END
  AND substr(d.path, 1, length(?1)) = ?1 AND d.since <= ?2 ${rowKinds[kind]}
ORDER BY r.id, d.path LIMIT ?3`

/** Parameters: now, then those of the filter. */
export const stats = (filter: RegistrationFilter): string => `
SELECT r.follower,
  count(d.id),
  count(*) FILTER (WHERE d.ready_at <= ?1),
  count(*) FILTER (WHERE d.ready_at > ?1 AND d.lease IS NULL),
  count(*) FILTER (WHERE d.ready_at > ?1 AND d.lease IS NOT NULL),
  count(*) FILTER (WHERE d.id IS NOT NULL AND d.ready_at IS NULL),
  count(*) FILTER (WHERE d.ready_at IS NOT NULL AND d.last_error IS NOT NULL),
  count(*) FILTER (WHERE d.ready_at IS NOT NULL AND d.lane = 1),
  min(d.dirty_at) FILTER (WHERE d.ready_at IS NOT NULL)
FROM strata_follower AS r LEFT JOIN strata_dirty AS d INDEXED BY strata_dirty_ready ON d.registration = r.id
WHERE ${ofRegistration(filter, 2)}
GROUP BY r.id ORDER BY r.id`

export const nextReadyAt = (filter: RegistrationFilter): string => `
SELECT min(${earliest("r.id", 0)}), min(${earliest("r.id", 1)})
FROM strata_follower AS r WHERE ${ofRegistration(filter)}`

/** The time of the database in milliseconds. */
export const databaseTime = `SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER)`

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/** Which parts of a filter are there: each combination is a text of its own, so that each finds its index. */
export interface RegistrationFilter {
  readonly follower: boolean
  readonly scope: boolean
}

export interface RevivalFilter extends RegistrationFilter {
  readonly path: boolean
}

export type RowKind = "all" | "failing" | "dead"

const rowKinds: Record<RowKind, string> = {
  all: "",
  failing: "AND d.last_error IS NOT NULL AND d.ready_at IS NOT NULL",
  dead: "AND d.last_error IS NOT NULL AND d.ready_at IS NULL"
}

function ofRegistration(filter: RegistrationFilter, first = 1): string {
  const conditions = [
    ...(filter.follower ? [`r.follower = ?${first}`] : []),
    ...(filter.scope ? [`r.scope = ?${first + 1}`] : [])
  ]
  return conditions.length === 0 ? "true" : conditions.join(" AND ")
}

function earliest(registration: string, lane: number): string {
  return `(SELECT ready_at FROM strata_dirty INDEXED BY strata_dirty_ready
  WHERE registration = ${registration} AND lane = ${lane} AND ready_at IS NOT NULL ORDER BY ready_at LIMIT 1)`
}

/** Parameters as for {@link survey}. */
function deliverable(lane: number): string {
  return `(SELECT count(*) FROM (
    SELECT 1 FROM strata_dirty INDEXED BY strata_dirty_ready
    WHERE registration = r.id AND lane = ${lane} AND ready_at <= ?3 AND attempts < ?5
    ORDER BY ready_at, id LIMIT ?4
  ))`
}

/** Parameters as for {@link survey}. */
function isSpent(lane: number): string {
  return `EXISTS (SELECT 1 FROM (
    SELECT attempts FROM strata_dirty INDEXED BY strata_dirty_ready
    WHERE registration = r.id AND lane = ${lane} AND ready_at <= ?3
    ORDER BY ready_at, id LIMIT ?4
  ) WHERE attempts >= ?5)`
}

function readyInLane(lane: number): string {
  return `EXISTS (SELECT 1 FROM strata_dirty INDEXED BY strata_dirty_ready
  WHERE registration = r.id AND lane = ${lane} AND ready_at <= ?2)`
}
