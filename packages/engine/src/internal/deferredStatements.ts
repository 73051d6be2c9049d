/*
 * Every statement is one fixed text, so that the driver finds it prepared, and batches are one JSON parameter. Joins are
 * in a fixed order (`CROSS JOIN`), from the batch to the table.
 */

const columns = "execution_id, name, exit, metadata, completed_at, consumed_at"

const keyed = "d.execution_id = j.value ->> 0 AND d.name = j.value ->> 1"

/** Parameter: `[[execution id, name, exit, metadata, completed at, consumed at], …]` as JSON. */
export const insert = `
INSERT INTO strata_deferred (${columns})
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5 FROM json_each(?1) WHERE true
ON CONFLICT (execution_id, name) DO NOTHING
RETURNING execution_id, name`

/** Parameters: `[[execution id, name], …]` as JSON, time. What lost its stamps has them set together. */
export const consume = `
UPDATE strata_deferred SET consumed_at = ?2, completed_at = ifnull(completed_at, ?2)
WHERE rowid IN (
  SELECT d.rowid FROM json_each(?1) AS j CROSS JOIN strata_deferred AS d ON ${keyed} AND d.consumed_at IS NULL
)
RETURNING execution_id, name`

/** Parameter: `[[execution id, name], …]` as JSON. */
export const find = `
SELECT d.execution_id, d.name, d.exit, d.metadata, d.completed_at, d.consumed_at
FROM json_each(?1) AS j CROSS JOIN strata_deferred AS d ON ${keyed}`

export const ofRun = `SELECT ${columns} FROM strata_deferred WHERE execution_id = ?1`

export const count = `SELECT count(*) FROM strata_deferred`

/** Parameter: `[[execution id, name, completed at, consumed at], …]` as JSON. */
export const stamp = `
UPDATE strata_deferred SET completed_at = j.completed_at, consumed_at = j.consumed_at
FROM (
  SELECT d.rowid AS id, j.value ->> 2 AS completed_at, j.value ->> 3 AS consumed_at
  FROM json_each(?1) AS j CROSS JOIN strata_deferred AS d ON ${keyed}
) AS j
WHERE strata_deferred.rowid = j.id`

/** Parameter: `[[execution id, name], …]` as JSON. */
export const remove = `
DELETE FROM strata_deferred
WHERE rowid IN (SELECT d.rowid FROM json_each(?1) AS j CROSS JOIN strata_deferred AS d ON ${keyed})`

/** Parameter: execution ids as a JSON array. */
export const removeOf = `
DELETE FROM strata_deferred
WHERE rowid IN (
  SELECT d.rowid FROM json_each(?1) AS j CROSS JOIN strata_deferred AS d ON d.execution_id = j.value
)
RETURNING 1`
