import type { MigrationSet } from "@strata/durable/Migrations"
import { maxPassages } from "./storage.ts"

/** Bits of a passage's rowid that hold its place in the document, enough for all that a document can have. */
export const ordinalBits = 20

/**
 * The tables of the search index on SQLite, and what is known of the directories it was made from.
 *
 * - A generation is one whole index: a full-text table of its own, and the documents that are in it. At most one is
 *   active, which is the one that searches read.
 * - The rowid of a passage is its document's id and its place in the document, so that all passages of a document are
 *   one range of rowids, and the document of a passage is found without a join.
 * - A problem is an entry that the last scan could not use, with the encoded reason.
 * - A folder's files are one text, see `manifest.ts`: a folder that did not change is one comparison. The digest of that
 *   text, before it in the row, tells whether it is the same without reading it.
 */
export const migrations: MigrationSet = {
  name: "search",
  migrations: {
    "1_initial": [
      `CREATE TABLE strata_search_generation (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        extraction TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('building', 'active', 'retired')),
        created_at INTEGER NOT NULL
      )`,
      `CREATE UNIQUE INDEX strata_search_generation_state ON strata_search_generation (state)
        WHERE state IN ('building', 'active')`,
      `CREATE TABLE strata_search_document (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        generation INTEGER NOT NULL REFERENCES strata_search_generation (id),
        scope TEXT NOT NULL CHECK (scope <> ''),
        path TEXT NOT NULL CHECK (path <> ''),
        digest TEXT NOT NULL,
        title TEXT NOT NULL,
        passages INTEGER NOT NULL CHECK (passages BETWEEN 0 AND ${maxPassages}),
        skipped TEXT CHECK (skipped IS NULL OR passages = 0),
        UNIQUE (generation, scope, path)
      )`,
      `CREATE TABLE strata_search_folder (
        scope TEXT NOT NULL CHECK (scope <> ''),
        folder TEXT NOT NULL CHECK (folder = '' OR folder LIKE '%/'),
        digest TEXT NOT NULL,
        entries TEXT NOT NULL CHECK (entries <> ''),
        PRIMARY KEY (scope, folder)
      ) WITHOUT ROWID`
    ],
    "2_problems": [
      `CREATE TABLE strata_search_problem (
        scope TEXT NOT NULL CHECK (scope <> ''),
        path TEXT NOT NULL,
        reason TEXT NOT NULL CHECK (reason <> ''),
        PRIMARY KEY (scope, path)
      ) WITHOUT ROWID`
    ]
  }
}

/** The first rowid of a document's passages; a number well below 2^53, which JavaScript holds exactly. */
export const firstRowid = (document: number): number => document * 2 ** ordinalBits

/** The full-text table of a generation. */
export const ftsTable = (generation: number): string => `strata_search_fts_${generation}`

/**
 * Own content, for snippets. Words are compared without case and accents, as `unicode61` folds them, which is also what
 * `Query` takes for granted.
 */
export const createFts = (generation: number): string =>
  `CREATE VIRTUAL TABLE ${ftsTable(generation)} USING fts5(
    title, heading, body, line UNINDEXED, tokenize = 'unicode61 remove_diacritics 2'
  )`

/**
 * How FTS5 collects words and merges what it wrote, kept with the table. With its own values, 1 MiB and 4, a quarter of a
 * first index goes into writing words of one transaction several times and merging them again. In place of that, what
 * 8 MiB hold is written at once, and 8 segments of a size are left before they are merged, which searches do not feel.
 */
export const tuneFts = (generation: number): ReadonlyArray<string> => {
  const table = ftsTable(generation)
  return [
    `INSERT INTO ${table} (${table}, rank) VALUES ('hashsize', ${8 * 1024 * 1024})`,
    `INSERT INTO ${table} (${table}, rank) VALUES ('automerge', 8)`
  ]
}

/** Around the matches of a snippet. Control characters, which the writer keeps out of passages. */
export const highlightStart = "\u0002"
export const highlightEnd = "\u0003"
