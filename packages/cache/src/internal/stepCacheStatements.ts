/*
 * Every statement is one fixed text, so that the driver finds it prepared, and batches are one JSON parameter. Joins are
 * in a fixed order (`CROSS JOIN`), so that statistics cannot turn a look at one key into a scan.
 */

const record = `l.id, l.key, l.recording, r.digest, l.artifacts, l.recorded_by, l.recorded_at, l.action, l.version,
  l.duration_ms, l.from_tier`

const ofHead = `strata_cache AS h
  CROSS JOIN strata_cache_ledger AS l ON l.id = h.ledger
  CROSS JOIN strata_cache_result AS r ON r.id = l.result`

/** Parameter: key. */
export const find = `SELECT ${record}, h.used_at, r.value FROM ${ofHead} WHERE h.key = ?1`

/** Parameters: key to start after, limit. */
export const heads = `SELECT ${record}, h.used_at FROM ${ofHead} WHERE h.key > ?1 ORDER BY h.key LIMIT ?2`

/** Parameters: digest, value. */
export const insertResult = `
INSERT INTO strata_cache_result (digest, value) VALUES (?1, ?2)
ON CONFLICT (digest) DO UPDATE SET value = excluded.value WHERE value <> excluded.value`

/** Parameters: key, recording, digest, artifacts, recorded by, recorded at, action, version, duration, from. */
export const insertLedger = `
INSERT INTO strata_cache_ledger
  (key, recording, result, artifacts, recorded_by, recorded_at, action, version, duration_ms, from_tier)
VALUES (?1, ?2, (SELECT id FROM strata_cache_result WHERE digest = ?3), ?4, ?5, ?6, ?7, ?8, ?9, ?10)
RETURNING id`

/** The key is that of the row. Parameters: id of the ledger row, time. */
export const insertHead = `
INSERT INTO strata_cache (key, ledger, used_at) SELECT key, id, ?2 FROM strata_cache_ledger WHERE id = ?1`

/** Parameters: key, id of the ledger row, time of its last use or null. */
export const remove = `
DELETE FROM strata_cache WHERE key = ?1 AND ledger = ?2 AND (?3 IS NULL OR used_at = ?3) RETURNING 1`

/** Parameters: key, id of the ledger row, time. */
export const touch = `UPDATE strata_cache SET used_at = ?3 WHERE key = ?1 AND ledger = ?2 AND used_at < ?3`

// ---------------------------------------------------------------------------------------------------------------------
// staging
// ---------------------------------------------------------------------------------------------------------------------

export const dropStaged = "DELETE FROM strata_cache_staged"

export const dropCollected = "DELETE FROM strata_cache_staged_collected"

const stagedColumns =
  "key, ledger, recording, digest, artifacts, recorded_by, recorded_at, action, version, duration_ms, from_tier"

/** How many rows the long statements take. */
export const rowsAtOnce = 50

const rows = (count: number, columns: number): string =>
  Array<string>(count)
    .fill(`(${Array<string>(columns).fill("?").join(",")})`)
    .join(",")

const insertStaged = (count: number): string =>
  `INSERT INTO strata_cache_staged (${stagedColumns}) VALUES ${rows(count, 11)}`

/** Parameters: the columns, in order. */
export const stageOne = insertStaged(1)

/** Parameters: the columns of all rows, one row after the other. */
export const stageMany = insertStaged(rowsAtOnce)

/** Parameter: ids of ledger rows as a JSON array. */
export const stageCollected = `
INSERT INTO strata_cache_staged_collected (ledger) SELECT value FROM json_each(?1) WHERE true ON CONFLICT DO NOTHING`

/** Rows of the ledger that are staged, in the order of their ids. */
const live = `strata_cache_staged AS s
  WHERE s.ledger IS NOT NULL AND s.ledger NOT IN (SELECT ledger FROM strata_cache_staged_collected)`

export const unjoined = `
SELECT s.key, s.digest FROM ${live}
AND NOT EXISTS (SELECT 1 FROM strata_cache_result AS r WHERE r.digest = s.digest)
ORDER BY s.id`

/** The last event of each key: SQLite takes the other columns from the row that has the greatest id. */
const last = "SELECT key, ledger, max(id) FROM strata_cache_staged GROUP BY key"

export const missing = `
SELECT s.key FROM ${live}
AND NOT EXISTS (
  SELECT 1 FROM strata_cache_ledger AS l
  CROSS JOIN strata_cache_result AS r ON r.id = l.result
  WHERE l.id = s.ledger AND l.key = s.key AND l.recording = s.recording AND r.digest = s.digest
    AND l.artifacts = s.artifacts AND l.recorded_by = s.recorded_by AND l.recorded_at = s.recorded_at
    AND l.action = s.action AND l.version = s.version AND l.duration_ms = s.duration_ms
    AND l.from_tier IS s.from_tier
)
UNION
SELECT e.key FROM (${last}) AS e
WHERE e.ledger IS NOT NULL AND e.ledger IS NOT (SELECT h.ledger FROM strata_cache AS h WHERE h.key = e.key)
ORDER BY key`

export const unexplained = `
SELECT key FROM strata_cache_ledger AS l
WHERE l.id NOT IN (SELECT s.ledger FROM ${live})
UNION
SELECT h.key FROM strata_cache AS h
WHERE h.key NOT IN (SELECT key FROM (${last}) WHERE ledger IS NOT NULL)
ORDER BY key`

// ---------------------------------------------------------------------------------------------------------------------
// restoring
// ---------------------------------------------------------------------------------------------------------------------

export const dropHeads = "DELETE FROM strata_cache"

export const dropLedger = "DELETE FROM strata_cache_ledger"

export const dropRemoved = "DELETE FROM strata_cache_removed"

/**
 * Leaves out rows whose results are not there. Results mostly lie in the order in which they were recorded, so the one
 * that is expected is looked at first: the index of the digests is several times as slow, as they come in no order.
 */
const restoreLedger = (count: number): string => `
WITH s (${stagedColumns}, expected) AS (VALUES ${rows(count, 12)})
INSERT INTO strata_cache_ledger
  (id, key, recording, result, artifacts, recorded_by, recorded_at, action, version, duration_ms, from_tier)
SELECT s.ledger, s.key, s.recording, r.id,
  s.artifacts, s.recorded_by, s.recorded_at, s.action, s.version, s.duration_ms, s.from_tier
FROM s CROSS JOIN strata_cache_result AS r ON r.id = coalesce(
  (SELECT id FROM strata_cache_result WHERE id = s.expected AND digest = s.digest),
  (SELECT id FROM strata_cache_result WHERE digest = s.digest)
)`

/** Parameters: the columns of a staged row, in order, and the id that its result is expected to have. */
export const restoreOne = restoreLedger(1)

/** Parameters: those of all rows, one row after the other. */
export const restoreMany = restoreLedger(rowsAtOnce)

/** How many rows the statement before has added, and the result of the last one. */
export const restored = `
SELECT changes(), (SELECT result FROM strata_cache_ledger ORDER BY id DESC LIMIT 1)`

/** Parameter: digest. */
export const hasResult = "SELECT 1 FROM strata_cache_result WHERE digest = ?1"

/** Parameter: ids as a JSON array. */
export const dropRows = "DELETE FROM strata_cache_ledger WHERE id IN (SELECT value FROM json_each(?1))"

const insertRemoved = (count: number): string => `INSERT INTO strata_cache_removed (key, last) VALUES ${rows(count, 2)}`

/** Parameters: key, id of the last ledger row before. */
export const removeOne = insertRemoved(1)

/** Parameters: those of all keys, one after the other. */
export const removeMany = insertRemoved(rowsAtOnce)

export const cacheSize = "PRAGMA cache_size"

/** 256 MiB: what a rebuild of a million entries writes. With less, SQLite writes pages out that it will need again. */
export const raiseCacheSize = "PRAGMA cache_size = -262144"

export const setCacheSize = (pages: number): string => `PRAGMA cache_size = ${pages}`

/** Of each key the last row, unless it was removed later. Parameter: time. */
export const restoreHeads = `
INSERT INTO strata_cache (key, ledger, used_at)
SELECT key, ledger, ?1 FROM (SELECT key, max(id) AS ledger FROM strata_cache_ledger GROUP BY key) AS l
WHERE NOT EXISTS (SELECT 1 FROM strata_cache_removed AS r WHERE r.key = l.key AND r.last >= l.ledger)`

export const countHeads = "SELECT count(*) FROM strata_cache"

/** Parameters: id to start after, limit. */
export const results = "SELECT id, digest, value FROM strata_cache_result WHERE id > ?1 ORDER BY id LIMIT ?2"

// ---------------------------------------------------------------------------------------------------------------------
// collecting
// ---------------------------------------------------------------------------------------------------------------------

/** Parameters: time, entries, bytes. */
export const cutoff = `
SELECT used_at, key FROM (
  SELECT key, used_at, row_number() OVER latest AS place, sum(bytes) OVER latest AS total
  FROM (
    SELECT h.key, h.used_at, octet_length(r.value) + ifnull(
      (SELECT sum(a.size) FROM strata_cache_ledger_artifact AS a WHERE a.ledger = h.ledger), 0
    ) AS bytes
    FROM ${ofHead}
  )
  WINDOW latest AS (ORDER BY used_at DESC, key ROWS UNBOUNDED PRECEDING)
)
WHERE used_at < ?1 OR place > ?2 OR total > ?3
ORDER BY used_at DESC, key LIMIT 1`

/** Parameters: time and key of the cutoff, key to start after, limit. */
export const beyond = `
SELECT ${record}, h.used_at FROM ${ofHead}
WHERE h.key > ?3 AND (h.used_at < ?1 OR (h.used_at = ?1 AND h.key >= ?2))
ORDER BY h.key LIMIT ?4`

const isNoHead = "NOT EXISTS (SELECT 1 FROM strata_cache AS h WHERE h.key = l.key AND h.ledger = l.id)"

const isUnused = "NOT EXISTS (SELECT 1 FROM strata_cache_ledger AS l WHERE l.result = r.id)"

/** Parameters: time, id to start after, limit. */
export const outdated = `
SELECT l.id FROM strata_cache_ledger AS l WHERE l.id > ?2 AND l.recorded_at < ?1 AND ${isNoHead}
ORDER BY l.id LIMIT ?3`

/** Parameter: ids as a JSON array. */
export const deleteLedger = `
DELETE FROM strata_cache_ledger AS l WHERE l.id IN (SELECT value FROM json_each(?1)) AND ${isNoHead}
RETURNING id`

/** Parameters: digest to start after, limit. */
export const unused = `
SELECT r.digest FROM strata_cache_result AS r WHERE r.digest > ?1 AND ${isUnused} ORDER BY r.digest LIMIT ?2`

/** Parameter: digests as a JSON array. */
export const deleteResults = `
DELETE FROM strata_cache_result AS r WHERE r.digest IN (SELECT value FROM json_each(?1)) AND ${isUnused}
RETURNING digest, octet_length(value)`

/** Parameter: digests as a JSON array. */
export const unreferenced = `
SELECT j.value FROM json_each(?1) AS j
WHERE NOT EXISTS (SELECT 1 FROM strata_cache_ledger_artifact AS a WHERE a.digest = j.value)`

export const origins = `
SELECT l.from_tier, count(*) FROM strata_cache AS h CROSS JOIN strata_cache_ledger AS l ON l.id = h.ledger
GROUP BY l.from_tier ORDER BY l.from_tier`

export const stats = `
SELECT (SELECT count(*) FROM strata_cache), (SELECT count(*) FROM strata_cache_ledger),
  (SELECT count(*) FROM strata_cache_result), (SELECT ifnull(sum(octet_length(value)), 0) FROM strata_cache_result),
  count(*), ifnull(sum(size), 0)
FROM (SELECT max(size) AS size FROM strata_cache_ledger_artifact GROUP BY digest)`
