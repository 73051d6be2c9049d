import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { toFts5 } from "../Query.ts"
import { ftsTable, highlightEnd, highlightStart, ordinalBits } from "./sqliteSchema.ts"
import type { FinderStorage, FoundPassage } from "./storage.ts"

/** Searches on SQLite, ranked by FTS5's bm25, which also makes the snippets. */
export const make = (sql: SqlClient.SqlClient): FinderStorage => ({
  begin: "BEGIN",

  active: Effect.gen(function* () {
    const tables = yield* sql.unsafe("SELECT 1 FROM sqlite_master WHERE name = 'strata_search_generation'")
    if (tables.length === 0) return undefined
    const rows = yield* sql.unsafe<{ readonly id: number }>(
      "SELECT id FROM strata_search_generation WHERE state = 'active'"
    )
    return rows[0]?.id
  }),

  scopes: (generation) =>
    Effect.map(
      sql.unsafe<{ readonly scope: string }>("SELECT DISTINCT scope FROM strata_search_document WHERE generation = ?", [
        generation
      ]),
      (rows) => rows.map((row) => row.scope)
    ),

  find: Effect.fnUntraced(function* (generation, query, limit, within) {
    const match = toFts5(query)
    const best = yield* findBest(sql, generation, match, limit, within)
    const passages = yield* readPassages(sql, generation, match, best)
    return { total: best[0]?.total ?? 0, hits: best.map((row) => toFound(row, passages.get(row.passage))) }
  })
})

// ---------------------------------------------------------------------------------------------------------------------
// statements
// ---------------------------------------------------------------------------------------------------------------------

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
  readonly lines: string
  /** The body up to its first match; absent when it has none. */
  readonly before: string | null
  readonly heading: string
  readonly snippet: string
}

/** The bare column `passage` is that of the row with the least score, as SQLite defines for `min`. */
const findBest = (
  sql: SqlClient.SqlClient,
  generation: number,
  match: string,
  limit: number,
  within: Parameters<FinderStorage["find"]>[3]
) => {
  const table = ftsTable(generation)
  const condition =
    within === undefined
      ? ""
      : `WHERE EXISTS (
      SELECT 1 FROM json_each(?) AS f
      WHERE f.value ->> 0 = d.scope AND substr(d.path, 1, length(f.value ->> 1)) = f.value ->> 1
    )`
  const params = within === undefined ? [] : [JSON.stringify(within.map(({ prefix, scope }) => [scope, prefix]))]
  return sql.unsafe<Best>(
    `WITH matched AS MATERIALIZED (
      SELECT rowid AS passage, rank AS score FROM ${table} WHERE ${table} MATCH ? AND rank MATCH '${rank}'
    ), best AS (
      SELECT passage >> ${ordinalBits} AS document, min(score) AS score, passage FROM matched GROUP BY 1
    )
    SELECT d.scope, d.path, d.title, b.passage, b.score, count(*) OVER () AS total
    FROM best AS b JOIN strata_search_document AS d ON d.id = b.document ${condition}
    ORDER BY b.score, d.scope, d.path LIMIT ?`,
    [match, ...params, limit]
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

// ---------------------------------------------------------------------------------------------------------------------
// rows
// ---------------------------------------------------------------------------------------------------------------------

const toFound = ({ path, scope, score, title }: Best, passage: Passage | undefined): FoundPassage => ({
  scope,
  path,
  title,
  heading: passage?.heading ?? "",
  lines: passage?.lines ?? "1",
  linesBefore: (passage?.before ?? "").split("\n").length - 1,
  snippet: toSnippet(passage?.snippet ?? ""),
  score: -score
})

const toSnippet = (marked: string): FoundPassage["snippet"] => {
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
