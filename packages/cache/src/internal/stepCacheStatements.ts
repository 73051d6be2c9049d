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

/** Parameters: key, id of the ledger row. */
export const remove = `DELETE FROM strata_cache WHERE key = ?1 AND ledger = ?2 RETURNING 1`

/** Parameters: key, id of the ledger row, time. */
export const touch = `UPDATE strata_cache SET used_at = ?3 WHERE key = ?1 AND ledger = ?2 AND used_at < ?3`
