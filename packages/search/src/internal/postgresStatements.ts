/*
 * Every statement is one fixed text, so that the driver finds it prepared, and batches are one JSON parameter. Rows are
 * written in the order of their paths, so that two writes do not wait for each other in a circle.
 */

// ---------------------------------------------------------------------------------------------------------------------
// generations
// ---------------------------------------------------------------------------------------------------------------------

const now = "(extract(epoch FROM clock_timestamp()) * 1000)::BIGINT"

export const generations = `SELECT id, extraction FROM strata_search_generation WHERE state = $1 ORDER BY id`

/** Gives nothing when another process was first. */
export const createGeneration = `
INSERT INTO strata_search_generation (extraction, state, created_at) VALUES ($1, $2, ${now})
ON CONFLICT DO NOTHING RETURNING id, extraction`

export const setState = `UPDATE strata_search_generation SET state = $2 WHERE state = $1`

export const activate = `UPDATE strata_search_generation SET state = 'active' WHERE id = $1::BIGINT`

export const dropPassages = `
DELETE FROM strata_search_passage AS p USING strata_search_document AS d
WHERE d.id = p.document AND d.generation = $1::BIGINT`

export const dropDocuments = `DELETE FROM strata_search_document WHERE generation = $1::BIGINT`

export const dropGeneration = `DELETE FROM strata_search_generation WHERE id = $1::BIGINT AND state = 'retired'`

// ---------------------------------------------------------------------------------------------------------------------
// documents
// ---------------------------------------------------------------------------------------------------------------------

const inActive = "generation = (SELECT id FROM strata_search_generation WHERE state = 'active')"

export const countDocuments = `SELECT count(*), count(skipped) FROM strata_search_document WHERE ${inActive}`

/** Parameters: scope, the path behind which to read, prefix, limit. */
export const digests = `
SELECT path, digest FROM strata_search_document
WHERE ${inActive} AND scope = $1 AND path > $2 AND path >= $3 AND starts_with(path, $3)
ORDER BY path LIMIT $4::BIGINT`

/** Parameters: scope or null, prefix, paths to list as JSON or null, paths to leave out as JSON, limit. */
export const skipped = `
SELECT scope, path, skipped, count(*) OVER () FROM strata_search_document
WHERE ${inActive} AND skipped IS NOT NULL AND ($1::TEXT IS NULL OR scope = $1) AND starts_with(path, $2)
  AND ($3::TEXT IS NULL OR path IN (SELECT json_array_elements_text($3::JSON)))
  AND path NOT IN (SELECT json_array_elements_text($4::JSON))
ORDER BY scope, path LIMIT $5::BIGINT`

/** Parameters: generation, scope, paths as JSON. */
export const findDocuments = `
SELECT id, path, digest, passages FROM strata_search_document
WHERE generation = $1::BIGINT AND scope = $2 AND path IN (SELECT json_array_elements_text($3::JSON))`

/** Parameters: generation, scope, `[[path, digest, title, passages, skipped], …]` as JSON. */
export const upsertDocuments = `
INSERT INTO strata_search_document (generation, scope, path, digest, title, passages, skipped)
SELECT $1::BIGINT, $2, d ->> 0, d ->> 1, d ->> 2, (d ->> 3)::INTEGER, d ->> 4
FROM json_array_elements($3::JSON) AS given (d)
ORDER BY (d ->> 0) COLLATE "C"
ON CONFLICT (generation, scope, path) DO UPDATE SET
  digest = excluded.digest, title = excluded.title, passages = excluded.passages, skipped = excluded.skipped
RETURNING id, path`

export const removeDocuments = `DELETE FROM strata_search_document WHERE id = ANY ($1::BIGINT[])`

export const removePassages = `DELETE FROM strata_search_passage WHERE document = ANY ($1::BIGINT[])`

/** Parameter: `[[document, ordinal, title, heading, body, lines, words], …]` as JSON. */
export const insertPassages = `
INSERT INTO strata_search_passage (document, ordinal, title, heading, body, lines, words)
SELECT (p ->> 0)::BIGINT, (p ->> 1)::INTEGER, p ->> 2, p ->> 3, p ->> 4, p ->> 5, (p ->> 6)::TSVECTOR
FROM json_array_elements($1::JSON) AS given (p)`

// ---------------------------------------------------------------------------------------------------------------------
// checking
// ---------------------------------------------------------------------------------------------------------------------

/** Documents of a generation that have another number of passages than they should, and gaps between those. */
export const countMisfits = `
SELECT count(*) FROM strata_search_document AS d
LEFT JOIN (SELECT document, count(*) AS passages, max(ordinal) AS last FROM strata_search_passage GROUP BY 1) AS p
  ON p.document = d.id
WHERE d.generation = $1::BIGINT
  AND (d.passages <> coalesce(p.passages, 0) OR coalesce(p.passages, 0) <> coalesce(p.last + 1, 0))`

/** Parameters: generation, the document and the ordinal behind which to read, limit. */
export const readPassages = `
SELECT p.document, p.ordinal, p.title, p.heading, p.body, p.lines
FROM strata_search_passage AS p JOIN strata_search_document AS d ON d.id = p.document
WHERE d.generation = $1::BIGINT AND (p.document, p.ordinal) > ($2::BIGINT, $3::INTEGER)
ORDER BY p.document, p.ordinal LIMIT $4::BIGINT`

/** Whether a passage has other words than these. Parameter: `[[document, ordinal, words], …]` as JSON. */
export const compareWords = `
SELECT 1 FROM json_array_elements($1::JSON) AS given (g)
JOIN strata_search_passage AS p ON p.document = (g ->> 0)::BIGINT AND p.ordinal = (g ->> 1)::INTEGER
WHERE p.words <> (g ->> 2)::TSVECTOR LIMIT 1`

// ---------------------------------------------------------------------------------------------------------------------
// what scans have seen
// ---------------------------------------------------------------------------------------------------------------------

/** Parameters: scope, the folder from which or behind which to read, prefix, limit. */
export const folders = (behind: boolean): string => `
SELECT folder, entries FROM strata_search_folder
WHERE scope = $1 AND folder ${behind ? ">" : ">="} $2 AND starts_with(folder, $3)
ORDER BY folder LIMIT $4::BIGINT`

export const folder = `SELECT digest, entries FROM strata_search_folder WHERE scope = $1 AND folder = $2`

export const folderDigest = `SELECT digest FROM strata_search_folder WHERE scope = $1 AND folder = $2`

/** Parameters: scope, folders as JSON. */
export const deleteFolders = `
DELETE FROM strata_search_folder WHERE scope = $1 AND folder IN (SELECT json_array_elements_text($2::JSON))`

/** Parameters: scope, `[[folder, digest, entries], …]` as JSON. */
export const upsertFolders = `
INSERT INTO strata_search_folder (scope, folder, digest, entries)
SELECT $1, f ->> 0, f ->> 1, f ->> 2 FROM json_array_elements($2::JSON) AS given (f)
ORDER BY (f ->> 0) COLLATE "C"
ON CONFLICT (scope, folder) DO UPDATE SET digest = excluded.digest, entries = excluded.entries`

const digestOf = (path: string): string => `sha256(convert_to(${path}, 'UTF8'))`

export const problems = `
SELECT path, reason FROM strata_search_problem
WHERE scope = $1 AND path >= $2 AND starts_with(path, $2) ORDER BY path`

/** Parameters: scope, paths as JSON. */
export const deleteProblems = `
DELETE FROM strata_search_problem
WHERE scope = $1 AND digest IN (SELECT ${digestOf("path")} FROM json_array_elements_text($2::JSON) AS given (path))`

/** Parameters: scope, `[[path, reason], …]` as JSON. */
export const upsertProblems = `
INSERT INTO strata_search_problem (scope, digest, path, reason)
SELECT $1, ${digestOf("p ->> 0")}, p ->> 0, p ->> 1 FROM json_array_elements($2::JSON) AS given (p)
ORDER BY (p ->> 0) COLLATE "C"
ON CONFLICT (scope, digest) DO UPDATE SET reason = excluded.reason`

// ---------------------------------------------------------------------------------------------------------------------
// finding
// ---------------------------------------------------------------------------------------------------------------------

export const tables = `SELECT to_regclass('strata_search_generation') IS NOT NULL`

export const active = `SELECT id FROM strata_search_generation WHERE state = 'active'`

export const scopes = `SELECT DISTINCT scope FROM strata_search_document WHERE generation = $1::BIGINT ORDER BY scope`

/**
 * Body, unused, heading and title weigh as on SQLite. The last argument divides by the logarithm of the length of a
 * passage.
 *
 * Parameters: generation, query, limit, and `[[scope, prefix], …]` as JSON if there is such a limit.
 */
export const find = (within: boolean): string => `
WITH matched AS MATERIALIZED (
  SELECT d.scope, d.path, d.title, p.document, p.ordinal, ts_rank_cd('{0.125, 0, 0.5, 1}', p.words, $2::TSQUERY, 1) AS score
  FROM strata_search_passage AS p JOIN strata_search_document AS d ON d.id = p.document
  WHERE p.words @@ $2::TSQUERY AND d.generation = $1::BIGINT${
    within
      ? `
    AND EXISTS (
      SELECT 1 FROM json_array_elements($4::JSON) AS given (f)
      WHERE d.scope = f ->> 0 AND starts_with(d.path, f ->> 1)
    )`
      : ""
  }
), best AS (
  SELECT DISTINCT ON (document) * FROM matched ORDER BY document, score DESC, ordinal
), counted AS (
  SELECT *, count(*) OVER () AS total FROM best ORDER BY score DESC, scope, path LIMIT $3::BIGINT
)
SELECT c.scope, c.path, c.title, c.score, c.total, p.heading, p.lines, p.body
FROM counted AS c JOIN strata_search_passage AS p ON p.document = c.document AND p.ordinal = c.ordinal
ORDER BY c.score DESC, c.scope, c.path`
