import { recordColumns } from "./stepCachePostgresSchema.ts"

/*
 * Every statement is one fixed text, so that the driver finds it prepared, and batches are one JSON parameter.
 */

/**
 * A lock of the whole table, which is taken before the transaction looks at anything: a serializable write that begins
 * with it sees what the write before it has done, where one that waits for a row would fail and be replayed.
 */
export const lock = "LOCK TABLE strata_cache_turn IN SHARE ROW EXCLUSIVE MODE"

const record = `l.id, l.key, l.recording, r.digest, l.artifacts, l.recorded_by, l.recorded_at, l.action, l.version,
  l.duration_ms, l.from_tier`

const ofHead = `strata_cache AS h
  JOIN strata_cache_ledger AS l ON l.id = h.ledger
  JOIN strata_cache_result AS r ON r.id = l.result`

/** Parameter: key. */
export const find = `SELECT ${record}, h.used_at, r.value FROM ${ofHead} WHERE h.key = $1`

/** Parameters: key to start after, limit. */
export const heads = `SELECT ${record}, h.used_at FROM ${ofHead} WHERE h.key > $1 ORDER BY h.key LIMIT $2::BIGINT`

/**
 * Result, row of the ledger and entry in one. No row when the key has an entry after all.
 *
 * Parameters: key, recording, digest, artifacts, recorded by, recorded at, action, version, duration, from, value, time.
 */
export const insert = `
WITH result AS (
  INSERT INTO strata_cache_result AS r (digest, value) VALUES ($3, $11)
  ON CONFLICT (digest) DO UPDATE SET value = excluded.value WHERE r.value <> excluded.value
  RETURNING id
), row AS (
  INSERT INTO strata_cache_ledger
    (key, recording, result, artifacts, recorded_by, recorded_at, action, version, duration_ms, from_tier)
  SELECT $1, $2, coalesce(
      (SELECT id FROM result),
      (SELECT id FROM strata_cache_result WHERE digest = $3)
    ), $4, $5, $6::BIGINT, $7, $8, $9::DOUBLE PRECISION, $10::TEXT
  RETURNING id, key
)
INSERT INTO strata_cache (key, ledger, used_at) SELECT key, id, $12::BIGINT FROM row
ON CONFLICT (key) DO NOTHING
RETURNING ledger`

/** Parameters: key, id of the ledger row, time of its last use or null. */
export const remove = `
DELETE FROM strata_cache
WHERE key = $1 AND ledger = $2::BIGINT AND ($3::BIGINT IS NULL OR used_at = $3::BIGINT)
RETURNING 1`

/** Parameters: key, id of the ledger row, time. */
export const touch = `
UPDATE strata_cache SET used_at = $3::BIGINT WHERE key = $1 AND ledger = $2::BIGINT AND used_at < $3::BIGINT`

// ---------------------------------------------------------------------------------------------------------------------
// staging
// ---------------------------------------------------------------------------------------------------------------------

const names = `ledger, key, recording, digest, artifacts, "recordedBy", "recordedAt", action, version, "durationMs", "from"`

/** Rows of a JSON parameter, in order. */
const given = `ROWS FROM (json_to_recordset($1::JSON) AS (${recordColumns})) WITH ORDINALITY AS g (${names}, place)`

/** Parameters: events as a JSON array, how many were staged before. */
export const stage = `
INSERT INTO strata_cache_staged (id, ${names})
SELECT $2::BIGINT + place, ${names} FROM ${given}`

/** Parameter: ids of ledger rows as a JSON array. */
export const stageCollected = `
INSERT INTO strata_cache_staged_collected (ledger) SELECT value::BIGINT FROM json_array_elements_text($1::JSON) AS value`

/** What was just staged has no statistics, and joins would look at all of it for each row. */
export const analyzeStaged: ReadonlyArray<string> = [
  "ANALYZE strata_cache_staged",
  "ANALYZE strata_cache_staged_collected"
]

/** Rows of the ledger that are staged. */
const live = `strata_cache_staged AS s
  WHERE s.ledger IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM strata_cache_staged_collected AS c WHERE c.ledger = s.ledger)`

export const unjoined = `
SELECT s.key, s.digest FROM ${live}
AND NOT EXISTS (SELECT 1 FROM strata_cache_result AS r WHERE r.digest = s.digest)
ORDER BY s.id`

/** The last event of each key. */
const last = "SELECT DISTINCT ON (key) key, ledger FROM strata_cache_staged ORDER BY key, id DESC"

export const missing = `
SELECT s.key FROM ${live}
AND NOT EXISTS (
  SELECT 1 FROM strata_cache_ledger AS l
  JOIN strata_cache_result AS r ON r.id = l.result
  WHERE l.id = s.ledger AND l.key = s.key AND l.recording = s.recording AND r.digest = s.digest
    AND l.artifacts = s.artifacts AND l.recorded_by = s."recordedBy" AND l.recorded_at = s."recordedAt"
    AND l.action = s.action AND l.version = s.version AND l.duration_ms = s."durationMs"
    AND l.from_tier IS NOT DISTINCT FROM s."from"
)
UNION
SELECT e.key FROM (${last}) AS e LEFT JOIN strata_cache AS h ON h.key = e.key
WHERE e.ledger IS NOT NULL AND h.ledger IS DISTINCT FROM e.ledger
ORDER BY key`

export const unexplained = `
SELECT l.key FROM strata_cache_ledger AS l
WHERE NOT EXISTS (SELECT 1 FROM ${live} AND s.ledger = l.id)
UNION
SELECT h.key FROM strata_cache AS h LEFT JOIN (${last}) AS e ON e.key = h.key
WHERE e.ledger IS NULL
ORDER BY key`

// ---------------------------------------------------------------------------------------------------------------------
// restoring
// ---------------------------------------------------------------------------------------------------------------------

export const dropHeads = "DELETE FROM strata_cache"

export const dropLedger = "DELETE FROM strata_cache_ledger"

/** Parameter: `[{ key, last }, …]` as JSON. */
export const addRemoved = `
INSERT INTO strata_cache_removed (key, last)
SELECT key, last FROM json_to_recordset($1::JSON) AS r (key TEXT COLLATE "C", last BIGINT)`

/** Gives the ids of those whose results are not there; they are left out. Parameter: rows as a JSON array. */
export const restoreRows = `
WITH s AS MATERIALIZED (SELECT * FROM ${given}), restored AS (
  INSERT INTO strata_cache_ledger
    (id, key, recording, result, artifacts, recorded_by, recorded_at, action, version, duration_ms, from_tier)
  SELECT s.ledger, s.key, s.recording, r.id, s.artifacts, s."recordedBy", s."recordedAt", s.action, s.version,
    s."durationMs", s."from"
  FROM s JOIN strata_cache_result AS r ON r.digest = s.digest
  RETURNING id
)
SELECT s.ledger FROM s WHERE NOT EXISTS (SELECT 1 FROM restored AS r WHERE r.id = s.ledger)`

/** Parameter: ids as a JSON array. */
export const dropRows = `
DELETE FROM strata_cache_ledger WHERE id IN (SELECT value::BIGINT FROM json_array_elements_text($1::JSON) AS value)`

/** Of each key the last row, unless it was removed later. Parameter: time. */
export const restoreHeads = `
WITH restored AS (
  INSERT INTO strata_cache (key, ledger, used_at)
  SELECT l.key, l.ledger, $1::BIGINT
  FROM (SELECT key, max(id) AS ledger FROM strata_cache_ledger GROUP BY key) AS l
  LEFT JOIN (SELECT key, max(last) AS last FROM strata_cache_removed GROUP BY key) AS r ON r.key = l.key
  WHERE r.last IS NULL OR r.last < l.ledger
  RETURNING 1
)
SELECT count(*) FROM restored`

/** Ids that were given before are not given again, in whichever database that was. Parameter: the last of them. */
export const passIds = `
SELECT setval('strata_cache_ledger_number', $1::BIGINT) FROM strata_cache_ledger_number
WHERE $1::BIGINT > CASE WHEN is_called THEN last_value ELSE 0 END`

/** Parameters: id to start after, limit. */
export const results = `
SELECT id, digest, value FROM strata_cache_result WHERE id > $1::BIGINT ORDER BY id LIMIT $2::BIGINT`

// ---------------------------------------------------------------------------------------------------------------------
// collecting
// ---------------------------------------------------------------------------------------------------------------------

/** Parameters: time, entries, bytes. */
export const cutoff = `
SELECT used_at, key FROM (
  SELECT key, used_at, row_number() OVER latest AS place, sum(bytes) OVER latest AS total
  FROM (
    SELECT h.key, h.used_at, octet_length(r.value) + coalesce(
      (SELECT sum(a.size) FROM strata_cache_ledger_artifact AS a WHERE a.ledger = h.ledger), 0
    ) AS bytes
    FROM ${ofHead}
  ) AS sized
  WINDOW latest AS (ORDER BY used_at DESC, key ROWS UNBOUNDED PRECEDING)
) AS placed
WHERE used_at < $1::BIGINT OR place > $2::BIGINT OR total > $3::BIGINT
ORDER BY used_at DESC, key LIMIT 1`

/** Parameters: time and key of the cutoff, key to start after, limit. */
export const beyond = `
SELECT ${record}, h.used_at FROM ${ofHead}
WHERE h.key > $3 AND (h.used_at < $1::BIGINT OR (h.used_at = $1::BIGINT AND h.key >= $2))
ORDER BY h.key LIMIT $4::BIGINT`

const isNoHead = "NOT EXISTS (SELECT 1 FROM strata_cache AS h WHERE h.key = l.key AND h.ledger = l.id)"

const isUnused = "NOT EXISTS (SELECT 1 FROM strata_cache_ledger AS l WHERE l.result = r.id)"

/** Parameters: time, id to start after, limit. */
export const outdated = `
SELECT l.id FROM strata_cache_ledger AS l
WHERE l.id > $2::BIGINT AND l.recorded_at < $1::BIGINT AND ${isNoHead}
ORDER BY l.id LIMIT $3::BIGINT`

/** Parameter: ids as a JSON array. */
export const deleteLedger = `
DELETE FROM strata_cache_ledger AS l
WHERE l.id IN (SELECT value::BIGINT FROM json_array_elements_text($1::JSON) AS value) AND ${isNoHead}
RETURNING id`

/** Parameters: digest to start after, limit. */
export const unused = `
SELECT r.digest FROM strata_cache_result AS r WHERE r.digest > $1 AND ${isUnused}
ORDER BY r.digest LIMIT $2::BIGINT`

/** Parameter: digests as a JSON array. */
export const deleteResults = `
DELETE FROM strata_cache_result AS r
WHERE r.digest IN (SELECT value FROM json_array_elements_text($1::JSON) AS value) AND ${isUnused}
RETURNING digest, octet_length(value)`

/** Parameter: digests as a JSON array. */
export const unreferenced = `
SELECT g.digest FROM json_array_elements_text($1::JSON) AS g (digest)
WHERE NOT EXISTS (SELECT 1 FROM strata_cache_ledger_artifact AS a WHERE a.digest = g.digest)`

export const origins = `
SELECT l.from_tier, count(*) FROM strata_cache AS h JOIN strata_cache_ledger AS l ON l.id = h.ledger
GROUP BY l.from_tier ORDER BY l.from_tier NULLS FIRST`

export const stats = `
SELECT (SELECT count(*) FROM strata_cache), (SELECT count(*) FROM strata_cache_ledger),
  (SELECT count(*) FROM strata_cache_result), (SELECT coalesce(sum(octet_length(value)), 0) FROM strata_cache_result),
  count(*), coalesce(sum(size), 0)
FROM (SELECT max(size) AS size FROM strata_cache_ledger_artifact GROUP BY digest) AS artifact`
