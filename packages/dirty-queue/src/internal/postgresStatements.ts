import { channel, currentTime, refreshed, registryLock } from "./postgresSchema.ts"

/*
 * Every statement is one fixed text, so that the driver finds it prepared, and batches are arrays or one JSON parameter.
 * What answers claims locks its rows by path first, as changes do. Within one statement it then finds them by their paths,
 * never by their places: where a lock was waited for, the row has a new one, which the statement does not see.
 *
 * A row that is held is ready from `held_until`, see the schema.
 */

/** The time of the database in milliseconds. */
export const databaseTime = `SELECT ${currentTime}`

// ---------------------------------------------------------------------------------------------------------------------
// changelog
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Parameters: scopes, paths, operations, content ids and modification times, each as an array or `null` for none at all,
 * and the time, or `null` for that of the database. Gives the first and the last sequence number.
 */
export const appendChanges = `
WITH appended AS (
  INSERT INTO strata_changelog (scope, path, op, cid, mtime, recorded_at)
  SELECT scope, path, op, cid, mtime, coalesce($6::BIGINT, (${databaseTime}))
  FROM unnest($1::TEXT[], $2::TEXT[], $3::TEXT[], $4::TEXT[], $5::BIGINT[]) WITH ORDINALITY
    AS given (scope, path, op, cid, mtime, place)
  ORDER BY place
  RETURNING seq
)
SELECT min(seq), max(seq) FROM appended`

/** Parameters: prefix, sequence number after which to read, limit, and the scope if there is one. */
export const readChanges = (scoped: boolean): string => `
SELECT seq, scope, path, op, cid, mtime, recorded_at
FROM strata_changelog
WHERE seq > $2::BIGINT ${scoped ? "AND scope = $4" : ""} AND starts_with(path, $1)
ORDER BY seq LIMIT $3::BIGINT`

/** Parameters: the sequence number below which to prune, limit, prefix, and the scope if there is one. */
export const pruneChanges = (scoped: boolean): string => `
DELETE FROM strata_changelog WHERE seq IN (
  SELECT seq FROM strata_changelog
  WHERE seq < $1::BIGINT ${scoped ? "AND scope = $4" : ""} AND starts_with(path, $3)
  ORDER BY seq LIMIT $2::BIGINT FOR UPDATE SKIP LOCKED
)
RETURNING 1`

/** The oldest entry that is not older than a time: where pruning by time ends. */
export const firstSeqSince = `
SELECT seq FROM strata_changelog WHERE recorded_at >= $1::BIGINT ORDER BY seq LIMIT 1`

// ---------------------------------------------------------------------------------------------------------------------
// registrations and versions
// ---------------------------------------------------------------------------------------------------------------------

const registration = "id, follower, scope, prefix, served_at"

/** Waits for the writes that still go by the registrations as they are, and lets no other begin. */
export const lockRegistry = `SELECT pg_advisory_xact_lock(${registryLock})`

/** Makes writes that began before fail, and be replayed, when they come to the registrations. */
export const changeRegistry = `UPDATE strata_registry SET epoch = epoch + 1 WHERE id = 1`

export const insertRegistration = `
INSERT INTO strata_follower (follower, scope, prefix) VALUES ($1, $2, $3)
ON CONFLICT (follower, scope) DO NOTHING RETURNING ${registration}`

export const findRegistration = `SELECT ${registration} FROM strata_follower WHERE follower = $1 AND scope = $2`

export const deleteRegistration = `DELETE FROM strata_follower WHERE id = $1::BIGINT`

export const deleteRows = `DELETE FROM strata_dirty WHERE registration = $1::BIGINT RETURNING 1`

export const listRegistrations = `
SELECT ${registration} FROM strata_follower AS r WHERE ${ofRegistration(1)} ORDER BY id`

/** The time of service rises strictly within a follower, so that scopes served within one millisecond keep their turn. */
export const markServed = `
UPDATE strata_follower
SET served_at = greatest($3::BIGINT, (SELECT max(served_at) + 1 FROM strata_follower WHERE follower = $1))
WHERE follower = $1 AND scope = $2 RETURNING 1`

export const readyScopes = `
SELECT scope FROM strata_follower AS r
WHERE follower = $1 AND (${readyInLane(0)} OR ${readyInLane(1)})
ORDER BY served_at, id LIMIT $3::BIGINT`

export const drawVersion = `SELECT nextval('strata_dirty_version')`

export const jumpVersion = `SELECT setval('strata_dirty_version', nextval('strata_dirty_version') + $1::BIGINT - 1)`

export const currentVersion = `SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM strata_dirty_version`

/** Tells other processes, with the commit. */
export const announce = `SELECT pg_notify('${channel}', current_schema())`

// ---------------------------------------------------------------------------------------------------------------------
// claims
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Parameters: follower, scope, now or `null` for the time of the database, limit, length of the lease, greatest number of
 * attempts, share of the backfill. The row without an id has the token as its version, what died as its attempts, the time
 * as its place, and the registration as its seq.
 */
export const claim = `
SELECT id, path, version, op, cid, mtime, seq, lane, attempts, queued_at
FROM strata_dirty_claim($1, $2, $3::BIGINT, $4::INTEGER, $5::BIGINT, $6::INTEGER, $7::INTEGER)`

/** Parameters: registration, paths as an array, lease. Gives the ids of the rows that are gone, as an array. */
export const ack = `SELECT strata_dirty_ack($1::BIGINT, $2::TEXT[], $3::BIGINT)`

/**
 * Frees what {@link ack} left because a change came in. Parameters: registration, `[[path, lease], …]` as JSON.
 */
export const ackSuperseded = answer(
  "",
  `since = d.lease + 1,
  dirty_at = d.queued_at,
  ready_at = d.queued_at,
  held_until = NULL,
  lease = NULL,
  retry_floor = 0,
  failed_at = NULL,
  last_error = NULL`
)

/**
 * Parameters: registration, `[[path, lease, error, dead, delay], …]` as JSON, now, greatest number of attempts, the
 * retry floor.
 */
export const fail = answer(
  ", r ->> 2 AS error, (r ->> 3)::BOOLEAN AS dead, (r ->> 4)::BIGINT AS delay",
  `ready_at = CASE
    WHEN d.version > d.lease THEN greatest(d.queued_at, $5::BIGINT)
    WHEN j.dead OR d.attempts >= $4::INTEGER THEN NULL
    ELSE greatest($3::BIGINT + j.delay, $5::BIGINT)
  END,
  queued_at = CASE
    WHEN d.version > d.lease THEN greatest(d.queued_at, $5::BIGINT)
    WHEN j.dead OR d.attempts >= $4::INTEGER THEN d.queued_at
    ELSE greatest($3::BIGINT + j.delay, $5::BIGINT)
  END,
  held_until = NULL,
  lease = NULL,
  retry_floor = $5::BIGINT,
  failed_at = $3::BIGINT,
  last_error = j.error`,
  ", (d.ready_at IS NULL)::INTEGER"
)

/** Parameters: registration, `[[path, lease], …]` as JSON, now, delay. */
export const release = answer(
  "",
  `ready_at = CASE WHEN d.version > d.lease OR $4::BIGINT <= 0 THEN d.queued_at ELSE $3::BIGINT + $4::BIGINT END,
  queued_at = CASE WHEN d.version > d.lease OR $4::BIGINT <= 0 THEN d.queued_at ELSE $3::BIGINT + $4::BIGINT END,
  attempts = CASE WHEN d.version > d.lease THEN d.attempts ELSE greatest(d.attempts - 1, 0) END,
  held_until = NULL,
  lease = NULL`
)

/** Parameters: registration, `[[path, lease], …]` as JSON, the new end of the lease. */
export const renew = answer(
  "",
  `ready_at = CASE WHEN d.version > d.lease THEN d.queued_at ELSE least(d.ready_at, $3::BIGINT) END,
  held_until = CASE WHEN d.version > d.lease THEN NULL ELSE $3::BIGINT END,
  lease = CASE WHEN d.version > d.lease THEN NULL ELSE d.lease END`
)

/** Gives back every claim, as a release without a delay does. */
export const releaseAll = `
WITH held AS MATERIALIZED (
  SELECT registration, path FROM strata_dirty WHERE lease IS NOT NULL ORDER BY path, registration FOR UPDATE
)
UPDATE strata_dirty AS d SET
  ready_at = d.queued_at,
  attempts = CASE WHEN d.version > d.lease THEN d.attempts ELSE greatest(d.attempts - 1, 0) END,
  held_until = NULL,
  lease = NULL
FROM held WHERE d.registration = held.registration AND d.path = held.path AND d.lease IS NOT NULL`

// ---------------------------------------------------------------------------------------------------------------------
// backfill and revival
// ---------------------------------------------------------------------------------------------------------------------

/** Gives a version, once nobody changes registrations. */
export const beginEnqueue = `
SELECT nextval('strata_dirty_version') FROM (SELECT pg_advisory_xact_lock_shared(${registryLock}) OFFSET 0) AS locked`

/** Parameters: registration, paths in order as a JSON array, version, now. */
export const enqueue = `
INSERT INTO strata_dirty AS d (registration, path, version, since, lane, ready_at, queued_at, dirty_at)
SELECT r.id, p.path, $3::BIGINT, $3::BIGINT, 1, $4::BIGINT, $4::BIGINT, $4::BIGINT
FROM strata_follower AS r, jsonb_array_elements_text($2::JSONB) WITH ORDINALITY AS p (path, place)
WHERE r.id = $1::BIGINT
ORDER BY p.place
ON CONFLICT (registration, path) DO UPDATE SET
          ${refreshed()}`

/** Parameters: version, now, prefix, path or null, then those of the filter. */
export const revive = `
WITH dead AS MATERIALIZED (
  SELECT d.registration, d.path FROM strata_follower AS r JOIN strata_dirty AS d ON d.registration = r.id
  WHERE ${ofRegistration(5)} AND d.last_error IS NOT NULL AND d.ready_at IS NULL
    AND starts_with(d.path, $3) AND ($4::TEXT IS NULL OR d.path = $4)
  ORDER BY d.path, d.registration FOR UPDATE OF d
)
UPDATE strata_dirty AS d SET
  version = CASE WHEN d.version >= $1::BIGINT THEN nextval('strata_dirty_version') ELSE $1::BIGINT END,
  attempts = 0,
  ready_at = greatest($2::BIGINT, d.retry_floor),
  queued_at = greatest($2::BIGINT, d.retry_floor)
FROM dead WHERE d.registration = dead.registration AND d.path = dead.path AND d.ready_at IS NULL
RETURNING 1`

// ---------------------------------------------------------------------------------------------------------------------
// reads
// ---------------------------------------------------------------------------------------------------------------------

export type RowKind = "all" | "failing" | "dead"

/**
 * Rows by registration and path. Parameters: prefix, greatest `since`, limit, registration and path to start after,
 * then those of the filter.
 */
export const listRows = (kind: RowKind): string => `
SELECT d.id, d.registration, d.path, d.version, d.since, d.op, d.cid, d.mtime, d.seq, d.lane,
  coalesce(d.held_until, d.ready_at), d.queued_at, d.dirty_at, d.lease, d.attempts, d.retry_floor, d.failed_at,
  d.last_error, r.follower, r.scope
FROM strata_follower AS r JOIN strata_dirty AS d ON d.registration = r.id
WHERE ${ofRegistration(6)} AND r.id >= $4::BIGINT
  AND d.path > CASE WHEN r.id = $4::BIGINT THEN $5 ELSE '' END
  AND starts_with(d.path, $1) AND d.since <= $2::BIGINT ${rowKind(kind)}
ORDER BY r.id, d.path LIMIT $3::BIGINT`

/** Parameters: now, then those of the filter. */
export const stats = `
SELECT r.follower,
  count(d.path),
  count(*) FILTER (WHERE coalesce(d.held_until, d.ready_at) <= $1::BIGINT),
  count(*) FILTER (WHERE d.ready_at > $1::BIGINT AND d.lease IS NULL),
  count(*) FILTER (WHERE coalesce(d.held_until, d.ready_at) > $1::BIGINT AND d.lease IS NOT NULL),
  count(*) FILTER (WHERE d.path IS NOT NULL AND d.ready_at IS NULL),
  count(*) FILTER (WHERE d.ready_at IS NOT NULL AND d.last_error IS NOT NULL),
  count(*) FILTER (WHERE d.ready_at IS NOT NULL AND d.lane = 1),
  min(d.dirty_at) FILTER (WHERE d.ready_at IS NOT NULL)
FROM strata_follower AS r LEFT JOIN strata_dirty AS d ON d.registration = r.id
WHERE ${ofRegistration(2)}
GROUP BY r.id ORDER BY r.id`

/** Parameters: those of the filter. */
export const nextReadyAt = `SELECT live, backfill FROM strata_dirty_earliest($1, $2)`

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/** What an answer does to the rows that the claimer still holds. */
function answer(columns: string, set: string, returning = ""): string {
  return `
WITH j AS MATERIALIZED (
  SELECT r ->> 0 AS path, (r ->> 1)::BIGINT AS lease${columns} FROM jsonb_array_elements($2::JSONB) AS r
), mine AS MATERIALIZED (
  SELECT d.path FROM strata_dirty AS d JOIN j ON d.path = j.path AND d.lease = j.lease
  WHERE d.registration = $1::BIGINT
  ORDER BY d.path FOR UPDATE OF d
)
UPDATE strata_dirty AS d SET
  ${set}
FROM j
WHERE d.registration = $1::BIGINT AND d.path = j.path AND d.lease = j.lease AND j.path IN (SELECT path FROM mine)
RETURNING d.id, d.version${returning}`
}

function ofRegistration(first: number): string {
  const follower = `$${first}`
  const scope = `$${first + 1}`
  return `(${follower}::TEXT IS NULL OR r.follower = ${follower}) AND (${scope}::TEXT IS NULL OR r.scope = ${scope})`
}

function rowKind(kind: RowKind): string {
  switch (kind) {
    case "all":
      return ""
    case "failing":
      return "AND d.last_error IS NOT NULL AND d.ready_at IS NOT NULL"
    case "dead":
      return "AND d.last_error IS NOT NULL AND d.ready_at IS NULL"
  }
}

function readyInLane(lane: number): string {
  return `coalesce((
  SELECT true FROM strata_dirty AS d
  WHERE d.registration = r.id AND d.lane = ${lane} AND d.ready_at <= $2::BIGINT
    AND (d.held_until IS NULL OR d.held_until <= $2::BIGINT)
  ORDER BY d.ready_at, d.id LIMIT 1
), false)`
}
