/*
 * Every statement is one fixed text, so that the driver finds it prepared, and batches are one JSON parameter.
 */

const idOf = (name: string): string => `(SELECT id FROM strata_journal_stream WHERE name = ${name})`

// ---------------------------------------------------------------------------------------------------------------------
// appending
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Takes seqs for a stream, which it creates, behind those of all streams that were removed; no row when a transaction
 * that began after this one has appended to it. Parameters: name, how many.
 */
export const allocate = `
INSERT INTO strata_journal_stream AS s (name, head, transaction)
VALUES (
  $1,
  $2::BIGINT + (SELECT removed_head FROM strata_journal_floor WHERE id = 1),
  strata_journal_transaction()
)
ON CONFLICT (name) DO UPDATE SET head = s.head + $2::BIGINT, transaction = excluded.transaction
WHERE s.transaction <= excluded.transaction
RETURNING id, head, transaction`

/** Parameters: `[[type, payload, identity, digest], …]` as JSON, stream id, the seq before the first, time, transaction. */
export const append = `
INSERT INTO strata_journal (transaction, stream, seq, type, payload, identity, recorded_at)
SELECT $5::BIGINT, $2::BIGINT, $3::BIGINT + place, event ->> 0, event ->> 1, event ->> 2, $4::BIGINT
FROM json_array_elements($1::JSON) WITH ORDINALITY AS given (event, place)
ORDER BY place
RETURNING seq, ordinal`

/**
 * Takes seqs for streams that there are, but for those to which a transaction that began after this one has appended.
 * Parameter: `[[name, how many], …]` as JSON.
 */
export const allocateAll = `
UPDATE strata_journal_stream AS s SET head = s.head + b.events, transaction = b.transaction
FROM (
  SELECT b ->> 0 AS name, (b ->> 1)::BIGINT AS events, strata_journal_transaction() AS transaction
  FROM json_array_elements($1::JSON) AS b
) AS b
WHERE s.name = b.name AND s.transaction <= b.transaction
RETURNING s.id, s.name, s.head, s.transaction`

/** Parameters: `[[stream id, seq, type, payload], …]` as JSON, time, transaction. */
export const appendAll = `
INSERT INTO strata_journal (transaction, stream, seq, type, payload, recorded_at)
SELECT $3::BIGINT, (event ->> 0)::BIGINT, (event ->> 1)::BIGINT, event ->> 2, event ->> 3, $2::BIGINT
FROM json_array_elements($1::JSON) WITH ORDINALITY AS given (event, place)
ORDER BY place`

/** Those that were free. Parameters: `[[identity, digest, seq, ordinal], …]` as JSON, stream id, transaction. */
export const insertIdentities = `
INSERT INTO strata_journal_identity (stream, identity, digest, seq, transaction, ordinal)
SELECT $2::BIGINT, i ->> 0, i ->> 1, (i ->> 2)::BIGINT, $3::BIGINT, (i ->> 3)::BIGINT
FROM json_array_elements($1::JSON) AS i
ON CONFLICT (stream, identity) DO NOTHING
RETURNING 1`

/** Parameters: stream name, identities as a JSON array. */
export const findIdentities = `
SELECT i.identity, i.digest, i.seq, i.transaction, i.ordinal
FROM json_array_elements_text($2::JSON) AS wanted
JOIN strata_journal_identity AS i ON i.stream = ${idOf("$1")} AND i.identity = wanted COLLATE "C"`

// ---------------------------------------------------------------------------------------------------------------------
// streams
// ---------------------------------------------------------------------------------------------------------------------

export const findStream = `SELECT name, head, floor FROM strata_journal_stream WHERE name = $1`

/** Parameters: prefix, name to start after, limit. */
export const listStreams = `
SELECT name, head, floor FROM strata_journal_stream
WHERE name > $2 AND starts_with(name, $1)
ORDER BY name LIMIT $3::BIGINT`

// ---------------------------------------------------------------------------------------------------------------------
// reading
// ---------------------------------------------------------------------------------------------------------------------

const entry = "e.transaction, e.ordinal, e.seq, e.type, e.payload, e.identity, e.recorded_at"

const ofTypes = (typed: boolean, parameter: string): string =>
  typed ? `AND e.type IN (SELECT json_array_elements_text(${parameter}::JSON) COLLATE "C")` : ""

/*
 * A page is a row without an ordinal, which tells of the whole, and then the entries. It is one statement, so that all
 * of it is of one moment.
 */

/**
 * First floor, head and generation; no row for a stream that does not exist. Parameters: name, after, up to, limit, and
 * the types if there are some.
 */
export const readStream = (typed: boolean): string => `
SELECT s.floor, NULL::BIGINT, s.head, NULL::TEXT, NULL::TEXT, NULL::TEXT, f.generation
FROM strata_journal_stream AS s, strata_journal_floor AS f WHERE s.name = $1 AND f.id = 1
UNION ALL
(
  SELECT ${entry} FROM strata_journal AS e
  WHERE e.stream = ${idOf("$1")} AND e.seq > $2::BIGINT AND e.seq <= $3::BIGINT ${ofTypes(typed, "$5")}
  ORDER BY e.seq LIMIT $4::BIGINT
)`

/** What can be seen once and for all: nothing of what runs, and of this transaction only what is behind nothing else. */
const settled = `(e.transaction < (SELECT strata_journal_horizon()) OR (
    e.transaction = (SELECT pg_current_xact_id_if_assigned()::TEXT::BIGINT)
    AND e.transaction <= (SELECT strata_journal_horizon())
  ))`

/**
 * First horizon, generation, and the transaction that this is if it has written; then, in a second row without an
 * ordinal, the floor; then, in a third one, the last entry that can be seen. Parameters: after and up to, as transaction
 * and ordinal each, limit, and the types if there are some.
 */
export const readAll = (typed: boolean): string => `
SELECT strata_journal_horizon(), NULL::BIGINT, f.generation, 'now', NULL::TEXT, NULL::TEXT,
  coalesce(pg_current_xact_id_if_assigned()::TEXT::BIGINT, 0), NULL::TEXT
FROM strata_journal_floor AS f WHERE f.id = 1
UNION ALL
SELECT f.transaction, NULL, f.ordinal, 'floor', NULL, NULL, NULL, NULL FROM strata_journal_floor AS f WHERE f.id = 1
UNION ALL
(
  SELECT e.transaction, NULL, e.ordinal, 'head', NULL, NULL, NULL, NULL FROM strata_journal AS e WHERE ${settled}
  ORDER BY e.transaction DESC, e.ordinal DESC LIMIT 1
)
UNION ALL
(
  SELECT ${entry}, (SELECT name FROM strata_journal_stream WHERE id = e.stream)
  FROM strata_journal AS e
  WHERE (e.transaction, e.ordinal) > ($1::BIGINT, $2::BIGINT) AND (e.transaction, e.ordinal) <= ($3::BIGINT, $4::BIGINT)
    AND ${settled} ${ofTypes(typed, "$6")}
  ORDER BY e.transaction, e.ordinal LIMIT $5::BIGINT
)`

/** Parameters: stream name, seq. */
export const lastUpTo = `
SELECT ${entry} FROM strata_journal AS e
WHERE stream = ${idOf("$1")} AND seq <= $2::BIGINT ORDER BY seq DESC LIMIT 1`

/** Parameters: stream name, seq. */
export const firstAfter = `
SELECT ${entry} FROM strata_journal AS e
WHERE stream = ${idOf("$1")} AND seq > $2::BIGINT ORDER BY seq LIMIT 1`

/** In the time of the database. */
export const pause = `SELECT pg_sleep(0.01)`

// ---------------------------------------------------------------------------------------------------------------------
// checkpoints
// ---------------------------------------------------------------------------------------------------------------------

/** Parameters: stream name, seq, fold, state, time. */
export const saveState = `
INSERT INTO strata_journal_checkpoint (stream, seq, fold, state, taken_at)
VALUES (${idOf("$1")}, $2::BIGINT, $3, $4, $5::BIGINT)
ON CONFLICT (stream, seq, fold) DO UPDATE SET state = excluded.state, taken_at = excluded.taken_at`

/** Parameters: stream name, seq. */
export const findStates = `
SELECT fold, state FROM strata_journal_checkpoint WHERE stream = ${idOf("$1")} AND seq = $2::BIGINT ORDER BY fold`

export const listCheckpoints = `
SELECT seq, fold FROM strata_journal_checkpoint WHERE stream = ${idOf("$1")} ORDER BY seq, fold`

/** Parameters: fold, transaction, ordinal, state, time. */
export const saveGlobalState = `
INSERT INTO strata_journal_global_checkpoint (fold, transaction, ordinal, state, taken_at)
VALUES ($1, $2::BIGINT, $3::BIGINT, $4, $5::BIGINT)
ON CONFLICT (fold) DO UPDATE SET transaction = excluded.transaction, ordinal = excluded.ordinal,
  state = excluded.state, taken_at = excluded.taken_at`

export const findGlobalStates = `
SELECT fold, transaction, ordinal, state FROM strata_journal_global_checkpoint ORDER BY fold`

/** Parameter: folds as a JSON array. */
export const deleteGlobalStates = `
DELETE FROM strata_journal_global_checkpoint
WHERE fold IN (SELECT json_array_elements_text($1::JSON) COLLATE "C")`

export const globalFloor = `SELECT transaction, ordinal FROM strata_journal_floor WHERE id = 1`

// ---------------------------------------------------------------------------------------------------------------------
// compaction
// ---------------------------------------------------------------------------------------------------------------------

/** Parameters: stream name, seq. */
export const deleteBelow = counted(`
  DELETE FROM strata_journal WHERE stream = ${idOf("$1")} AND seq < $2::BIGINT RETURNING 1`)

export const raiseFloor = `UPDATE strata_journal_stream SET floor = $2::BIGINT WHERE name = $1`

export const deleteStatesBelow = `
DELETE FROM strata_journal_checkpoint WHERE stream = ${idOf("$1")} AND seq < $2::BIGINT`

/** Parameters: transaction, ordinal. */
export const raiseGlobalFloor = `
UPDATE strata_journal_floor SET transaction = $1::BIGINT, ordinal = $2::BIGINT
WHERE id = 1 AND (transaction, ordinal) < ($1::BIGINT, $2::BIGINT)`

/** No stream that is created later gets a seq of a removed one. Parameter: stream name. */
export const keepHead = `
UPDATE strata_journal_floor
SET removed_head = greatest(removed_head, (SELECT head FROM strata_journal_stream WHERE name = $1))
WHERE id = 1`

const deleteOf = (table: string): string => `DELETE FROM ${table} WHERE stream = ${idOf("$1")}`

export const deleteEntriesOf = counted(`${deleteOf("strata_journal")} RETURNING 1`)

/** In this order, and the stream last. Parameter: stream name. */
export const deleteRestOf = [
  "strata_journal_identity",
  "strata_journal_checkpoint",
  "strata_journal_archive",
  "strata_journal_rewind"
].map(deleteOf)

export const deleteStream = `DELETE FROM strata_journal_stream WHERE name = $1`

// ---------------------------------------------------------------------------------------------------------------------
// rewinding
// ---------------------------------------------------------------------------------------------------------------------

/** Parameters: stream name, seq. */
export const insertRewind = `
INSERT INTO strata_journal_rewind (stream, after_seq) VALUES (${idOf("$1")}, $2::BIGINT) RETURNING id`

export const countRewind = `UPDATE strata_journal_floor SET generation = generation + 1 WHERE id = 1`

/** Parameters: stream name, seq, rewind, time. */
export const archive = counted(`
  INSERT INTO strata_journal_archive (
    stream, seq, transaction, ordinal, type, payload, identity, recorded_at, rewind, archived_at
  )
  SELECT stream, seq, transaction, ordinal, type, payload, identity, recorded_at, $3::BIGINT, $4::BIGINT
  FROM strata_journal WHERE stream = ${idOf("$1")} AND seq > $2::BIGINT
  RETURNING 1`)

const deleteAfter = (table: string): string => `DELETE FROM ${table} WHERE stream = ${idOf("$1")} AND seq > $2::BIGINT`

export const deleteEntriesAfter = deleteAfter("strata_journal")

export const deleteIdentitiesAfter = deleteAfter("strata_journal_identity")

export const deleteStatesAfter = deleteAfter("strata_journal_checkpoint")

/** Parameters: stream name, seq, limit, and the rewind if there is one. */
export const readArchive = (ofRewind: boolean): string => `
SELECT ${entry}, e.rewind, e.archived_at FROM strata_journal_archive AS e
WHERE e.stream = ${idOf("$1")} AND e.seq < $2::BIGINT ${ofRewind ? "AND e.rewind = $4::BIGINT" : ""}
ORDER BY e.seq DESC LIMIT $3::BIGINT`

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/** How many rows a change has changed. */
function counted(change: string): string {
  return `WITH changed AS (${change}) SELECT count(*) FROM changed`
}
