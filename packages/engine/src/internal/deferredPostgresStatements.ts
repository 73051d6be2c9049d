/*
 * Every statement is one fixed text, and batches are one JSON parameter. They are guards by themselves under READ
 * COMMITTED: what they decide by is a column of the row that they change, or a unique key.
 */

const columns = "execution_id, name, exit, metadata, completed_at, consumed_at"

const keys = "SELECT b ->> 0, b ->> 1 FROM json_array_elements($1::JSON) AS b"

/** Parameter: `[[execution id, name, exit, metadata, completed at, consumed at], …]` as JSON. */
export const insert = `
INSERT INTO strata_deferred (${columns})
SELECT b ->> 0, b ->> 1, b ->> 2, b ->> 3, (b ->> 4)::BIGINT, (b ->> 5)::BIGINT
FROM json_array_elements($1::JSON) AS b
ON CONFLICT (execution_id, name) DO NOTHING
RETURNING execution_id, name`

/** Parameters: `[[execution id, name], …]` as JSON, time. What lost its stamps has them set together. */
export const consume = `
UPDATE strata_deferred SET consumed_at = $2::BIGINT, completed_at = coalesce(completed_at, $2::BIGINT)
WHERE (execution_id, name) IN (${keys}) AND consumed_at IS NULL
RETURNING execution_id, name`

/** Parameter: `[[execution id, name], …]` as JSON. */
export const find = `SELECT ${columns} FROM strata_deferred WHERE (execution_id, name) IN (${keys})`

export const ofRun = `SELECT ${columns} FROM strata_deferred WHERE execution_id = $1`

export const count = `SELECT count(*) FROM strata_deferred`

/** Parameter: `[[execution id, name, completed at, consumed at], …]` as JSON. */
export const stamp = `
UPDATE strata_deferred AS d SET completed_at = b.completed_at, consumed_at = b.consumed_at
FROM (
  SELECT b ->> 0 AS execution_id, b ->> 1 AS name, (b ->> 2)::BIGINT AS completed_at, (b ->> 3)::BIGINT AS consumed_at
  FROM json_array_elements($1::JSON) AS b
) AS b
WHERE d.execution_id = b.execution_id AND d.name = b.name`

/** Parameter: `[[execution id, name], …]` as JSON. */
export const remove = `DELETE FROM strata_deferred WHERE (execution_id, name) IN (${keys})`

/** Parameter: execution ids as a JSON array. */
export const removeOf = `
DELETE FROM strata_deferred WHERE execution_id IN (SELECT json_array_elements_text($1::JSON)) RETURNING 1`
