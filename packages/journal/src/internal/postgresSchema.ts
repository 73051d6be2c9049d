import type { MigrationSet } from "@strata/durable/Migrations"

/**
 * The tables of the journal on Postgres.
 *
 * - An entry carries the transaction that appended it. Transactions commit in any order, so readers of all streams go by
 *   (transaction, ordinal), and no further than the oldest transaction that still runs.
 * - A stream is appended to in the order of transactions, so that its entries are in one order in both views.
 * - Text is compared by its bytes, whatever the database's own order is.
 */
export const migrationsPostgres: MigrationSet = {
  name: "journal",
  migrations: {
    "1_initial": [
      `CREATE TABLE strata_journal_stream (
        id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        name TEXT COLLATE "C" NOT NULL UNIQUE CHECK (name <> ''),
        head BIGINT NOT NULL CHECK (head > 0),
        floor BIGINT NOT NULL DEFAULT 0 CHECK (floor BETWEEN 0 AND head),
        transaction BIGINT NOT NULL CHECK (transaction > 0)
      )`,

      `CREATE TABLE strata_journal (
        ordinal BIGINT GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME strata_journal_ordinal) PRIMARY KEY,
        transaction BIGINT NOT NULL CHECK (transaction > 0),
        stream BIGINT NOT NULL REFERENCES strata_journal_stream (id),
        seq BIGINT NOT NULL CHECK (seq > 0),
        type TEXT COLLATE "C" NOT NULL CHECK (type <> ''),
        payload TEXT COLLATE "C" NOT NULL CHECK (payload <> ''),
        identity TEXT COLLATE "C",
        recorded_at BIGINT NOT NULL
      )`,
      `CREATE UNIQUE INDEX strata_journal_seq ON strata_journal (stream, seq)`,
      `CREATE UNIQUE INDEX strata_journal_cursor ON strata_journal (transaction, ordinal)`,

      `CREATE TABLE strata_journal_identity (
        stream BIGINT NOT NULL REFERENCES strata_journal_stream (id),
        identity TEXT COLLATE "C" NOT NULL,
        digest TEXT COLLATE "C" NOT NULL CHECK (length(digest) = 64),
        seq BIGINT NOT NULL CHECK (seq > 0),
        transaction BIGINT NOT NULL,
        ordinal BIGINT NOT NULL,
        PRIMARY KEY (stream, identity)
      )`,
      `CREATE INDEX strata_journal_identity_seq ON strata_journal_identity (stream, seq)`,

      // One row: the floor of all streams, and how often entries were rewound, counted in the order of commits.
      `CREATE TABLE strata_journal_floor (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        transaction BIGINT NOT NULL CHECK (transaction >= 0),
        ordinal BIGINT NOT NULL CHECK (ordinal >= 0),
        generation BIGINT NOT NULL CHECK (generation >= 0)
      )`,
      `INSERT INTO strata_journal_floor (id, transaction, ordinal, generation) VALUES (1, 0, 0, 0)`,

      `CREATE TABLE strata_journal_checkpoint (
        stream BIGINT NOT NULL REFERENCES strata_journal_stream (id),
        seq BIGINT NOT NULL CHECK (seq > 0),
        fold TEXT COLLATE "C" NOT NULL CHECK (fold <> ''),
        state TEXT COLLATE "C" NOT NULL CHECK (state <> ''),
        taken_at BIGINT NOT NULL,
        PRIMARY KEY (stream, seq, fold)
      )`,
      `CREATE TABLE strata_journal_global_checkpoint (
        fold TEXT COLLATE "C" NOT NULL PRIMARY KEY CHECK (fold <> ''),
        transaction BIGINT NOT NULL CHECK (transaction >= 0),
        ordinal BIGINT NOT NULL CHECK (ordinal >= 0),
        state TEXT COLLATE "C" NOT NULL CHECK (state <> ''),
        taken_at BIGINT NOT NULL
      )`,

      `CREATE TABLE strata_journal_rewind (
        id BIGINT GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME strata_journal_rewind_number) PRIMARY KEY,
        stream BIGINT NOT NULL REFERENCES strata_journal_stream (id),
        after_seq BIGINT NOT NULL CHECK (after_seq >= 0)
      )`,
      `CREATE TABLE strata_journal_archive (
        stream BIGINT NOT NULL REFERENCES strata_journal_stream (id),
        seq BIGINT NOT NULL,
        transaction BIGINT NOT NULL,
        ordinal BIGINT NOT NULL,
        type TEXT COLLATE "C" NOT NULL,
        payload TEXT COLLATE "C" NOT NULL,
        identity TEXT COLLATE "C",
        recorded_at BIGINT NOT NULL,
        rewind BIGINT NOT NULL REFERENCES strata_journal_rewind (id),
        archived_at BIGINT NOT NULL,
        PRIMARY KEY (stream, seq)
      )`,

      `CREATE FUNCTION strata_journal_transaction() RETURNS BIGINT LANGUAGE SQL VOLATILE AS
        $$ SELECT pg_current_xact_id()::TEXT::BIGINT $$`,

      // Below it, whatever is not visible now never will be. The transaction that asks is not among those that run.
      `CREATE FUNCTION strata_journal_horizon() RETURNS BIGINT LANGUAGE SQL STABLE AS $$
        SELECT coalesce(min(running::TEXT::BIGINT), pg_snapshot_xmax(pg_current_snapshot())::TEXT::BIGINT)
        FROM pg_snapshot_xip(pg_current_snapshot()) AS running
      $$`
    ],
    "2_removal": [
      // The greatest seq of streams that were removed.
      `ALTER TABLE strata_journal_floor ADD COLUMN removed_head BIGINT NOT NULL DEFAULT 0 CHECK (removed_head >= 0)`,
      `CREATE INDEX strata_journal_rewind_stream ON strata_journal_rewind (stream)`
    ]
  }
}
