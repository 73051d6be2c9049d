import type { MigrationSet } from "@strata/durable/Migrations"

/**
 * The tables of runs on SQLite. A row of `strata_run` says by its `CHECK`s what a run can be: a result and the time of it
 * are there when it is completed, it is owned only while it has something to do, and held only while it is suspended.
 */
export const migrationsSqlite: MigrationSet = {
  name: "engine_runs",
  migrations: {
    "1_initial": [
      // Ids are in journals of other machines, and never used again.
      `CREATE TABLE strata_run_owner (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        host TEXT NOT NULL,
        pid INTEGER NOT NULL,
        process TEXT NOT NULL CHECK (process <> ''),
        lease_until INTEGER NOT NULL
      )`,
      `CREATE TABLE strata_run (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        execution_id TEXT NOT NULL UNIQUE CHECK (execution_id <> ''),
        workflow TEXT NOT NULL CHECK (workflow <> ''),
        parent TEXT CHECK (parent <> ''),
        payload TEXT NOT NULL CHECK (payload <> ''),
        status TEXT NOT NULL CHECK (status IN ('running', 'suspended', 'completed')),
        held INTEGER NOT NULL DEFAULT 0 CHECK (held IN (0, 1)),
        cause TEXT,
        result TEXT CHECK (result <> ''),
        interrupted TEXT NOT NULL DEFAULT 'none' CHECK (interrupted IN ('none', 'safe', 'unsafe')),
        owner INTEGER,
        fence INTEGER NOT NULL DEFAULT 0 CHECK (fence >= 0),
        wakes INTEGER NOT NULL DEFAULT 0 CHECK (wakes >= 0),
        calls INTEGER NOT NULL DEFAULT 0 CHECK (calls BETWEEN 0 AND wakes),
        started_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        settled_at INTEGER,
        CHECK ((status = 'completed') = (result IS NOT NULL)),
        CHECK ((status = 'completed') = (settled_at IS NOT NULL)),
        CHECK (owner IS NULL OR status = 'running'),
        CHECK (held = 0 OR status = 'suspended'),
        CHECK (cause IS NULL OR held = 1)
      )`,
      `CREATE INDEX strata_run_waiting ON strata_run (workflow, id) WHERE status = 'running' AND owner IS NULL`,
      `CREATE INDEX strata_run_owned ON strata_run (owner) WHERE owner IS NOT NULL`,
      `CREATE INDEX strata_run_settled ON strata_run (settled_at) WHERE settled_at IS NOT NULL`,

      // Parents beside the first one, which is in the row of the run.
      `CREATE TABLE strata_run_waiter (
        run INTEGER NOT NULL REFERENCES strata_run (id) ON DELETE CASCADE,
        parent TEXT NOT NULL CHECK (parent <> ''),
        PRIMARY KEY (run, parent)
      ) WITHOUT ROWID`,
      `CREATE TABLE strata_run_activity (
        run INTEGER NOT NULL REFERENCES strata_run (id) ON DELETE CASCADE,
        name TEXT NOT NULL,
        attempt INTEGER NOT NULL CHECK (attempt > 0),
        exit TEXT NOT NULL CHECK (exit <> ''),
        digest TEXT NOT NULL CHECK (length(digest) = 64),
        completed_at INTEGER NOT NULL,
        PRIMARY KEY (run, name, attempt)
      ) WITHOUT ROWID`
    ]
  }
}
