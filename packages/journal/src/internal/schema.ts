import type { MigrationSet } from "@strata/durable/Migrations"

/**
 * The tables of the journal on SQLite.
 *
 * - Ordinals and the numbers of rewinds come from `AUTOINCREMENT`, and a stream keeps the seq that it gave last: none of
 *   them is given again when its entry is gone.
 * - Identities have a table of their own, as they outlive the entries that compaction deletes, and as most entries have
 *   none.
 * - Text is stored as UTF-8 and compared in bytes, SQLite's `BINARY` collation.
 */
export const migrationsSqlite: MigrationSet = {
  name: "journal",
  migrations: {
    "1_initial": [
      `CREATE TABLE strata_journal_stream (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE CHECK (name <> ''),
        head INTEGER NOT NULL CHECK (head > 0),
        floor INTEGER NOT NULL DEFAULT 0 CHECK (floor BETWEEN 0 AND head)
      )`,

      `CREATE TABLE strata_journal (
        ordinal INTEGER PRIMARY KEY AUTOINCREMENT,
        stream INTEGER NOT NULL REFERENCES strata_journal_stream (id),
        seq INTEGER NOT NULL CHECK (seq > 0),
        type TEXT NOT NULL CHECK (type <> ''),
        payload TEXT NOT NULL CHECK (payload <> ''),
        identity TEXT,
        recorded_at INTEGER NOT NULL
      )`,
      `CREATE UNIQUE INDEX strata_journal_seq ON strata_journal (stream, seq)`,

      `CREATE TABLE strata_journal_identity (
        stream INTEGER NOT NULL REFERENCES strata_journal_stream (id),
        identity TEXT NOT NULL,
        digest TEXT NOT NULL CHECK (length(digest) = 64),
        seq INTEGER NOT NULL CHECK (seq > 0),
        ordinal INTEGER NOT NULL,
        PRIMARY KEY (stream, identity)
      ) WITHOUT ROWID`,
      `CREATE INDEX strata_journal_identity_seq ON strata_journal_identity (stream, seq)`,

      `CREATE TABLE strata_journal_floor (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        ordinal INTEGER NOT NULL CHECK (ordinal >= 0)
      )`,
      `INSERT INTO strata_journal_floor (id, ordinal) VALUES (1, 0)`,

      `CREATE TABLE strata_journal_checkpoint (
        stream INTEGER NOT NULL REFERENCES strata_journal_stream (id),
        seq INTEGER NOT NULL CHECK (seq > 0),
        fold TEXT NOT NULL CHECK (fold <> ''),
        state TEXT NOT NULL CHECK (state <> ''),
        taken_at INTEGER NOT NULL,
        UNIQUE (stream, seq, fold)
      )`,
      `CREATE TABLE strata_journal_global_checkpoint (
        fold TEXT NOT NULL PRIMARY KEY CHECK (fold <> ''),
        ordinal INTEGER NOT NULL CHECK (ordinal >= 0),
        state TEXT NOT NULL CHECK (state <> ''),
        taken_at INTEGER NOT NULL
      )`,

      `CREATE TABLE strata_journal_rewind (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        stream INTEGER NOT NULL REFERENCES strata_journal_stream (id),
        after_seq INTEGER NOT NULL CHECK (after_seq >= 0)
      )`,
      `CREATE TABLE strata_journal_archive (
        stream INTEGER NOT NULL REFERENCES strata_journal_stream (id),
        seq INTEGER NOT NULL,
        ordinal INTEGER NOT NULL,
        type TEXT NOT NULL,
        payload TEXT NOT NULL,
        identity TEXT,
        recorded_at INTEGER NOT NULL,
        rewind INTEGER NOT NULL REFERENCES strata_journal_rewind (id),
        archived_at INTEGER NOT NULL,
        UNIQUE (stream, seq)
      )`
    ],
    "2_removal": [
      // The greatest seq of streams that were removed.
      `ALTER TABLE strata_journal_floor ADD COLUMN removed_head INTEGER NOT NULL DEFAULT 0 CHECK (removed_head >= 0)`,
      `CREATE INDEX strata_journal_rewind_stream ON strata_journal_rewind (stream)`
    ]
  }
}
