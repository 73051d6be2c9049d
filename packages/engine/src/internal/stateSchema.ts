import type { MigrationSet } from "@strata/durable/Migrations"

/**
 * The tables of clocks and deferreds on SQLite. They do not refer to the table of runs: a deferred may be completed
 * before its run is started. The stamps of a deferred can be absent, as they are made of the journal, and the row alone
 * is the completion.
 */
export const migrationsSqlite: MigrationSet = {
  name: "engine_state",
  migrations: {
    "1_initial": [
      `CREATE TABLE strata_clock (
        execution_id TEXT NOT NULL CHECK (execution_id <> ''),
        name TEXT NOT NULL CHECK (name <> ''),
        deferred TEXT NOT NULL CHECK (deferred <> ''),
        deadline INTEGER NOT NULL,
        scheduled_at INTEGER NOT NULL,
        completed_at INTEGER,
        outcome TEXT CHECK (outcome IN ('fired', 'settled', 'cancelled')),
        PRIMARY KEY (execution_id, name),
        CHECK ((completed_at IS NULL) = (outcome IS NULL)),
        CHECK (outcome <> 'fired' OR completed_at >= deadline)
      )`,
      `CREATE INDEX strata_clock_pending ON strata_clock (deadline) WHERE completed_at IS NULL`,

      `CREATE TABLE strata_deferred (
        execution_id TEXT NOT NULL CHECK (execution_id <> ''),
        name TEXT NOT NULL CHECK (name <> ''),
        exit TEXT NOT NULL CHECK (exit <> ''),
        metadata TEXT CHECK (metadata <> ''),
        completed_at INTEGER,
        consumed_at INTEGER,
        PRIMARY KEY (execution_id, name),
        CHECK (consumed_at IS NULL OR completed_at IS NOT NULL)
      )`
    ]
  }
}

/** The tables on Postgres: those of SQLite, with text compared by its bytes. */
export const migrationsPostgres: MigrationSet = {
  name: "engine_state",
  migrations: {
    "1_initial": [
      `CREATE TABLE strata_clock (
        execution_id TEXT COLLATE "C" NOT NULL CHECK (execution_id <> ''),
        name TEXT COLLATE "C" NOT NULL CHECK (name <> ''),
        deferred TEXT COLLATE "C" NOT NULL CHECK (deferred <> ''),
        deadline BIGINT NOT NULL,
        scheduled_at BIGINT NOT NULL,
        completed_at BIGINT,
        outcome TEXT COLLATE "C" CHECK (outcome IN ('fired', 'settled', 'cancelled')),
        PRIMARY KEY (execution_id, name),
        CHECK ((completed_at IS NULL) = (outcome IS NULL)),
        CHECK (outcome <> 'fired' OR completed_at >= deadline)
      )`,
      `CREATE INDEX strata_clock_pending ON strata_clock (deadline) WHERE completed_at IS NULL`,

      `CREATE TABLE strata_deferred (
        execution_id TEXT COLLATE "C" NOT NULL CHECK (execution_id <> ''),
        name TEXT COLLATE "C" NOT NULL CHECK (name <> ''),
        exit TEXT COLLATE "C" NOT NULL CHECK (exit <> ''),
        metadata TEXT COLLATE "C" CHECK (metadata <> ''),
        completed_at BIGINT,
        consumed_at BIGINT,
        PRIMARY KEY (execution_id, name),
        CHECK (consumed_at IS NULL OR completed_at IS NOT NULL)
      )`
    ]
  }
}
