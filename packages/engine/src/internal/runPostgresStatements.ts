/*
 * Every statement is one fixed text, and batches are one JSON parameter. They are guards by themselves under READ
 * COMMITTED: what they decide by is a column of the row that they change or lock, which Postgres reads again when it had
 * to wait for another transaction.
 */

const columns = (alias: string): string =>
  [
    "id",
    "execution_id",
    "workflow",
    "parent",
    "payload",
    "status",
    "held",
    "cause",
    "result",
    "interrupted",
    "owner",
    "fence",
    "wakes",
    "calls",
    "started_at",
    "updated_at",
    "settled_at"
  ]
    .map((name) => `${alias}.${name}`)
    .join(", ")

// ---------------------------------------------------------------------------------------------------------------------
// running
// ---------------------------------------------------------------------------------------------------------------------

/** Parameters: `[[execution id, workflow, parent, payload, owner], …]` as JSON, time. */
export const start = `
INSERT INTO strata_run (execution_id, workflow, parent, payload, status, owner, fence, started_at, updated_at)
SELECT b ->> 0, b ->> 1, b ->> 2, b ->> 3, 'running', (b ->> 4)::BIGINT, (b ->> 4 IS NOT NULL)::INTEGER,
  $2::BIGINT, $2::BIGINT
FROM json_array_elements($1::JSON) AS b
ON CONFLICT (execution_id) DO NOTHING
RETURNING id, execution_id`

/** Gives a row while the run is open, and keeps it so to the end of the transaction. Parameter: execution id. */
export const isOpen = `
SELECT id FROM strata_run WHERE execution_id = $1 AND status <> 'completed' FOR SHARE`

/** Parameters: execution id, parent. */
export const addWaiter = `
INSERT INTO strata_run_waiter (run, parent)
SELECT id, $2 FROM strata_run WHERE execution_id = $1 AND parent IS DISTINCT FROM $2 FOR KEY SHARE
ON CONFLICT DO NOTHING`

/** Parameters: `[[id, fence, name, attempt, exit, digest], …]` as JSON, time. */
export const record = `
WITH given AS (
  SELECT (b ->> 0)::BIGINT AS id, (b ->> 1)::BIGINT AS fence, b ->> 2 AS name, (b ->> 3)::BIGINT AS attempt,
    b ->> 4 AS exit, b ->> 5 AS digest
  FROM json_array_elements($1::JSON) AS b
), held AS (
  SELECT r.id, r.fence FROM strata_run AS r
  WHERE r.id IN (SELECT id FROM given) AND r.status = 'running'
  ORDER BY r.id FOR SHARE
)
INSERT INTO strata_run_activity (run, name, attempt, exit, digest, completed_at)
SELECT g.id, g.name, g.attempt, g.exit, g.digest, $2::BIGINT
FROM given AS g JOIN held AS h ON h.id = g.id AND h.fence = g.fence
ON CONFLICT (run, name, attempt) DO NOTHING
RETURNING run, name, attempt`

const stays = "(CASE b.held WHEN 1 THEN r.calls <> b.calls ELSE r.wakes <> b.wakes END)"

/** Parameters: `[[id, fence, wakes, calls, held, cause], …]` as JSON, time. */
export const suspend = `
UPDATE strata_run AS r SET
  status = CASE WHEN ${stays} THEN 'running' ELSE 'suspended' END,
  owner = CASE WHEN ${stays} THEN r.owner END,
  held = CASE WHEN ${stays} THEN 0 ELSE b.held END,
  cause = CASE WHEN ${stays} THEN NULL ELSE b.cause END,
  updated_at = $2::BIGINT
FROM (
  SELECT (b ->> 0)::BIGINT AS id, (b ->> 1)::BIGINT AS fence, (b ->> 2)::BIGINT AS wakes, (b ->> 3)::BIGINT AS calls,
    (b ->> 4)::INTEGER AS held, b ->> 5 AS cause
  FROM json_array_elements($1::JSON) AS b
) AS b
WHERE r.id = b.id AND r.fence = b.fence AND r.status = 'running'
RETURNING ${columns("r")}`

/** Parameters: `[[id, fence, result], …]` as JSON, time. */
export const complete = `
UPDATE strata_run AS r
SET status = 'completed', result = b.result, settled_at = $2::BIGINT, updated_at = $2::BIGINT, owner = NULL
FROM (
  SELECT (b ->> 0)::BIGINT AS id, (b ->> 1)::BIGINT AS fence, b ->> 2 AS result
  FROM json_array_elements($1::JSON) AS b
) AS b
WHERE r.id = b.id AND r.fence = b.fence AND r.status = 'running'
RETURNING r.id, r.parent`

/** Parameter: ids as a JSON array. */
export const waiters = `
SELECT parent FROM strata_run_waiter
WHERE run IN (SELECT value::BIGINT FROM json_array_elements_text($1::JSON) AS value)`

const starts = "(r.status = 'suspended' AND (r.held = 0 OR b.explicit = 1))"

const claims = `(r.owner IS NULL AND $3::BIGINT IS NOT NULL AND (r.status = 'running' OR r.held = 0 OR b.explicit = 1)
    AND r.workflow IN (SELECT json_array_elements_text($4::JSON)))`

/** Parameters: `[[execution id, explicit, interruption], …]` as JSON, time, owner, workflows as a JSON array. */
export const wake = `
UPDATE strata_run AS r SET
  wakes = r.wakes + 1,
  calls = r.calls + b.explicit,
  interrupted = CASE r.interrupted WHEN 'unsafe' THEN r.interrupted ELSE coalesce(b.interruption, r.interrupted) END,
  status = CASE WHEN ${starts} THEN 'running' ELSE r.status END,
  held = CASE WHEN ${starts} THEN 0 ELSE r.held END,
  cause = CASE WHEN ${starts} THEN NULL ELSE r.cause END,
  owner = CASE WHEN ${claims} THEN $3::BIGINT ELSE r.owner END,
  fence = r.fence + ${claims}::INTEGER,
  updated_at = $2::BIGINT
FROM (
  SELECT b ->> 0 AS execution_id, (b ->> 1)::INTEGER AS explicit, b ->> 2 AS interruption
  FROM json_array_elements($1::JSON) AS b
) AS b
WHERE r.execution_id = b.execution_id AND r.status <> 'completed'
RETURNING ${columns("r")}`

// ---------------------------------------------------------------------------------------------------------------------
// owning
// ---------------------------------------------------------------------------------------------------------------------

/** Parameters: owner, time, workflows as a JSON array, limit. */
export const claim = `
UPDATE strata_run AS r SET owner = $1::BIGINT, fence = r.fence + 1, updated_at = $2::BIGINT
WHERE r.id IN (
  SELECT id FROM strata_run
  WHERE status = 'running' AND owner IS NULL AND workflow IN (SELECT json_array_elements_text($3::JSON))
  ORDER BY id LIMIT $4::BIGINT FOR NO KEY UPDATE SKIP LOCKED
) AND r.owner IS NULL AND r.status = 'running'
RETURNING ${columns("r")}`

/** Parameter: workflows as a JSON array. */
export const isWaiting = `
SELECT 1 FROM strata_run
WHERE status = 'running' AND owner IS NULL AND workflow IN (SELECT json_array_elements_text($1::JSON)) LIMIT 1`

/** On the channel to which the processes of an app listen already, see `PostgresSignal` of the dirty queue. */
export const announce = `SELECT pg_notify('strata_dirty', current_schema())`

/** Parameters: `[[id, fence], …]` as JSON, time. */
export const release = `
UPDATE strata_run AS r SET owner = NULL, updated_at = $2::BIGINT
FROM (
  SELECT (b ->> 0)::BIGINT AS id, (b ->> 1)::BIGINT AS fence FROM json_array_elements($1::JSON) AS b
) AS b
WHERE r.id = b.id AND r.fence = b.fence AND r.status = 'running'`

export const owned = `SELECT id, fence, wakes, calls, interrupted FROM strata_run WHERE owner = $1::BIGINT`

export const enroll = `
INSERT INTO strata_run_owner (host, pid, process, lease_until) VALUES ($1, $2::BIGINT, $3, $4::BIGINT) RETURNING id`

export const renew = `UPDATE strata_run_owner SET lease_until = $2::BIGINT WHERE id = $1::BIGINT RETURNING id`

export const owners = `SELECT id, host, pid, process, lease_until FROM strata_run_owner ORDER BY id`

/** Parameter: `[[id, lease], …]` as JSON. */
export const retire = `
DELETE FROM strata_run_owner AS o
USING (
  SELECT (b ->> 0)::BIGINT AS id, (b ->> 1)::BIGINT AS lease FROM json_array_elements($1::JSON) AS b
) AS b
WHERE o.id = b.id AND o.lease_until = b.lease
RETURNING o.id`

/** Parameters: ids of owners as a JSON array, time. */
export const takeRuns = `
UPDATE strata_run AS r SET owner = NULL, fence = r.fence + 1, updated_at = $2::BIGINT
WHERE r.owner IN (SELECT value::BIGINT FROM json_array_elements_text($1::JSON) AS value)`

// ---------------------------------------------------------------------------------------------------------------------
// reading
// ---------------------------------------------------------------------------------------------------------------------

/** Parameter: execution ids as a JSON array. */
export const find = `
SELECT ${columns("r")} FROM strata_run AS r
WHERE r.execution_id IN (SELECT json_array_elements_text($1::JSON)) ORDER BY r.id`

export const outcomes = `SELECT name, attempt, exit, digest FROM strata_run_activity WHERE run = $1::BIGINT`

/** Parameter: execution ids as a JSON array. */
export const present = `
SELECT execution_id FROM strata_run WHERE execution_id IN (SELECT json_array_elements_text($1::JSON))`

/** Parameter: execution ids as a JSON array. */
export const completedOf = `
SELECT execution_id FROM strata_run
WHERE execution_id IN (SELECT json_array_elements_text($1::JSON)) AND status = 'completed'`

/** Parameters: before, status or null, workflow or null, limit. */
export const list = `
SELECT ${columns("r")} FROM strata_run AS r
WHERE r.id < $1::BIGINT AND ($2::TEXT IS NULL OR r.status = $2) AND ($3::TEXT IS NULL OR r.workflow = $3)
ORDER BY r.id DESC LIMIT $4::BIGINT`

/** Of a run `r`: whether one that has waited for it is not completed. */
const needed = `(
    EXISTS (SELECT 1 FROM strata_run AS p WHERE p.execution_id = r.parent AND p.status <> 'completed')
    OR EXISTS (
      SELECT 1 FROM strata_run_waiter AS w
      JOIN strata_run AS p ON p.execution_id = w.parent AND p.status <> 'completed'
      WHERE w.run = r.id
    )
  )`

/** Parameters: settled at and id to begin behind, the same to end with, limit. */
export const settled = `
SELECT r.settled_at, r.id, r.execution_id, ${needed}::INTEGER FROM strata_run AS r
WHERE r.settled_at IS NOT NULL AND r.settled_at BETWEEN $1::BIGINT AND $3::BIGINT
  AND (r.settled_at, r.id) > ($1::BIGINT, $2::BIGINT) AND (r.settled_at, r.id) <= ($3::BIGINT, $4::BIGINT)
ORDER BY r.settled_at, r.id LIMIT $5::BIGINT`

/** Parameter: how many are behind it. */
export const settledBeyond = `
SELECT settled_at, id FROM strata_run
WHERE settled_at IS NOT NULL ORDER BY settled_at DESC, id DESC LIMIT 1 OFFSET $1::BIGINT`

// ---------------------------------------------------------------------------------------------------------------------
// changing
// ---------------------------------------------------------------------------------------------------------------------

const named = (parameter: string): string =>
  `(name, attempt) IN (SELECT b ->> 0, (b ->> 1)::BIGINT FROM json_array_elements(${parameter}::JSON) AS b)`

/** Parameters: execution id, `[[name, attempt], …]` as JSON. */
export const dropOutcomes = `
DELETE FROM strata_run_activity
WHERE run = (SELECT id FROM strata_run WHERE execution_id = $1) AND ${named("$2")}`

const remains = "(r.status = 'completed' AND $2::INTEGER = 0)"

/** Parameters: execution id, whether the result goes, interruption or null, time. */
export const rewind = `
UPDATE strata_run AS r SET
  status = CASE WHEN ${remains} THEN r.status ELSE 'suspended' END,
  held = CASE WHEN ${remains} THEN 0 ELSE 1 END,
  cause = NULL,
  result = CASE $2::INTEGER WHEN 0 THEN r.result END,
  settled_at = CASE $2::INTEGER WHEN 0 THEN r.settled_at END,
  interrupted = coalesce($3::TEXT, r.interrupted),
  owner = NULL,
  fence = r.fence + 1,
  updated_at = $4::BIGINT
WHERE r.execution_id = $1
RETURNING ${columns("r")}`

/** The fence tells that it has a past. Parameters: execution id, that of the new run, interruption, time. */
export const fork = `
INSERT INTO strata_run AS r (
  execution_id, workflow, parent, payload, status, held, interrupted, fence, started_at, updated_at
)
SELECT $2, workflow, NULL, payload, 'suspended', 1, $3::TEXT, 1, $4::BIGINT, $4::BIGINT
FROM strata_run WHERE execution_id = $1
ON CONFLICT (execution_id) DO NOTHING
RETURNING ${columns("r")}`

/** Parameters: execution id, id of the new run, `[[name, attempt], …]` as JSON. */
export const copyOutcomes = `
INSERT INTO strata_run_activity (run, name, attempt, exit, digest, completed_at)
SELECT $2::BIGINT, name, attempt, exit, digest, completed_at FROM strata_run_activity
WHERE run = (SELECT id FROM strata_run WHERE execution_id = $1) AND ${named("$3")}`

/** Parameter: execution ids as a JSON array. */
export const remove = `
DELETE FROM strata_run AS r
WHERE r.execution_id IN (SELECT json_array_elements_text($1::JSON)) AND r.status = 'completed' AND NOT ${needed}
RETURNING r.id`

export const discard = `DELETE FROM strata_run WHERE execution_id = $1`
