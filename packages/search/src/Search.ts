/**
 * Finds text in the index. This is the reading half of the search, apart from the half that writes, so that a process
 * which only searches loads nothing else.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { ftsTable, highlightEnd, highlightStart, ordinalBits } from "./internal/schema.ts"
import { parse, type QueryError, toFts5 } from "./Query.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * What to find, and where.
 *
 * @since 0.1.0
 * @category models
 */
export interface SearchOptions {
  /** As a user types it, see `Query`. */
  readonly query: string
  /** Default 10. */
  readonly limit?: number | undefined
  /** Only documents of these scopes whose path starts with exactly the prefix. Default: all documents. */
  readonly within?: ReadonlyArray<{ readonly scope: string; readonly prefix: string }> | undefined
}

/**
 * A piece of a passage around its matches.
 *
 * @since 0.1.0
 * @category models
 */
export interface Snippet {
  readonly text: string
  /** Where the matches are in `text`: start and end, in UTF-16 code units, end exclusive. */
  readonly highlights: ReadonlyArray<readonly [start: number, end: number]>
}

/**
 * A document with its best passage.
 *
 * @since 0.1.0
 * @category models
 */
export interface Hit {
  readonly scope: string
  readonly path: string
  readonly title: string
  /** The line of the first match in the passage's text, else the one in which the passage starts; from 1. */
  readonly line: number
  /** The headings above the passage, joined with ` > `. */
  readonly heading: string
  readonly snippet: Snippet
  /** How well the passage matches: more is better; comparable within one search. */
  readonly score: number
}

/**
 * The best hits, and how many documents match in all.
 *
 * @since 0.1.0
 * @category models
 */
export interface Found {
  readonly total: number
  readonly hits: ReadonlyArray<Hit>
}

// ---------------------------------------------------------------------------------------------------------------------
// errors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The database holds no index.
 *
 * @since 0.1.0
 * @category errors
 */
export class NoIndex extends Schema.TaggedError<NoIndex>("@strata/search/NoIndex")("NoIndex", {}) {
  override get message(): string {
    return "there is no search index in this database"
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// searching
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Searches the active index through `sql`, which may be a read-only client. One hit a document: its best passage, by
 * bm25 with title and heading weighing more than text. Ties are in the order of scope and path. Every search sees one
 * state of the index, whatever is written meanwhile, and takes no write lock, so that no writer makes it fail. Through a
 * client that also writes, it waits for that client's turn: give it a reader's.
 *
 * @since 0.1.0
 * @category searching
 */
export const search = Effect.fn("Search.search")(function* (
  sql: SqlClient.SqlClient,
  options: SearchOptions
): Effect.fn.Return<Found, QueryError | NoIndex | SqlError> {
  const match = toFts5(yield* Effect.fromResult(parse(options.query)))
  return yield* sql
    .withTransaction(findMatches(sql, match, options))
    .pipe(Effect.provideService(SqlClient.BeginTransaction, "BEGIN"))
})

/**
 * The roots that have documents.
 *
 * @since 0.1.0
 * @category searching
 */
export const scopes = (sql: SqlClient.SqlClient): Effect.Effect<ReadonlyArray<string>, NoIndex | SqlError> =>
  Effect.flatMap(activeGeneration(sql), (generation) =>
    Effect.map(
      sql.unsafe<{ readonly scope: string }>("SELECT DISTINCT scope FROM strata_search_document WHERE generation = ?", [
        generation
      ]),
      (rows) => rows.map((row) => row.scope)
    )
  )

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const findMatches = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  match: string,
  options: SearchOptions
): Effect.fn.Return<Found, NoIndex | SqlError> {
  const generation = yield* activeGeneration(sql)
  const best = yield* findBest(sql, generation, match, options)
  const passages = yield* readPassages(sql, generation, match, best)
  return {
    total: best[0]?.total ?? 0,
    hits: best.map((row) => toHit(row, passages.get(row.passage)))
  }
})

/** Weights of title, heading and body. */
const rank = "bm25(8.0, 4.0, 1.0)"

/** Words of a snippet, about two lines on a terminal. */
const snippetTokens = 24

interface Best {
  readonly scope: string
  readonly path: string
  readonly title: string
  readonly passage: number
  readonly score: number
  readonly total: number
}

interface Passage {
  readonly passage: number
  /** One number, or one for each line of the body. */
  readonly lines: string
  /** The body up to its first match; absent when it has none. */
  readonly before: string | null
  readonly heading: string
  readonly snippet: string
}

const activeGeneration = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient
): Effect.fn.Return<number, NoIndex | SqlError> {
  const tables = yield* sql.unsafe("SELECT 1 FROM sqlite_master WHERE name = 'strata_search_generation'")
  if (tables.length === 0) {
    return yield* new NoIndex()
  }
  const rows = yield* sql.unsafe<{ readonly id: number }>(
    "SELECT id FROM strata_search_generation WHERE state = 'active'"
  )
  return rows[0] === undefined ? yield* new NoIndex() : rows[0].id
})

/** The bare column `passage` is that of the row with the least score, as SQLite defines for `min`. */
const findBest = (sql: SqlClient.SqlClient, generation: number, match: string, options: SearchOptions) => {
  const table = ftsTable(generation)
  const within =
    options.within === undefined
      ? ""
      : `WHERE EXISTS (
      SELECT 1 FROM json_each(?) AS f
      WHERE f.value ->> 0 = d.scope AND substr(d.path, 1, length(f.value ->> 1)) = f.value ->> 1
    )`
  const params =
    options.within === undefined ? [] : [JSON.stringify(options.within.map(({ prefix, scope }) => [scope, prefix]))]
  return sql.unsafe<Best>(
    `WITH matched AS MATERIALIZED (
      SELECT rowid AS passage, rank AS score FROM ${table} WHERE ${table} MATCH ? AND rank MATCH '${rank}'
    ), best AS (
      SELECT passage >> ${ordinalBits} AS document, min(score) AS score, passage FROM matched GROUP BY 1
    )
    SELECT d.scope, d.path, d.title, b.passage, b.score, count(*) OVER () AS total
    FROM best AS b JOIN strata_search_document AS d ON d.id = b.document ${within}
    ORDER BY b.score, d.scope, d.path LIMIT ?`,
    [match, ...params, options.limit ?? 10]
  )
}

const readPassages = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  generation: number,
  match: string,
  best: ReadonlyArray<Best>
): Effect.fn.Return<ReadonlyMap<number, Passage>, SqlError> {
  const table = ftsTable(generation)
  const rows = yield* sql.unsafe<Passage>(
    `SELECT rowid AS passage, CAST(line AS TEXT) AS lines, heading,
      snippet(${table}, 2, ?1, ?2, '…', ${snippetTokens}) AS snippet,
      substr(highlight(${table}, 2, ?1, ''), 1, nullif(instr(highlight(${table}, 2, ?1, ''), ?1), 0)) AS before
    FROM ${table} WHERE ${table} MATCH ?3 AND rowid IN (SELECT value FROM json_each(?4))`,
    [highlightStart, highlightEnd, match, JSON.stringify(best.map((row) => row.passage))]
  )
  return new Map(rows.map((row) => [row.passage, row]))
})

const toHit = (row: Best, passage: Passage | undefined): Hit => ({
  scope: row.scope,
  path: row.path,
  title: row.title,
  line: passage === undefined ? 1 : lineOf(passage),
  heading: passage?.heading ?? "",
  snippet: toSnippet(passage?.snippet ?? ""),
  score: -row.score
})

const lineOf = ({ before, lines }: Passage): number => {
  const numbers = lines.split(",").map(Number)
  const down = before === null ? 0 : before.split("\n").length - 1
  return numbers[down] ?? numbers[0]! + down
}

const toSnippet = (marked: string): Snippet => {
  const highlights: Array<readonly [number, number]> = []
  let text = ""
  for (const [i, part] of marked.split(highlightStart).entries()) {
    if (i === 0) {
      text = part
      continue
    }
    const end = part.indexOf(highlightEnd)
    highlights.push([text.length, text.length + end])
    text += part.slice(0, end) + part.slice(end + 1)
  }
  return { text, highlights }
}
