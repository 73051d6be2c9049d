import type { MigrationSet } from "@strata/durable/Migrations"

/** The tables of runs on Postgres: those of SQLite, with text compared by its bytes. */
export const migrationsPostgres: MigrationSet = {
  name: "engine_runs",
  migrations: {
    "1_initial": [
      `CREATE TABLE strata_run_owner (
        id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        host TEXT COLLATE "C" NOT NULL,
        pid BIGINT NOT NULL,
        process TEXT COLLATE "C" NOT NULL CHECK (process <> ''),
        lease_until BIGINT NOT NULL
      )`,
      `CREATE TABLE strata_run (
        id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        execution_id TEXT COLLATE "C" NOT NULL UNIQUE CHECK (execution_id <> ''),
        workflow TEXT COLLATE "C" NOT NULL CHECK (workflow <> ''),
        parent TEXT COLLATE "C" CHECK (parent <> ''),
        payload TEXT COLLATE "C" NOT NULL CHECK (payload <> ''),
        status TEXT COLLATE "C" NOT NULL CHECK (status IN ('running', 'suspended', 'completed')),
        held INTEGER NOT NULL DEFAULT 0 CHECK (held IN (0, 1)),
        cause TEXT COLLATE "C",
        result TEXT COLLATE "C" CHECK (result <> ''),
        interrupted TEXT COLLATE "C" NOT NULL DEFAULT 'none' CHECK (interrupted IN ('none', 'safe', 'unsafe')),
        owner BIGINT,
        fence BIGINT NOT NULL DEFAULT 0 CHECK (fence >= 0),
        wakes BIGINT NOT NULL DEFAULT 0 CHECK (wakes >= 0),
        calls BIGINT NOT NULL DEFAULT 0 CHECK (calls BETWEEN 0 AND wakes),
        started_at BIGINT NOT NULL,
        updated_at BIGINT NOT NULL,
        settled_at BIGINT,
        CHECK ((status = 'completed') = (result IS NOT NULL)),
        CHECK ((status = 'completed') = (settled_at IS NOT NULL)),
        CHECK (owner IS NULL OR status = 'running'),
        CHECK (held = 0 OR status = 'suspended'),
        CHECK (cause IS NULL OR held = 1)
      ) WITH (fillfactor = 70)`,
      `CREATE INDEX strata_run_waiting ON strata_run (workflow, id) WHERE status = 'running' AND owner IS NULL`,
      `CREATE INDEX strata_run_owned ON strata_run (owner) WHERE owner IS NOT NULL`,
      `CREATE INDEX strata_run_settled ON strata_run (settled_at) WHERE settled_at IS NOT NULL`,

      `CREATE TABLE strata_run_waiter (
        run BIGINT NOT NULL REFERENCES strata_run (id) ON DELETE CASCADE,
        parent TEXT COLLATE "C" NOT NULL CHECK (parent <> ''),
        PRIMARY KEY (run, parent)
      )`,
      `CREATE TABLE strata_run_activity (
        run BIGINT NOT NULL REFERENCES strata_run (id) ON DELETE CASCADE,
        name TEXT COLLATE "C" NOT NULL,
        attempt BIGINT NOT NULL CHECK (attempt > 0),
        exit TEXT COLLATE "C" NOT NULL CHECK (exit <> ''),
        digest TEXT COLLATE "C" NOT NULL CHECK (length(digest) = 64),
        completed_at BIGINT NOT NULL,
        PRIMARY KEY (run, name, attempt)
      )`
    ]
  }
}
