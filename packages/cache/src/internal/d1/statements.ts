import type { MigrationSet } from "@strata/durable/Migrations"

/** The time of the database in milliseconds. */
const now = "CAST(round(unixepoch('subsec') * 1000) AS INTEGER)"

export const tableOf = (prefix: string): string => `strata_${prefix}_entry`

/**
 * An entry is inserted once and never changed, but for the time of its use. Its id tells it from one that comes later
 * under its key. Times are those of the database.
 */
export const migrations = (prefix: string): MigrationSet => ({
  name: prefix,
  migrations: {
    "1_initial": [
      `CREATE TABLE ${tableOf(prefix)} (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        key TEXT NOT NULL UNIQUE CHECK (length(key) = 64),
        recording TEXT NOT NULL CHECK (length(recording) = 32),
        digest TEXT NOT NULL CHECK (length(digest) = 64),
        result TEXT NOT NULL,
        note TEXT NOT NULL CHECK (json_valid(note)),
        put_at INTEGER NOT NULL,
        used_at INTEGER NOT NULL
      )`,
      `CREATE INDEX ${tableOf(prefix)}_used ON ${tableOf(prefix)} (used_at, id)`
    ]
  }
})

/** Whether there is a table. Parameter: its name. */
export const findTable = `SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1`

export type Statements = ReturnType<typeof make>

export const make = (prefix: string) => {
  const entry = tableOf(prefix)
  const columns = "id, recording, digest, result, note"
  return {
    /** Parameters: key, how old a time of use may get. */
    find: `SELECT ${columns}, used_at < ${now} - ?2 FROM ${entry} WHERE key = ?1`,

    /** Gives a row if the key had no entry. Parameters: key, recording, digest, result, note. */
    insert: `
INSERT INTO ${entry} (key, recording, digest, result, note, put_at, used_at)
VALUES (?1, ?2, ?3, ?4, ?5, ${now}, ${now})
ON CONFLICT (key) DO NOTHING RETURNING id`,

    /** Parameter: key. */
    existing: `SELECT ${columns} FROM ${entry} WHERE key = ?1`,

    /** Parameter: key. */
    evict: `DELETE FROM ${entry} WHERE key = ?1 RETURNING id`,

    /** Parameters: key, recording. */
    evictRecording: `DELETE FROM ${entry} WHERE key = ?1 AND recording = ?2 RETURNING id`,

    /** An entry that cannot be served, and no later one. Parameters: key, id. */
    discard: `DELETE FROM ${entry} WHERE key = ?1 AND id = ?2 RETURNING id`,

    /** Parameters: key, id. */
    use: `UPDATE ${entry} SET used_at = ${now} WHERE key = ?1 AND id = ?2`,

    /**
     * Takes out entries beyond the limits, those that were used least lately first, and gives their bytes. Parameters: age,
     * entries, bytes, how many at a time.
     */
    prune: `
DELETE FROM ${entry} WHERE id IN (
  SELECT id FROM (
    SELECT id, used_at,
      row_number() OVER latest AS place,
      sum(octet_length(result) + octet_length(note)) OVER latest AS total
    FROM ${entry} WINDOW latest AS (ORDER BY used_at DESC, id DESC ROWS UNBOUNDED PRECEDING)
  )
  WHERE used_at < ${now} - ?1 OR place > ?2 OR total > ?3
  ORDER BY used_at, id LIMIT ?4
)
RETURNING octet_length(result) + octet_length(note)`
  }
}
