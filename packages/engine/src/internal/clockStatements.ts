/*
 * Every statement is one fixed text, so that the driver finds it prepared, and batches are one JSON parameter. Joins are
 * in a fixed order (`CROSS JOIN`), from the batch to the table.
 */

const columns = "execution_id, name, deferred, deadline, scheduled_at, completed_at, outcome"

const keyed = "c.execution_id = j.value ->> 0 AND c.name = j.value ->> 1"

const given =
  "value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6 FROM json_each(?1)"

/** Parameter: `[[execution id, name, deferred, deadline, scheduled at, completed at, outcome], …]` as JSON. */
export const insert = `
INSERT INTO strata_clock (${columns}) SELECT ${given} WHERE true
ON CONFLICT (execution_id, name) DO NOTHING
RETURNING execution_id, name`

/** The least deadline of those that are not completed. */
export const next = `
SELECT deadline FROM strata_clock INDEXED BY strata_clock_pending
WHERE completed_at IS NULL ORDER BY deadline LIMIT 1`

/** Parameters: time, limit. */
export const fire = `
UPDATE strata_clock SET completed_at = ?1, outcome = 'fired'
WHERE rowid IN (
  SELECT rowid FROM strata_clock INDEXED BY strata_clock_pending
  WHERE completed_at IS NULL AND deadline <= ?1 ORDER BY deadline LIMIT ?2
)
RETURNING ${columns}`

/** Parameters: `[[execution id, name], …]` as JSON, time, outcome. */
export const complete = `
UPDATE strata_clock SET completed_at = ?2, outcome = ?3
WHERE rowid IN (
  SELECT c.rowid FROM json_each(?1) AS j CROSS JOIN strata_clock AS c ON ${keyed} AND c.completed_at IS NULL
)
RETURNING ${columns}`

/** Parameters: execution ids as a JSON array, time, outcome. */
export const completeOf = `
UPDATE strata_clock SET completed_at = ?2, outcome = ?3
WHERE rowid IN (
  SELECT c.rowid FROM json_each(?1) AS j
  CROSS JOIN strata_clock AS c ON c.execution_id = j.value AND c.completed_at IS NULL
)
RETURNING ${columns}`

/** Parameter: `[[execution id, name], …]` as JSON. */
export const find = `
SELECT c.execution_id, c.name, c.deferred, c.deadline, c.scheduled_at, c.completed_at, c.outcome
FROM json_each(?1) AS j CROSS JOIN strata_clock AS c ON ${keyed}`

export const ofRun = `SELECT ${columns} FROM strata_clock WHERE execution_id = ?1`

/** Parameter: as of `insert`. */
export const put = `
INSERT INTO strata_clock (${columns}) SELECT ${given} WHERE true
ON CONFLICT (execution_id, name) DO UPDATE SET
  deferred = excluded.deferred,
  deadline = excluded.deadline,
  scheduled_at = excluded.scheduled_at,
  completed_at = excluded.completed_at,
  outcome = excluded.outcome`

/** Parameter: `[[execution id, name], …]` as JSON. */
export const remove = `
DELETE FROM strata_clock
WHERE rowid IN (SELECT c.rowid FROM json_each(?1) AS j CROSS JOIN strata_clock AS c ON ${keyed})`

/** Parameter: execution ids as a JSON array. */
export const removeOf = `
DELETE FROM strata_clock
WHERE rowid IN (
  SELECT c.rowid FROM json_each(?1) AS j CROSS JOIN strata_clock AS c ON c.execution_id = j.value
)
RETURNING 1`

export const removeAll = `DELETE FROM strata_clock`
