/*
 * Every statement is one fixed text, so that the driver finds it prepared, and batches are one JSON parameter, so that
 * no batch size meets a limit on bind parameters. Joins are in a fixed order (`CROSS JOIN`, `LEFT JOIN`) and name their
 * index, so that statistics cannot turn a page into a scan.
 */

const idOf = (name: string): string => `(SELECT id FROM strata_journal_stream WHERE name = ${name})`

// ---------------------------------------------------------------------------------------------------------------------
// appending
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Takes seqs for a stream, which it creates, behind those of all streams that were removed. Parameters: name, how many.
 */
export const allocate = `
INSERT INTO strata_journal_stream (name, head)
VALUES (?1, ?2 + (SELECT removed_head FROM strata_journal_floor WHERE id = 1))
ON CONFLICT (name) DO UPDATE SET head = head + ?2
RETURNING id, head`

/** Parameters: stream id, seq, type, payload, identity, time. */
export const appendOne = `
INSERT INTO strata_journal (stream, seq, type, payload, identity, recorded_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
RETURNING ordinal`

/** Parameters: `[[type, payload, identity, digest], …]` as JSON, stream id, the seq before the first, time. */
export const appendMany = `
INSERT INTO strata_journal (stream, seq, type, payload, identity, recorded_at)
SELECT ?2, ?3 + 1 + key, value ->> 0, value ->> 1, value ->> 2, ?4 FROM json_each(?1)
RETURNING seq, ordinal`

/** Takes seqs for streams that there are. Parameter: `[[name, how many], …]` as JSON. */
export const allocateAll = `
UPDATE strata_journal_stream AS s INDEXED BY sqlite_autoindex_strata_journal_stream_1
SET head = s.head + (b.value ->> 1)
FROM json_each(?1) AS b
WHERE s.name = b.value ->> 0
RETURNING id, name, head`

/** Parameters: `[[stream id, seq, type, payload], …]` as JSON, time. */
export const appendAll = `
INSERT INTO strata_journal (stream, seq, type, payload, recorded_at)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, ?2 FROM json_each(?1)`

/** Parameters: `[[identity, digest, seq, ordinal], …]` as JSON, stream id. */
export const insertIdentities = `
INSERT INTO strata_journal_identity (stream, identity, digest, seq, ordinal)
SELECT ?2, value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(?1)`

/** Parameters: stream name, identities as a JSON array. */
export const findIdentities = `
SELECT i.identity, i.digest, i.seq, i.ordinal
FROM json_each(?2) AS j
CROSS JOIN strata_journal_identity AS i ON i.stream = ${idOf("?1")} AND i.identity = j.value`

// ---------------------------------------------------------------------------------------------------------------------
// streams
// ---------------------------------------------------------------------------------------------------------------------

export const findStream = `SELECT name, head, floor FROM strata_journal_stream WHERE name = ?1`

/** Parameters: prefix, name to start after, limit. */
export const listStreams = `
SELECT name, head, floor FROM strata_journal_stream
WHERE name > ?2 AND substr(name, 1, length(?1)) = ?1
ORDER BY name LIMIT ?3`

// ---------------------------------------------------------------------------------------------------------------------
// reading
// ---------------------------------------------------------------------------------------------------------------------

/** The number of the last rewind, also when that is of a stream that was removed. */
const generation = `(SELECT ifnull(max(seq), 0) FROM sqlite_sequence WHERE name = 'strata_journal_rewind')`

const floor = "(SELECT ordinal FROM strata_journal_floor WHERE id = 1)"

const entry = "e.ordinal, e.seq, e.type, e.payload, e.identity, e.recorded_at"

const ofTypes = (typed: boolean, parameter: string): string =>
  typed ? `AND e.type IN (SELECT value FROM json_each(${parameter}))` : ""

/*
 * A page is a row without an ordinal, which tells floor, head and generation, and then the entries. It is one statement,
 * so that all of it is of one moment, and no join, as the planner does not take the outer table for one row once it has
 * statistics, and would sort all entries for each page.
 */

/** No row for a stream that does not exist. Parameters: name, after, up to, limit, and the types if there are some. */
export const readStream = (typed: boolean): string => `
SELECT NULL, floor, head, ${generation}, NULL, NULL FROM strata_journal_stream WHERE name = ?1
UNION ALL
SELECT * FROM (
  SELECT ${entry} FROM strata_journal AS e INDEXED BY strata_journal_seq
  WHERE e.stream = ${idOf("?1")} AND e.seq > ?2 AND e.seq <= ?3 ${ofTypes(typed, "?5")}
  ORDER BY e.seq LIMIT ?4
)`

/** Parameters: after, up to, limit, and the types if there are some. */
export const readAll = (typed: boolean): string => `
SELECT NULL, ${floor}, (SELECT ifnull(max(ordinal), 0) FROM strata_journal), ${generation}, NULL, NULL, NULL
UNION ALL
SELECT * FROM (
  SELECT ${entry}, (SELECT name FROM strata_journal_stream WHERE id = e.stream)
  FROM strata_journal AS e NOT INDEXED
  WHERE e.ordinal > ?1 AND e.ordinal <= ?2 ${ofTypes(typed, "?4")}
  ORDER BY e.ordinal LIMIT ?3
)`

/** Parameters: stream name, seq. */
export const lastUpTo = `
SELECT ${entry} FROM strata_journal AS e INDEXED BY strata_journal_seq
WHERE stream = ${idOf("?1")} AND seq <= ?2 ORDER BY seq DESC LIMIT 1`

/** Parameters: stream name, seq. */
export const firstAfter = `
SELECT ${entry} FROM strata_journal AS e INDEXED BY strata_journal_seq
WHERE stream = ${idOf("?1")} AND seq > ?2 ORDER BY seq LIMIT 1`

// ---------------------------------------------------------------------------------------------------------------------
// checkpoints
// ---------------------------------------------------------------------------------------------------------------------

/** Parameters: stream name, seq, fold, state, time. */
export const saveState = `
INSERT INTO strata_journal_checkpoint (stream, seq, fold, state, taken_at) VALUES (${idOf("?1")}, ?2, ?3, ?4, ?5)
ON CONFLICT (stream, seq, fold) DO UPDATE SET state = excluded.state, taken_at = excluded.taken_at`

/** Parameters: stream name, seq. */
export const findStates = `
SELECT fold, state FROM strata_journal_checkpoint WHERE stream = ${idOf("?1")} AND seq = ?2 ORDER BY fold`

export const listCheckpoints = `
SELECT seq, fold FROM strata_journal_checkpoint WHERE stream = ${idOf("?1")} ORDER BY seq, fold`

/** Parameters: fold, ordinal, state, time. */
export const saveGlobalState = `
INSERT INTO strata_journal_global_checkpoint (fold, ordinal, state, taken_at) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (fold) DO UPDATE SET ordinal = excluded.ordinal, state = excluded.state, taken_at = excluded.taken_at`

export const findGlobalStates = `SELECT fold, ordinal, state FROM strata_journal_global_checkpoint ORDER BY fold`

/** Parameter: folds as a JSON array. */
export const deleteGlobalStates = `
DELETE FROM strata_journal_global_checkpoint WHERE fold IN (SELECT value FROM json_each(?1))`

export const globalFloor = `SELECT ${floor}`

// ---------------------------------------------------------------------------------------------------------------------
// compaction
// ---------------------------------------------------------------------------------------------------------------------

/** Parameters: stream name, seq. */
export const deleteBelow = `DELETE FROM strata_journal WHERE stream = ${idOf("?1")} AND seq < ?2`

/** How many rows the statement before has changed. */
export const changes = `SELECT changes()`

export const raiseFloor = `UPDATE strata_journal_stream SET floor = ?2 WHERE name = ?1`

export const deleteStatesBelow = `DELETE FROM strata_journal_checkpoint WHERE stream = ${idOf("?1")} AND seq < ?2`

export const raiseGlobalFloor = `UPDATE strata_journal_floor SET ordinal = max(ordinal, ?1) WHERE id = 1`

/** No stream that is created later gets a seq of a removed one. Parameter: stream name. */
export const keepHead = `
UPDATE strata_journal_floor
SET removed_head = max(removed_head, ifnull((SELECT head FROM strata_journal_stream WHERE name = ?1), 0))
WHERE id = 1`

const deleteOf = (table: string): string => `DELETE FROM ${table} WHERE stream = ${idOf("?1")}`

export const deleteEntriesOf = deleteOf("strata_journal")

/** In this order, and the stream last. Parameter: stream name. */
export const deleteRestOf = [
  "strata_journal_identity",
  "strata_journal_checkpoint",
  "strata_journal_archive",
  "strata_journal_rewind"
].map(deleteOf)

export const deleteStream = `DELETE FROM strata_journal_stream WHERE name = ?1`

// ---------------------------------------------------------------------------------------------------------------------
// rewinding
// ---------------------------------------------------------------------------------------------------------------------

/** Parameters: stream name, seq. */
export const insertRewind = `
INSERT INTO strata_journal_rewind (stream, after_seq) VALUES (${idOf("?1")}, ?2) RETURNING id`

/** Parameters: stream name, seq, rewind, time. */
export const archive = `
INSERT INTO strata_journal_archive (stream, seq, ordinal, type, payload, identity, recorded_at, rewind, archived_at)
SELECT stream, seq, ordinal, type, payload, identity, recorded_at, ?3, ?4
FROM strata_journal INDEXED BY strata_journal_seq WHERE stream = ${idOf("?1")} AND seq > ?2`

const deleteAfter = (table: string): string => `DELETE FROM ${table} WHERE stream = ${idOf("?1")} AND seq > ?2`

export const deleteEntriesAfter = deleteAfter("strata_journal")

export const deleteIdentitiesAfter = deleteAfter("strata_journal_identity")

export const deleteStatesAfter = deleteAfter("strata_journal_checkpoint")

/** Parameters: stream name, seq, limit, and the rewind if there is one. */
export const readArchive = (ofRewind: boolean): string => `
SELECT ${entry}, e.rewind, e.archived_at FROM strata_journal_archive AS e
WHERE e.stream = ${idOf("?1")} AND e.seq < ?2 ${ofRewind ? "AND e.rewind = ?4" : ""}
ORDER BY e.seq DESC LIMIT ?3`
