import * as Rows from "@strata/durable/Rows"
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import * as Statements from "./postgresStatements.ts"
import { describe, phrasesOf } from "./snippet.ts"
import type { FinderStorage } from "./storage.ts"
import { toTsquery } from "./tsvector.ts"

/** Searches on Postgres, ranked by `ts_rank_cd`. */
export const make = (sql: SqlClient.SqlClient): FinderStorage => {
  const run = (statement: string, parameters: ReadonlyArray<unknown> = []) => sql.unsafe(statement, parameters).values
  return {
    begin: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",

    active: Effect.gen(function* () {
      const [found] = yield* run(Statements.tables)
      if (found?.[0] !== true) return undefined
      const [row] = yield* run(Statements.active)
      return row === undefined ? undefined : Rows.integer(row[0])
    }),

    scopes: (generation) =>
      Effect.map(run(Statements.scopes, [generation]), (rows) => rows.map((row) => Rows.text(row[0]))),

    find: (generation, query, limit, within) => {
      const phrases = phrasesOf(query)
      const parameters = [generation, toTsquery(query), limit]
      const found =
        within === undefined
          ? run(Statements.find(false), parameters)
          : run(Statements.find(true), [
              ...parameters,
              JSON.stringify(within.map(({ prefix, scope }) => [scope, prefix]))
            ])
      return Effect.map(found, (rows) => ({
        total: Rows.integer(rows[0]?.[4] ?? 0),
        hits: rows.map((row) => ({
          scope: Rows.text(row[0]),
          path: Rows.text(row[1]),
          title: Rows.text(row[2]),
          heading: Rows.text(row[5]),
          lines: Rows.text(row[6]),
          score: Number(row[3]),
          ...describe(Rows.text(row[7]), phrases, snippetWords)
        }))
      }))
    }
  }
}

/** About two lines on a terminal. */
const snippetWords = 24
