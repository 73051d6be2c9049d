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
import { byDialect } from "./internal/byDialect.ts"
import * as PostgresFinder from "./internal/postgresFinder.ts"
import * as SqliteFinder from "./internal/sqliteFinder.ts"
import type { FinderStorage, FoundPassage } from "./internal/storage.ts"
import { parse, type QueryError } from "./Query.ts"

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
  /** How well the passage matches: more is better; comparable within one search of one database. */
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
 * Searches the active index through `sql`, which may be a read-only client. One hit a document: its best passage, title
 * and heading weighing more than text: by bm25 on SQLite, on Postgres by `ts_rank_cd`, which goes by how often and how
 * close to each other the words are, in relation to the length of the passage, and not by how rare they are. Ties are in
 * the order of scope and path. Every search sees one state of the index, whatever is written meanwhile, and takes no
 * write lock, so that no writer makes it fail. Through a client of SQLite that also writes, it waits for that client's
 * turn: give it a reader's.
 *
 * @since 0.1.0
 * @category searching
 */
export const search = Effect.fn("Search.search")(function* (
  sql: SqlClient.SqlClient,
  options: SearchOptions
): Effect.fn.Return<Found, QueryError | NoIndex | SqlError> {
  const query = yield* Effect.fromResult(parse(options.query))
  const finder = finderFor(sql)
  const find = Effect.flatMap(activeGeneration(finder), (generation) =>
    finder.find(generation, query, options.limit ?? 10, options.within)
  )
  const { hits, total } = yield* sql
    .withTransaction(find)
    .pipe(Effect.provideService(SqlClient.BeginTransaction, finder.begin))
  return { total, hits: hits.map(toHit) }
})

/**
 * The roots that have documents.
 *
 * @since 0.1.0
 * @category searching
 */
export const scopes = (sql: SqlClient.SqlClient): Effect.Effect<ReadonlyArray<string>, NoIndex | SqlError> => {
  const finder = finderFor(sql)
  return Effect.flatMap(activeGeneration(finder), finder.scopes)
}

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const finderFor = (sql: SqlClient.SqlClient): FinderStorage =>
  byDialect(sql, { postgres: PostgresFinder.make, sqlite: SqliteFinder.make })

const activeGeneration = (finder: FinderStorage): Effect.Effect<number, NoIndex | SqlError> =>
  Effect.filterOrFail(
    finder.active,
    (generation) => generation !== undefined,
    () => new NoIndex()
  )

const toHit = ({ heading, lines, linesBefore, path, scope, score, snippet, title }: FoundPassage): Hit => ({
  scope,
  path,
  title,
  line: lineOf(lines, linesBefore),
  heading,
  snippet,
  score
})

const lineOf = (lines: string, down: number): number => {
  const numbers = lines.split(",").map(Number)
  return numbers[down] ?? numbers[0]! + down
}
