import type { MigrationSet } from "@strata/durable/Migrations"

/**
 * The tables of the local step cache on SQLite.
 *
 * - A result is stored once, under its digest. It is replaced when it is not that of its digest any more, and never
 *   deleted while the ledger refers to it.
 * - The ledger only grows: its rows are never changed, and go with the collector. Its ids come from `AUTOINCREMENT`, as
 *   the journal names them.
 * - Which rows refer to which blob is kept by triggers, so that no write site can forget it.
 * - What is staged is what the journal tells, on its way into the tables; there is one staging at a time, whose token
 *   tells whose.
 * - Digests have 64 characters, recordings 32. Text is compared in bytes, SQLite's `BINARY` collation.
 */
export const migrationsSqlite: MigrationSet = {
  name: "cache",
  migrations: {
    "1_initial": [
      `CREATE TABLE strata_cache_result (
        id INTEGER PRIMARY KEY,
        digest TEXT NOT NULL UNIQUE CHECK (length(digest) = 64),
        value TEXT NOT NULL CHECK (value <> '')
      )`,

      `CREATE TABLE strata_cache_ledger (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        key TEXT NOT NULL CHECK (length(key) = 64),
        recording TEXT NOT NULL CHECK (length(recording) = 32),
        result INTEGER NOT NULL REFERENCES strata_cache_result (id),
        artifacts TEXT NOT NULL CHECK (artifacts LIKE '[%]'),
        recorded_by TEXT NOT NULL CHECK (recorded_by <> ''),
        recorded_at INTEGER NOT NULL,
        action TEXT NOT NULL CHECK (action <> ''),
        version TEXT NOT NULL CHECK (version <> ''),
        duration_ms REAL NOT NULL,
        from_tier TEXT CHECK (from_tier <> '')
      )`,
      `CREATE INDEX strata_cache_ledger_result ON strata_cache_ledger (result)`,
      `CREATE TRIGGER strata_cache_ledger_unchanged BEFORE UPDATE ON strata_cache_ledger
      BEGIN
        SELECT RAISE(ABORT, 'rows of the cache ledger do not change');
      END`,

      `CREATE TABLE strata_cache_ledger_artifact (
        digest TEXT NOT NULL CHECK (length(digest) = 64),
        ledger INTEGER NOT NULL REFERENCES strata_cache_ledger (id),
        size INTEGER NOT NULL CHECK (size >= 0),
        PRIMARY KEY (digest, ledger)
      ) WITHOUT ROWID`,
      `CREATE INDEX strata_cache_ledger_artifact_ledger ON strata_cache_ledger_artifact (ledger)`,
      `CREATE TRIGGER strata_cache_ledger_refers AFTER INSERT ON strata_cache_ledger WHEN NEW.artifacts <> '[]'
      BEGIN
        INSERT INTO strata_cache_ledger_artifact (digest, ledger, size)
        SELECT DISTINCT value ->> 'digest', NEW.id, value ->> 'size' FROM json_each(NEW.artifacts);
      END`,
      `CREATE TRIGGER strata_cache_ledger_refers_no_more BEFORE DELETE ON strata_cache_ledger
      BEGIN
        DELETE FROM strata_cache_ledger_artifact WHERE ledger = OLD.id;
      END`,

      `CREATE TABLE strata_cache (
        key TEXT NOT NULL PRIMARY KEY CHECK (length(key) = 64),
        ledger INTEGER NOT NULL UNIQUE REFERENCES strata_cache_ledger (id),
        used_at INTEGER NOT NULL
      ) WITHOUT ROWID`,

      `CREATE TABLE strata_cache_staged (
        id INTEGER PRIMARY KEY,
        key TEXT NOT NULL,
        ledger INTEGER,
        recording TEXT,
        digest TEXT,
        artifacts TEXT,
        recorded_by TEXT,
        recorded_at INTEGER,
        action TEXT,
        version TEXT,
        duration_ms REAL,
        from_tier TEXT
      )`,
      `CREATE TABLE strata_cache_staged_collected (ledger INTEGER PRIMARY KEY)`,
      `CREATE TABLE strata_cache_staging (id INTEGER PRIMARY KEY CHECK (id = 1), token TEXT NOT NULL)`
    ]
  }
}
