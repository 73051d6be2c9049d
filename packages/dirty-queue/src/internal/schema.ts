import type { MigrationSet } from "@strata/durable/Migrations"

/**
 * The tables of the queue on SQLite.
 *
 * - `strata_dirty` is a rowid table, since random inserts into a `WITHOUT ROWID` one take twice as long, and since the
 *   rowid that ends every index entry makes rows of equal `ready_at` first in, first out.
 * - Sequence numbers and ids that are used as cursors come from `AUTOINCREMENT`: they are not used again when the
 *   newest rows are gone.
 * - Text is stored as UTF-8 and compared in bytes, SQLite's `BINARY` collation.
 */
export const migrationsSqlite: MigrationSet = {
  name: "dirty_queue",
  migrations: {
    "1_initial": [
      `CREATE TABLE strata_changelog (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        scope TEXT NOT NULL CHECK (scope <> ''),
        path TEXT NOT NULL CHECK (path <> ''),
        op TEXT NOT NULL CHECK (op IN ('put', 'delete')),
        cid TEXT CHECK (cid IS NULL OR op = 'put'),
        mtime INTEGER,
        recorded_at INTEGER NOT NULL
      )`,
      `CREATE INDEX strata_changelog_scope ON strata_changelog (scope)`,

      `CREATE TABLE strata_follower (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        follower TEXT NOT NULL CHECK (follower <> ''),
        scope TEXT NOT NULL CHECK (scope <> ''),
        prefix TEXT NOT NULL,
        served_at INTEGER NOT NULL DEFAULT 0,
        backfill_credit INTEGER NOT NULL DEFAULT 0 CHECK (backfill_credit BETWEEN 0 AND 999),
        UNIQUE (follower, scope)
      )`,
      `CREATE INDEX strata_follower_scope ON strata_follower (scope)`,
      `CREATE INDEX strata_follower_served ON strata_follower (follower, served_at)`,

      `CREATE TABLE strata_dirty_version (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        value INTEGER NOT NULL CHECK (value >= 0)
      )`,
      `INSERT INTO strata_dirty_version (id, value) VALUES (1, 0)`,

      `CREATE TABLE strata_dirty (
        id INTEGER PRIMARY KEY,
        registration INTEGER NOT NULL REFERENCES strata_follower (id),
        path TEXT NOT NULL CHECK (path <> ''),
        version INTEGER NOT NULL CHECK (version > 0),
        since INTEGER NOT NULL CHECK (since <= version),
        op TEXT CHECK (op IN ('put', 'delete')),
        cid TEXT CHECK (cid IS NULL OR op = 'put'),
        mtime INTEGER,
        seq INTEGER NOT NULL DEFAULT 0 CHECK (seq > 0 OR op IS NULL),
        lane INTEGER NOT NULL CHECK (lane IN (0, 1)),
        ready_at INTEGER,
        queued_at INTEGER NOT NULL,
        dirty_at INTEGER NOT NULL,
        lease INTEGER CHECK (lease IS NULL OR ready_at IS NOT NULL),
        attempts INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0),
        retry_floor INTEGER NOT NULL DEFAULT 0,
        failed_at INTEGER,
        last_error TEXT CHECK ((last_error IS NULL) = (failed_at IS NULL)),
        UNIQUE (registration, path),
        CHECK (ready_at IS NOT NULL OR last_error IS NOT NULL)
      )`,
      `CREATE INDEX strata_dirty_ready ON strata_dirty (registration, lane, ready_at)`,
      `CREATE INDEX strata_dirty_failed ON strata_dirty (registration, path) WHERE last_error IS NOT NULL`,

      `CREATE TRIGGER strata_changelog_insert AFTER INSERT ON strata_changelog BEGIN
        UPDATE strata_dirty_version SET value = value + 1 WHERE id = 1;
        INSERT INTO strata_dirty (
          registration, path, version, since, op, cid, mtime, seq, lane, ready_at, queued_at, dirty_at
        )
        SELECT r.id, NEW.path, v.value, v.value, NEW.op, NEW.cid, NEW.mtime, NEW.seq, 0,
          NEW.recorded_at, NEW.recorded_at, NEW.recorded_at
        FROM strata_follower AS r INDEXED BY strata_follower_scope CROSS JOIN strata_dirty_version AS v
        WHERE r.scope = NEW.scope AND substr(NEW.path, 1, length(r.prefix)) = r.prefix AND v.id = 1
        ON CONFLICT (registration, path) DO UPDATE SET
          op = CASE WHEN excluded.seq > seq THEN excluded.op ELSE op END,
          cid = CASE WHEN excluded.seq > seq THEN excluded.cid ELSE cid END,
          mtime = CASE WHEN excluded.seq > seq THEN excluded.mtime ELSE mtime END,
          seq = max(seq, excluded.seq),
          lane = 0,
          ${refreshed()};
      END`
    ]
  }
}

/**
 * The part of an upsert into `strata_dirty` that changes and backfills have in common: the `refresh` transition. Every
 * expression sees the row as it was.
 */
export function refreshed(): string {
  const from = "max(excluded.queued_at, retry_floor)"
  const ready = `ifnull(min(ready_at, ${from}), ${from})`
  return `version = excluded.version,
          attempts = 0,
          queued_at = CASE
            WHEN lease IS NULL THEN ${ready}
            WHEN version > lease THEN queued_at
            ELSE ${from}
          END,
          ready_at = CASE WHEN lease IS NULL THEN ${ready} ELSE ready_at END`
}
