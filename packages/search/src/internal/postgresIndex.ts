import * as Rows from "@strata/durable/Rows"
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import { SerializationError, SqlError } from "effect/sql/SqlError"
import { migrationsPostgres } from "./postgresSchema.ts"
import * as Statements from "./postgresStatements.ts"
import type { ContentStorage, Damage, IndexStorage } from "./storage.ts"
import { toPieces } from "./tsvector.ts"

/** The index on Postgres. */
export const make = (sql: SqlClient.SqlClient): IndexStorage => {
  const run: Rows.Run = (statement, parameters = []) => sql.unsafe(statement, parameters).values
  return {
    migrations: migrationsPostgres,
    ...generations(run),
    ...documents(run),
    content: (generation) => content(sql, run, generation),
    prepare: ({ body, heading, lines, title }) =>
      toPieces({ title: clean(title), heading: clean(heading), body: clean(body), lines })
  }
}

/** What Postgres cannot hold counts as a space, or as what stands for a character that is none. */
const clean = (text: string): string => text.replaceAll("\0", " ").toWellFormed()

// ---------------------------------------------------------------------------------------------------------------------
// generations
// ---------------------------------------------------------------------------------------------------------------------

const generations = (
  run: Rows.Run
): Pick<IndexStorage, "generations" | "createGeneration" | "setState" | "activate" | "dropGeneration"> => ({
  generations: (state) => Effect.map(run(Statements.generations, [state]), (rows) => rows.map(toGeneration)),

  // The time is the database's, which all that share it agree on.
  createGeneration: Effect.fnUntraced(function* (extraction, state) {
    const [row] = yield* run(Statements.createGeneration, [extraction, state])
    return row === undefined ? yield* overtaken : toGeneration(row)
  }),

  setState: (from, to) => Effect.asVoid(run(Statements.setState, [from, to])),

  activate: (generation) => Effect.asVoid(run(Statements.activate, [generation])),

  dropGeneration: Effect.fnUntraced(function* (generation) {
    yield* run(Statements.dropPassages, [generation])
    yield* run(Statements.dropDocuments, [generation])
    yield* run(Statements.dropGeneration, [generation])
  })
})

const toGeneration = (row: Rows.Values) => ({ id: Rows.integer(row[0]), extraction: Rows.text(row[1]) })

/** Another process has created one meanwhile; the write has to run again, with it in view. */
const overtaken = Effect.suspend(() =>
  Effect.fail(
    new SqlError({
      reason: new SerializationError({
        cause: undefined,
        message: "Another process has created a generation meanwhile",
        operation: "createGeneration"
      })
    })
  )
)

// ---------------------------------------------------------------------------------------------------------------------
// documents
// ---------------------------------------------------------------------------------------------------------------------

const documents = (run: Rows.Run): Pick<IndexStorage, "countDocuments" | "digests" | "skipped"> => ({
  countDocuments: Effect.map(run(Statements.countDocuments), ([row]) => ({
    all: Rows.integer(row?.[0]),
    skipped: Rows.integer(row?.[1])
  })),

  digests: (scope, after, prefix, limit) =>
    Effect.map(run(Statements.digests, [scope, after, prefix, limit]), (rows) =>
      rows.map((row) => ({ path: Rows.text(row[0]), digest: Rows.text(row[1]) }))
    ),

  skipped: ({ among, except, limit, prefix, scope }) =>
    Effect.map(
      run(Statements.skipped, [
        scope,
        prefix,
        among === null ? null : JSON.stringify(among),
        JSON.stringify(except),
        limit
      ]),
      (rows) => ({
        total: Rows.integer(rows[0]?.[3] ?? 0),
        documents: rows.map((row) => ({
          scope: Rows.text(row[0]),
          path: Rows.text(row[1]),
          reason: Rows.text(row[2])
        }))
      })
    )
})

// ---------------------------------------------------------------------------------------------------------------------
// content
// ---------------------------------------------------------------------------------------------------------------------

const content = (sql: SqlClient.SqlClient, run: Rows.Run, generation: number): ContentStorage => ({
  find: (scope, paths) =>
    Effect.map(run(Statements.findDocuments, [generation, scope, JSON.stringify(paths)]), (rows) =>
      rows.map((row) => ({
        id: Rows.integer(row[0]),
        path: Rows.text(row[1]),
        digest: Rows.text(row[2]),
        passages: Rows.integer(row[3])
      }))
    ),

  upsert: (scope, documents) => {
    const rows = documents.map(({ digest, passages, path, skipped, title }) => [
      path,
      digest,
      clean(title),
      passages,
      skipped
    ])
    return Effect.map(run(Statements.upsertDocuments, [generation, scope, JSON.stringify(rows)]), (upserted) =>
      upserted.map((row) => ({ id: Rows.integer(row[0]), path: Rows.text(row[1]) }))
    )
  },

  remove: (documents) => Effect.asVoid(run(Statements.removeDocuments, [documents])),

  insertPassages: (documents) => {
    const rows = documents.flatMap(({ document, passages }) =>
      passages.map(({ body, heading, lines, title, words }, ordinal) => [
        document,
        ordinal,
        title,
        heading,
        body,
        lines,
        words
      ])
    )
    return Effect.asVoid(
      Rows.inChunks(rows, chunkSize, (chunk) => run(Statements.insertPassages, [JSON.stringify(chunk)]))
    )
  },

  removePassages: (documents) => Effect.asVoid(run(Statements.removePassages, [documents])),

  check: () => check(sql, run, generation)
})

/** Keeps the JSON parameter of a statement to some mebibytes. */
const chunkSize = 500

// ---------------------------------------------------------------------------------------------------------------------
// checking
// ---------------------------------------------------------------------------------------------------------------------

/** In one state of the index, which holds up no writer. That passages have a document is the database's own care. */
const check = (sql: SqlClient.SqlClient, run: Rows.Run, generation: number): Effect.Effect<Damage, SqlError> =>
  Effect.gen(function* () {
    const [misfits] = yield* run(Statements.countMisfits, [generation])
    const documents = Rows.integer(misfits?.[0])
    if (documents > 0) return { _tag: "Passages", documents, orphans: 0 } as const
    for (let after: Rows.Values = [0, -1]; ;) {
      const page = yield* run(Statements.readPassages, [generation, after[0], after[1], chunkSize])
      const words = page.map((row) => [String(row[0]), Rows.integer(row[1]), wordsOf(row)])
      const different = yield* run(Statements.compareWords, [JSON.stringify(words)])
      if (different.length > 0) return { _tag: "FullText" } as const
      if (page.length < chunkSize) return { _tag: "None" } as const
      after = page.at(-1)!
    }
  }).pipe(
    sql.withTransaction,
    Effect.provideService(SqlClient.BeginTransaction, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
  )

/** What was stored fits into one piece. */
const wordsOf = (row: Rows.Values): string =>
  toPieces({
    title: Rows.text(row[2]),
    heading: Rows.text(row[3]),
    body: Rows.text(row[4]),
    lines: Rows.text(row[5])
  })[0]!.words
