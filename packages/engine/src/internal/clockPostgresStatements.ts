/*
 * Every statement is one fixed text, and batches are one JSON parameter. They are guards by themselves under READ
 * COMMITTED: what they decide by is a column of the row that they change, which Postgres reads again when it had to wait
 * for another transaction, or a unique key.
 */

const columns = "execution_id, name, deferred, deadline, scheduled_at, completed_at, outcome"

const keys = "SELECT b ->> 0, b ->> 1 FROM json_array_elements($1::JSON) AS b"

const given = `b ->> 0, b ->> 1, b ->> 2, (b ->> 3)::BIGINT, (b ->> 4)::BIGINT, (b ->> 5)::BIGINT, b ->> 6
FROM json_array_elements($1::JSON) AS b`

/** Parameter: `[[execution id, name, deferred, deadline, scheduled at, completed at, outcome], …]` as JSON. */
export const insert = `
INSERT INTO strata_clock (${columns}) SELECT ${given}
ON CONFLICT (execution_id, name) DO NOTHING
RETURNING execution_id, name`

/** The least deadline of those that are not completed. */
export const next = `
SELECT deadline FROM strata_clock WHERE completed_at IS NULL ORDER BY deadline LIMIT 1`

/** Of the database, in milliseconds. */
export const now = `SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::BIGINT`

/** On the channel to which the processes of an app listen already, see `PostgresSignal` of the dirty queue. */
export const announce = `SELECT pg_notify('strata_dirty', current_schema())`

/** Parameters: time, limit. Leaves alone what another transaction completes at the moment. */
export const fire = `
UPDATE strata_clock SET completed_at = $1::BIGINT, outcome = 'fired'
WHERE (execution_id, name) IN (
  SELECT execution_id, name FROM strata_clock
  WHERE completed_at IS NULL AND deadline <= $1::BIGINT
  ORDER BY deadline LIMIT $2::BIGINT FOR NO KEY UPDATE SKIP LOCKED
) AND completed_at IS NULL
RETURNING ${columns}`

/** Parameters: `[[execution id, name], …]` as JSON, time, outcome. */
export const complete = `
UPDATE strata_clock SET completed_at = $2::BIGINT, outcome = $3
WHERE (execution_id, name) IN (${keys}) AND completed_at IS NULL
RETURNING ${columns}`

/** Parameters: execution ids as a JSON array, time, outcome. */
export const completeOf = `
UPDATE strata_clock SET completed_at = $2::BIGINT, outcome = $3
WHERE execution_id IN (SELECT json_array_elements_text($1::JSON)) AND completed_at IS NULL
RETURNING ${columns}`

/** Parameter: `[[execution id, name], …]` as JSON. */
export const find = `SELECT ${columns} FROM strata_clock WHERE (execution_id, name) IN (${keys})`

export const ofRun = `SELECT ${columns} FROM strata_clock WHERE execution_id = $1`

/** Parameter: as of `insert`. */
export const put = `
INSERT INTO strata_clock (${columns}) SELECT ${given}
ON CONFLICT (execution_id, name) DO UPDATE SET
  deferred = excluded.deferred,
  deadline = excluded.deadline,
  scheduled_at = excluded.scheduled_at,
  completed_at = excluded.completed_at,
  outcome = excluded.outcome`

/** Parameter: `[[execution id, name], …]` as JSON. */
export const remove = `DELETE FROM strata_clock WHERE (execution_id, name) IN (${keys})`

/** Parameter: execution ids as a JSON array. */
export const removeOf = `
DELETE FROM strata_clock WHERE execution_id IN (SELECT json_array_elements_text($1::JSON)) RETURNING 1`

export const removeAll = `DELETE FROM strata_clock`
