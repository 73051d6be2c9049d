import type { MigrationSet } from "@strata/durable/Migrations"
import { maxPassages } from "./storage.ts"

/**
 * The tables of the search index on Postgres.
 *
 * - A generation is the documents that name it, and their passages. They share tables with those of other generations,
 *   so that a search is never in the way of a rebuild, nor loses a table to one.
 * - The words of a passage are told by the program and not found by the database, so that they do not depend on its
 *   locale or its text search configuration.
 * - Text is compared by its bytes, whatever the database's own order is.
 * - A path that is a problem may be longer than what an index holds, so the digest of it is its key.
 */
export const migrationsPostgres: MigrationSet = {
  name: "search",
  migrations: {
    "1_initial": [
      `CREATE TABLE strata_search_generation (
        id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        extraction TEXT COLLATE "C" NOT NULL,
        state TEXT COLLATE "C" NOT NULL CHECK (state IN ('building', 'active', 'retired')),
        created_at BIGINT NOT NULL
      )`,
      `CREATE UNIQUE INDEX strata_search_generation_state ON strata_search_generation (state)
        WHERE state IN ('building', 'active')`,

      `CREATE TABLE strata_search_document (
        id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        generation BIGINT NOT NULL REFERENCES strata_search_generation (id),
        scope TEXT COLLATE "C" NOT NULL CHECK (scope <> ''),
        path TEXT COLLATE "C" NOT NULL CHECK (path <> ''),
        digest TEXT COLLATE "C" NOT NULL,
        title TEXT COLLATE "C" NOT NULL,
        passages INTEGER NOT NULL CHECK (passages BETWEEN 0 AND ${maxPassages}),
        skipped TEXT COLLATE "C" CHECK (skipped IS NULL OR passages = 0),
        UNIQUE (generation, scope, path)
      )`,

      `CREATE TABLE strata_search_passage (
        document BIGINT NOT NULL REFERENCES strata_search_document (id) ON DELETE CASCADE,
        ordinal INTEGER NOT NULL CHECK (ordinal >= 0),
        title TEXT COLLATE "C" NOT NULL,
        heading TEXT COLLATE "C" NOT NULL,
        body TEXT COLLATE "C" NOT NULL,
        lines TEXT COLLATE "C" NOT NULL CHECK (lines <> ''),
        words TSVECTOR NOT NULL,
        PRIMARY KEY (document, ordinal)
      )`,
      `CREATE INDEX strata_search_passage_words ON strata_search_passage USING gin (words)`,

      `CREATE TABLE strata_search_folder (
        scope TEXT COLLATE "C" NOT NULL CHECK (scope <> ''),
        folder TEXT COLLATE "C" NOT NULL CHECK (folder = '' OR right(folder, 1) = '/'),
        digest TEXT COLLATE "C" NOT NULL,
        entries TEXT COLLATE "C" NOT NULL CHECK (entries <> ''),
        PRIMARY KEY (scope, folder)
      )`,
      `CREATE TABLE strata_search_problem (
        scope TEXT COLLATE "C" NOT NULL CHECK (scope <> ''),
        digest BYTEA NOT NULL,
        path TEXT COLLATE "C" NOT NULL,
        reason TEXT COLLATE "C" NOT NULL CHECK (reason <> ''),
        PRIMARY KEY (scope, digest)
      )`
    ]
  }
}
