/*
 * Every statement is one fixed text, so that the driver finds it prepared, and batches are one JSON parameter. Joins are
 * in a fixed order (`CROSS JOIN`), from the batch to the table.
 */

const columns =
  "id, execution_id, workflow, parent, payload, status, held, cause, result, interrupted, owner, fence, wakes, calls, " +
  "started_at, updated_at, settled_at"

// ---------------------------------------------------------------------------------------------------------------------
// running
// ---------------------------------------------------------------------------------------------------------------------

/** Parameters: `[[execution id, workflow, parent, payload, owner], …]` as JSON, time. */
export const start = `
INSERT INTO strata_run (execution_id, workflow, parent, payload, status, owner, fence, started_at, updated_at)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, 'running', value ->> 4, value ->> 4 IS NOT NULL, ?2, ?2
FROM json_each(?1) WHERE true
ON CONFLICT (execution_id) DO NOTHING
RETURNING id, execution_id`

/** Parameters: execution id, parent. */
export const addWaiter = `
INSERT INTO strata_run_waiter (run, parent)
SELECT id, ?2 FROM strata_run WHERE execution_id = ?1 AND parent IS NOT ?2
ON CONFLICT DO NOTHING`

export const isOpen = `SELECT 1 FROM strata_run WHERE execution_id = ?1 AND status <> 'completed'`

/** Parameters: `[[id, fence, name, attempt, exit, digest], …]` as JSON, time. */
export const record = `
INSERT INTO strata_run_activity (run, name, attempt, exit, digest, completed_at)
SELECT r.id, j.value ->> 2, j.value ->> 3, j.value ->> 4, j.value ->> 5, ?2
FROM json_each(?1) AS j
CROSS JOIN strata_run AS r ON r.id = j.value ->> 0 AND r.fence = j.value ->> 1 AND r.status = 'running'
WHERE true
ON CONFLICT (run, name, attempt) DO NOTHING
RETURNING run, name, attempt`

/** Parameters: `[[id, fence, wakes, calls, held, cause], …]` as JSON, time. */
export const suspend = `
UPDATE strata_run SET
  status = iif(j.stay, 'running', 'suspended'),
  owner = iif(j.stay, owner, NULL),
  held = iif(j.stay, 0, j.held),
  cause = iif(j.stay, NULL, j.cause),
  updated_at = ?2
FROM (
  SELECT r.id, b.value ->> 4 AS held, b.value ->> 5 AS cause,
    iif(b.value ->> 4, r.calls <> b.value ->> 3, r.wakes <> b.value ->> 2) AS stay
  FROM json_each(?1) AS b
  CROSS JOIN strata_run AS r ON r.id = b.value ->> 0 AND r.fence = b.value ->> 1 AND r.status = 'running'
) AS j
WHERE strata_run.id = j.id
RETURNING ${columns}`

/** Parameters: `[[id, fence, result], …]` as JSON, time. */
export const complete = `
UPDATE strata_run SET status = 'completed', result = j.result, settled_at = ?2, updated_at = ?2, owner = NULL
FROM (
  SELECT r.id, b.value ->> 2 AS result
  FROM json_each(?1) AS b
  CROSS JOIN strata_run AS r ON r.id = b.value ->> 0 AND r.fence = b.value ->> 1 AND r.status = 'running'
) AS j
WHERE strata_run.id = j.id
RETURNING id, parent`

/** Parameter: ids as a JSON array. */
export const waiters = `
SELECT w.parent FROM json_each(?1) AS b CROSS JOIN strata_run_waiter AS w ON w.run = b.value`

const starts = "(r.status = 'suspended' AND (r.held = 0 OR b.value ->> 1))"

const claims = `(r.owner IS NULL AND ?3 IS NOT NULL AND (r.status = 'running' OR r.held = 0 OR b.value ->> 1)
    AND r.workflow IN (SELECT value FROM json_each(?4)))`

/**
 * Parameters: `[[execution id, explicit, interruption], …]` as JSON, time, owner, workflows as a JSON array.
 *
 * It names its index, as the planner would look at all runs for a join of the batch with its target.
 */
export const wake = `
UPDATE strata_run AS r INDEXED BY sqlite_autoindex_strata_run_1 SET
  wakes = r.wakes + 1,
  calls = r.calls + (b.value ->> 1),
  interrupted = iif(r.interrupted = 'unsafe', r.interrupted, ifnull(b.value ->> 2, r.interrupted)),
  status = iif(${starts}, 'running', r.status),
  held = iif(${starts}, 0, r.held),
  cause = iif(${starts}, NULL, r.cause),
  owner = iif(${claims}, ?3, r.owner),
  fence = r.fence + ${claims},
  updated_at = ?2
FROM json_each(?1) AS b
WHERE r.execution_id = b.value ->> 0 AND r.status <> 'completed'
RETURNING ${columns}`

// ---------------------------------------------------------------------------------------------------------------------
// owning
// ---------------------------------------------------------------------------------------------------------------------

/** Parameters: owner, time, workflows as a JSON array, limit. */
export const claim = `
UPDATE strata_run SET owner = ?1, fence = fence + 1, updated_at = ?2
WHERE id IN (
  SELECT id FROM strata_run INDEXED BY strata_run_waiting
  WHERE status = 'running' AND owner IS NULL AND workflow IN (SELECT value FROM json_each(?3))
  ORDER BY id LIMIT ?4
)
RETURNING ${columns}`

/** Parameter: workflows as a JSON array. */
export const isWaiting = `
SELECT 1 FROM strata_run INDEXED BY strata_run_waiting
WHERE status = 'running' AND owner IS NULL AND workflow IN (SELECT value FROM json_each(?1)) LIMIT 1`

/** Others look at the number of the file's version. */
export const announce = ""

/** Parameters: `[[id, fence], …]` as JSON, time. */
export const release = `
UPDATE strata_run SET owner = NULL, updated_at = ?2
FROM (
  SELECT r.id FROM json_each(?1) AS b
  CROSS JOIN strata_run AS r ON r.id = b.value ->> 0 AND r.fence = b.value ->> 1 AND r.status = 'running'
) AS j
WHERE strata_run.id = j.id`

export const owned = `
SELECT id, fence, wakes, calls, interrupted FROM strata_run INDEXED BY strata_run_owned WHERE owner = ?1`

export const enroll = `
INSERT INTO strata_run_owner (host, pid, process, lease_until) VALUES (?1, ?2, ?3, ?4) RETURNING id`

export const renew = `UPDATE strata_run_owner SET lease_until = ?2 WHERE id = ?1 RETURNING id`

export const owners = `SELECT id, host, pid, process, lease_until FROM strata_run_owner ORDER BY id`

/** Parameter: `[[id, lease], …]` as JSON. */
export const retire = `
DELETE FROM strata_run_owner
WHERE id IN (
  SELECT o.id FROM json_each(?1) AS b
  CROSS JOIN strata_run_owner AS o ON o.id = b.value ->> 0 AND o.lease_until = b.value ->> 1
)
RETURNING id`

/** Parameters: ids of owners as a JSON array, time. */
export const takeRuns = `
UPDATE strata_run SET owner = NULL, fence = fence + 1, updated_at = ?2
WHERE id IN (
  SELECT r.id FROM json_each(?1) AS b CROSS JOIN strata_run AS r INDEXED BY strata_run_owned ON r.owner = b.value
)`

// ---------------------------------------------------------------------------------------------------------------------
// reading
// ---------------------------------------------------------------------------------------------------------------------

/** Parameter: execution ids as a JSON array. */
export const find = `
SELECT ${columns} FROM strata_run WHERE execution_id IN (SELECT value FROM json_each(?1)) ORDER BY id`

export const outcomes = `SELECT name, attempt, exit, digest FROM strata_run_activity WHERE run = ?1`

/** Parameter: execution ids as a JSON array. */
export const present = `
SELECT r.execution_id FROM json_each(?1) AS b CROSS JOIN strata_run AS r ON r.execution_id = b.value`

/** Parameter: execution ids as a JSON array. */
export const completedOf = `
SELECT r.execution_id FROM json_each(?1) AS b
CROSS JOIN strata_run AS r ON r.execution_id = b.value AND r.status = 'completed'`

/** Parameters: before, status or null, workflow or null, limit. */
export const list = `
SELECT ${columns} FROM strata_run
WHERE id < ?1 AND (?2 IS NULL OR status = ?2) AND (?3 IS NULL OR workflow = ?3)
ORDER BY id DESC LIMIT ?4`

/** Of a run `r`: whether one that has waited for it is not completed. */
const needed = `(
    EXISTS (SELECT 1 FROM strata_run AS p WHERE p.execution_id = r.parent AND p.status <> 'completed')
    OR EXISTS (
      SELECT 1 FROM strata_run_waiter AS w
      CROSS JOIN strata_run AS p ON p.execution_id = w.parent AND p.status <> 'completed'
      WHERE w.run = r.id
    )
  )`

/** Parameters: settled at and id to begin behind, the same to end with, limit. */
export const settled = `
SELECT r.settled_at, r.id, r.execution_id, ${needed} FROM strata_run AS r INDEXED BY strata_run_settled
WHERE r.settled_at IS NOT NULL AND r.settled_at BETWEEN ?1 AND ?3
  AND (r.settled_at, r.id) > (?1, ?2) AND (r.settled_at, r.id) <= (?3, ?4)
ORDER BY r.settled_at, r.id LIMIT ?5`

/** Parameter: how many are behind it. */
export const settledBeyond = `
SELECT settled_at, id FROM strata_run INDEXED BY strata_run_settled
WHERE settled_at IS NOT NULL ORDER BY settled_at DESC, id DESC LIMIT 1 OFFSET ?1`

// ---------------------------------------------------------------------------------------------------------------------
// changing
// ---------------------------------------------------------------------------------------------------------------------

/** Parameters: execution id, `[[name, attempt], …]` as JSON. */
export const dropOutcomes = `
DELETE FROM strata_run_activity
WHERE run = (SELECT id FROM strata_run WHERE execution_id = ?1)
  AND (name, attempt) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?2))`

/** Parameters: execution id, whether the result goes, interruption or null, time. */
export const rewind = `
UPDATE strata_run SET
  status = iif(status = 'completed' AND NOT ?2, status, 'suspended'),
  held = iif(status = 'completed' AND NOT ?2, 0, 1),
  cause = NULL,
  result = iif(?2, NULL, result),
  settled_at = iif(?2, NULL, settled_at),
  interrupted = ifnull(?3, interrupted),
  owner = NULL,
  fence = fence + 1,
  updated_at = ?4
WHERE execution_id = ?1
RETURNING ${columns}`

/** The fence tells that it has a past. Parameters: execution id, that of the new run, interruption, time. */
export const fork = `
INSERT INTO strata_run (
  execution_id, workflow, parent, payload, status, held, interrupted, fence, started_at, updated_at
)
SELECT ?2, workflow, NULL, payload, 'suspended', 1, ?3, 1, ?4, ?4 FROM strata_run WHERE execution_id = ?1
ON CONFLICT (execution_id) DO NOTHING
RETURNING ${columns}`

/** Parameters: execution id, id of the new run, `[[name, attempt], …]` as JSON. */
export const copyOutcomes = `
INSERT INTO strata_run_activity (run, name, attempt, exit, digest, completed_at)
SELECT ?2, name, attempt, exit, digest, completed_at FROM strata_run_activity
WHERE run = (SELECT id FROM strata_run WHERE execution_id = ?1)
  AND (name, attempt) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?3))`

/** Parameter: execution ids as a JSON array. */
export const remove = `
DELETE FROM strata_run AS r
WHERE r.execution_id IN (SELECT value FROM json_each(?1)) AND r.status = 'completed' AND NOT ${needed}
RETURNING id`

export const discard = `DELETE FROM strata_run WHERE execution_id = ?1`
