import type { Tables } from "./tables.ts"

/*
 * Every statement is one fixed text, so that the driver finds it prepared, and batches are one JSON parameter.
 */

/** The time of the database in milliseconds. */
const now = "floor(extract(epoch FROM clock_timestamp()) * 1000)::BIGINT"

const givenBlobs = (parameter: string): string =>
  `json_to_recordset(${parameter}::JSON) AS g (digest TEXT COLLATE "C", size BIGINT)`

/**
 * What has to be there, and what the database is. The right to create is null without a schema. Parameters: the tables, as
 * text, and the schema or null.
 */
export const look = `
SELECT current_setting('server_encoding'),
  (
    SELECT has_schema_privilege(n.oid, 'CREATE') FROM pg_namespace AS n
    WHERE n.nspname = coalesce($4::TEXT, current_schema())
  ),
  to_regclass($1::TEXT) IS NOT NULL AND to_regclass($2::TEXT) IS NOT NULL AND to_regclass($3::TEXT) IS NOT NULL,
  EXISTS (
    SELECT 1 FROM pg_index AS i
    JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
    WHERE i.indrelid = to_regclass($1::TEXT) AND i.indisunique AND i.indisvalid AND i.indnkeyatts = 1
      AND i.indpred IS NULL AND a.attname = 'key'
  )`

export type Statements = ReturnType<typeof make>

export const make = ({ artifact, blob, entry }: Tables) => {
  /** The row of an entry; of what is larger than the parameter, only the size in bytes. */
  const row = (limit: string): string => `e.id, e.recording, e.digest,
  CASE WHEN octet_length(e.result) <= ${limit}::BIGINT THEN e.result END,
  CASE WHEN octet_length(e.note) <= ${limit}::BIGINT THEN e.note END,
  octet_length(e.result), octet_length(e.note)`

  const part = (column: string): string =>
    `SELECT substring(convert_to(${column}, 'UTF8') FROM $3::INTEGER FOR $4::INTEGER) FROM ${entry}
WHERE key = $1 AND id = $2::BIGINT`

  return {
    /** Parameters: key, the largest part that comes along, how old a time of use may get. */
    find: `
SELECT ${row("$2")}, e.used_at < ${now} - $3::BIGINT FROM ${entry} AS e WHERE e.key = $1`,

    /** Bytes of a part of an entry. Parameters: key, id, the first byte from 1, how many. */
    resultPart: part("result"),
    notePart: part("note"),

    /**
     * Inserts an entry unless its key has one, or a blob that it needs is not there. What it tells is of one moment: the
     * blobs that are there stay until the entry refers to them. First a row for an insertion, then one for the entry that
     * was there, then one for each blob that was not; none when another entry came at that very moment.
     *
     * Parameters: key, recording, digest, result, note, blobs as a JSON array, the largest part that comes along.
     */
    insert: `
WITH wanted AS MATERIALIZED (
  SELECT DISTINCT digest, size FROM ${givenBlobs("$6")}
), there AS MATERIALIZED (
  SELECT b.digest FROM ${blob} AS b JOIN wanted AS w ON b.digest = w.digest AND b.size = w.size
  WHERE b.content IS NOT NULL ORDER BY b.digest FOR KEY SHARE OF b
), inserted AS (
  INSERT INTO ${entry} (key, recording, digest, result, note, put_at, used_at)
  SELECT $1, $2, $3, $4, $5, ${now}, ${now}
  WHERE (SELECT count(*) FROM there) = (SELECT count(*) FROM wanted)
  ON CONFLICT (key) DO NOTHING
  RETURNING id
), referred AS (
  INSERT INTO ${artifact} (digest, entry) SELECT digest, id FROM there, inserted
)
SELECT 'inserted', id, NULL, NULL, NULL, NULL, NULL, NULL FROM inserted
UNION ALL
SELECT 'existing', ${row("$7")} FROM ${entry} AS e WHERE e.key = $1
UNION ALL
SELECT 'missing', NULL, NULL, digest, NULL, NULL, NULL, NULL FROM wanted WHERE digest NOT IN (SELECT digest FROM there)`,

    /** Parameters: key, recording or null. */
    evict: `
DELETE FROM ${entry} WHERE key = $1 AND ($2::TEXT IS NULL OR recording = $2) RETURNING 1`,

    /** An entry that cannot be served, and no later one. Parameters: key, id. */
    discard: `DELETE FROM ${entry} WHERE key = $1 AND id = $2::BIGINT RETURNING 1`,

    /** Parameters: key, id. */
    use: `UPDATE ${entry} SET used_at = ${now} WHERE key = $1 AND id = $2::BIGINT`,

    /** Those that are there. Parameter: blobs as a JSON array. */
    present: `
SELECT DISTINCT b.digest, b.size FROM ${givenBlobs("$1")}
JOIN ${blob} AS b ON b.digest = g.digest AND b.size = g.size
WHERE b.content IS NOT NULL`,

    /** Whether it was touched long ago; no row when it is not there. Parameters: digest, size, how long ago. */
    findBlob: `
SELECT touched_at < ${now} - $3::BIGINT FROM ${blob}
WHERE digest = $1 AND size = $2::BIGINT AND content IS NOT NULL`,

    /** Fails when the content is not that of the digest any more. Parameter: digest. */
    touchBlob: `UPDATE ${blob} SET touched_at = ${now} WHERE digest = $1`,

    /** Content that is there already is not written again. Parameters: digest, content. */
    putBlob: `
INSERT INTO ${blob} AS b (digest, size, content, touched_at) VALUES ($1, octet_length($2::BYTEA), $2::BYTEA, ${now})
ON CONFLICT (digest) DO UPDATE SET
  size = excluded.size, touched_at = excluded.touched_at,
  content = CASE WHEN b.content = excluded.content THEN b.content ELSE excluded.content END`,

    /** Bytes of a content. Parameters: digest, size, the first byte from 1, how many. */
    readBlob: `
SELECT substring(content FROM $3::INTEGER FOR $4::INTEGER) FROM ${blob}
WHERE digest = $1 AND size = $2::BIGINT AND content IS NOT NULL`,

    /** Content that is not that of its digest. Parameter: digest. */
    emptyBlob: `
UPDATE ${blob} SET content = NULL
WHERE digest = $1 AND content IS NOT NULL
  AND (digest <> encode(sha256(content), 'hex') OR size <> octet_length(content))`,

    /** Parameter: digest. */
    removeBlob: `UPDATE ${blob} SET content = NULL WHERE digest = $1 AND content IS NOT NULL RETURNING 1`,

    /** Parameters: digest to start after, limit. */
    listBlobs: `
SELECT digest, size, touched_at FROM ${blob}
WHERE digest > $1 AND content IS NOT NULL ORDER BY digest LIMIT $2::BIGINT`,

    /**
     * Entries beyond the limits, those that were used least lately first. An entry's bytes are those of its result and of
     * the blobs it refers to. Parameters: age, entries, bytes.
     */
    beyond: `
SELECT id, used_at FROM (
  SELECT id, used_at,
    row_number() OVER latest AS place,
    sum(bytes) OVER latest AS total
  FROM (
    SELECT e.id, e.key, e.used_at, octet_length(e.result) + coalesce((
      SELECT sum(b.size) FROM ${artifact} AS a JOIN ${blob} AS b ON b.digest = a.digest WHERE a.entry = e.id
    ), 0) AS bytes
    FROM ${entry} AS e
  ) AS sized
  WINDOW latest AS (ORDER BY used_at DESC, key ROWS UNBOUNDED PRECEDING)
) AS h
WHERE h.used_at < ${now} - $1::BIGINT OR h.place > $2::BIGINT OR h.total > $3::BIGINT
ORDER BY used_at, id`,

    /** Those that were not used since. Parameter: `[{ id, used_at }, …]` as JSON. */
    deleteEntries: `
DELETE FROM ${entry} WHERE id IN (
  SELECT e.id FROM ${entry} AS e
  JOIN json_to_recordset($1::JSON) AS g (id BIGINT, used_at BIGINT) ON e.id = g.id AND e.used_at = g.used_at
  ORDER BY e.id FOR UPDATE OF e SKIP LOCKED
)
RETURNING octet_length(result)`,

    /** Blobs that nothing refers to, which nothing can refer to until the end. Parameters: digest to start after, age, limit. */
    lockBlobs: `
SELECT b.digest FROM ${blob} AS b
WHERE b.digest > $1 AND b.touched_at < ${now} - $2::BIGINT
  AND NOT EXISTS (SELECT 1 FROM ${artifact} AS a WHERE a.digest = b.digest)
ORDER BY b.digest LIMIT $3::BIGINT FOR UPDATE OF b SKIP LOCKED`,

    /** Those that were referred to before they were locked stay. Parameter: digests as a JSON array. */
    deleteBlobs: `
DELETE FROM ${blob} AS b
WHERE b.digest IN (SELECT json_array_elements_text($1::JSON) COLLATE "C")
  AND NOT EXISTS (SELECT 1 FROM ${artifact} AS a WHERE a.digest = b.digest)
RETURNING b.size, b.content IS NOT NULL`
  }
}
