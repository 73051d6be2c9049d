import type { Path, Scope } from "@strata/dirty-queue/Path"
import type * as IndexWriter from "@strata/follower/IndexWriter"
import * as ProcessingError from "@strata/follower/ProcessingError"
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Passage } from "../Extractor.ts"
import type { Indexed } from "../SearchIndex.ts"
import { firstRowid, ftsTable, highlightEnd, highlightStart, maxPassages } from "./schema.ts"
import { targetSize } from "./split.ts"

/** The writer of one generation. Every statement has a fixed text, so that it is prepared once. */
export const make = (sql: SqlClient.SqlClient, generation: number): IndexWriter.Transactional<Indexed> => {
  const documents = makeDocuments(sql, generation)
  const passages = makePassages(sql, generation)
  return {
    mode: "transactional",
    digests: (scope, paths) =>
      Effect.map(documents.find(scope, paths), (rows) => new Map(rows.map((row) => [row.path, row.digest]))),
    weights: (scope, paths) =>
      Effect.map(
        documents.find(scope, paths),
        (rows) => new Map(rows.map((row) => [row.path, row.passages * targetSize]))
      ),
    write: Effect.fnUntraced(function* (batch) {
      yield* refuseTooMany(batch.upserts)
      const changed = [...batch.upserts, ...batch.removals].map((change) => change.path)
      const old = yield* documents.find(batch.scope, changed)
      const filled = old.filter((row) => row.passages > 0)
      if (filled.length > 0) yield* passages.remove(filled.map((row) => row.id))
      if (batch.removals.length > 0) {
        const gone = new Set(batch.removals.map((removal) => removal.path))
        yield* documents.remove(old.filter((row) => gone.has(row.path)).map((row) => row.id))
      }
      if (batch.upserts.length > 0) {
        yield* passages.insert(batch.upserts, yield* documents.upsert(batch.scope, batch.upserts))
      }
    })
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

interface DocumentRow {
  readonly id: number
  readonly path: Path
  readonly digest: string
  readonly passages: number
}

type Upserts = ReadonlyArray<IndexWriter.Upsert<Indexed>>

/** Refused by its path, since a constraint that fails would look like a fault of the database. */
const refuseTooMany = (upserts: Upserts): Effect.Effect<void, ProcessingError.ProcessingError> => {
  const found = upserts.find(({ value }) => value._tag === "Text" && value.passages.length > maxPassages)
  return found === undefined
    ? Effect.void
    : Effect.fail(ProcessingError.poison(`the text makes more than ${maxPassages} passages`))
}

const makeDocuments = (sql: SqlClient.SqlClient, generation: number) => ({
  find: (scope: Scope, paths: ReadonlyArray<Path>) =>
    sql.unsafe<DocumentRow>(
      `SELECT id, path, digest, passages FROM strata_search_document
      WHERE generation = ? AND scope = ? AND path IN (SELECT value FROM json_each(?))`,
      [generation, scope, JSON.stringify(paths)]
    ),

  remove: (ids: ReadonlyArray<number>) =>
    sql.unsafe("DELETE FROM strata_search_document WHERE id IN (SELECT value FROM json_each(?))", [
      JSON.stringify(ids)
    ]),

  upsert: (scope: Scope, upserts: Upserts): Effect.Effect<ReadonlyMap<Path, number>, SqlError> =>
    Effect.map(
      sql.unsafe<{ readonly id: number; readonly path: Path }>(
        // "WHERE true" keeps the parser from reading ON CONFLICT as the join's condition.
        `INSERT INTO strata_search_document (generation, scope, path, digest, title, passages, skipped)
        SELECT ?, ?, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4 FROM json_each(?) WHERE true
        ON CONFLICT (generation, scope, path) DO UPDATE SET
          digest = excluded.digest, title = excluded.title, passages = excluded.passages, skipped = excluded.skipped
        RETURNING id, path`,
        [generation, scope, JSON.stringify(upserts.map(toRow))]
      ),
      (rows) => new Map(rows.map((row) => [row.path, row.id]))
    )
})

const toRow = ({ digest, path, value }: IndexWriter.Upsert<Indexed>) =>
  value._tag === "Text"
    ? [path, digest, value.title, value.passages.length, null]
    : [path, digest, value.title, 0, JSON.stringify(value.reason)]

/**
 * FTS5 collects words in memory, and writes them out whenever a statement of several rows begins: a statement for each
 * document, or for some passages, makes so many small segments that merging them costs many times what they hold. So
 * passages go out by one statement, and come in by statements of one row, or of very many.
 */
const makePassages = (sql: SqlClient.SqlClient, generation: number) => {
  const table = ftsTable(generation)
  const insertRows = new Map(
    chunkSizes.map((size) => [
      size,
      `INSERT INTO ${table} (rowid, title, heading, body, line) VALUES ${Array.from({ length: size }, () => "(?, ?, ?, ?, ?)").join(", ")}`
    ])
  )
  return {
    remove: (documents: ReadonlyArray<number>) =>
      sql.unsafe(
        `DELETE FROM ${table} WHERE rowid IN (
          SELECT c.id FROM json_each(?) AS first CROSS JOIN ${table}_content AS c
            ON c.id BETWEEN first.value AND first.value + ${maxPassages}
        )`,
        [JSON.stringify(documents.map(firstRowid))]
      ),

    insert: Effect.fnUntraced(function* (
      upserts: Upserts,
      ids: ReadonlyMap<Path, number>
    ): Effect.fn.Return<void, SqlError> {
      const params = toParams(upserts, ids)
      let start = 0
      for (const size of chunkSizes) {
        const width = size * columns
        for (; params.length - start >= width; start += width) {
          yield* sql.unsafe(insertRows.get(size)!, params.slice(start, start + width))
        }
      }
    })
  }
}

/** Rows of a statement, largest first. */
const chunkSizes = [512, 1]

const columns = 5

const toParams = (upserts: Upserts, ids: ReadonlyMap<Path, number>): ReadonlyArray<string | number> => {
  const params: Array<string | number> = []
  for (const { path, value } of upserts) {
    if (value._tag === "Skipped") continue
    const rowid = firstRowid(ids.get(path)!)
    const title = clean(value.title)
    value.passages.forEach((passage: Passage, ordinal) => {
      params.push(rowid + ordinal, title, clean(passage.heading), clean(passage.body), encodeLines(passage))
    })
  }
  return params
}

/** The number of the first line, or of each line where they do not follow one another. */
const encodeLines = ({ line, lines }: Passage): number | string => (lines === undefined ? line : lines.join(","))

const clean = (text: string): string =>
  text.includes(highlightStart) || text.includes(highlightEnd)
    ? text.replaceAll(highlightStart, " ").replaceAll(highlightEnd, " ")
    : text
