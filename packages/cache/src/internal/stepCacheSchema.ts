import type { MigrationSet } from "@strata/durable/Migrations"

/** A look at the ledger for each entry: without it, entries can be made of the ledger in a quarter of the time. */
export const guardHeads = `CREATE TRIGGER strata_cache_of_ledger BEFORE INSERT ON strata_cache
WHEN (SELECT key FROM strata_cache_ledger WHERE id = NEW.ledger) IS NOT NEW.key
BEGIN
  SELECT RAISE(ABORT, 'an entry of the cache is a row of the ledger with its key');
END`

export const unguardHeads = "DROP TRIGGER strata_cache_of_ledger"

/**
 * The tables of the local step cache on SQLite.
 *
 * - A result is stored once, under its digest. It is replaced when it is not that of its digest any more, and never
 *   deleted while the ledger refers to it.
 * - The ledger only grows: its rows are never changed, and go with the collector. Its ids come from `AUTOINCREMENT`, as
 *   the journal names them.
 * - Which rows refer to which blob is kept by triggers, so that no write site can forget it.
 * - An entry is a row of the ledger with the same key. Triggers see to it: a foreign key would need an index by ledger
 *   row, which costs more than all the rest when the tables are restored.
 * - Digests have 64 characters, recordings 32. Text is compared in bytes, SQLite's `BINARY` collation.
 */
export const migrationsSqlite: MigrationSet = {
  name: "cache",
  migrations: {
    "1_initial": [
      `CREATE TABLE strata_cache_result (
        id INTEGER PRIMARY KEY,
        digest TEXT NOT NULL UNIQUE CHECK (octet_length(digest) = 64),
        value TEXT NOT NULL CHECK (value <> '')
      )`,

      `CREATE TABLE strata_cache_ledger (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        key TEXT NOT NULL CHECK (octet_length(key) = 64),
        recording TEXT NOT NULL CHECK (octet_length(recording) = 32),
        result INTEGER NOT NULL REFERENCES strata_cache_result (id),
        artifacts TEXT NOT NULL CHECK (substr(artifacts, 1, 1) = '['),
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
        digest TEXT NOT NULL CHECK (octet_length(digest) = 64),
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
        key TEXT NOT NULL PRIMARY KEY CHECK (octet_length(key) = 64),
        ledger INTEGER NOT NULL,
        used_at INTEGER NOT NULL
      ) WITHOUT ROWID`,
      guardHeads,
      `CREATE TRIGGER strata_cache_unchanged BEFORE UPDATE OF key, ledger ON strata_cache
      BEGIN
        SELECT RAISE(ABORT, 'an entry of the cache is replaced, not changed');
      END`,
      `CREATE TRIGGER strata_cache_ledger_in_use BEFORE DELETE ON strata_cache_ledger
      WHEN EXISTS (SELECT 1 FROM strata_cache WHERE key = OLD.key AND ledger = OLD.id)
      BEGIN
        SELECT RAISE(ABORT, 'the ledger row of an entry stays');
      END`
    ]
  }
}

/**
 * Tables of this connection only, so that they cost no COMMIT: what the journal tells, on its way into the tables, and
 * beside them when it is compared with them.
 */
export const temporaryTables: ReadonlyArray<string> = [
  `CREATE TEMP TABLE IF NOT EXISTS strata_cache_removed (key TEXT NOT NULL, last INTEGER NOT NULL)`,
  `CREATE INDEX IF NOT EXISTS temp.strata_cache_removed_key ON strata_cache_removed (key, last)`,
  `CREATE TEMP TABLE IF NOT EXISTS strata_cache_staged (
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
  `CREATE TEMP TABLE IF NOT EXISTS strata_cache_staged_collected (ledger INTEGER PRIMARY KEY)`
]
