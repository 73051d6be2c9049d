import type { DurableWriter } from "@strata/durable/DurableWriter"
import * as Effect from "effect/Effect"
import { hasProperty } from "effect/Predicate"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import {
  createFts,
  firstRowid,
  ftsTable,
  highlightEnd,
  highlightStart,
  migrations,
  ordinalBits,
  tuneFts
} from "./sqliteSchema.ts"
import {
  type ContentStorage,
  type Damage,
  type IndexStorage,
  maxPassages,
  type NewDocument,
  type StoredDocument,
  type StoredGeneration
} from "./storage.ts"

/** The index on SQLite, whose full-text tables are FTS5's. */
export const make = (sql: SqlClient.SqlClient): IndexStorage => ({
  migrations,
  ...generations(sql),
  ...documents(sql),
  content: (generation) => content(sql, generation),
  prepare: ({ body, heading, lines, title }) => [
    { title: clean(title), heading: clean(heading), body: clean(body), lines, words: "" }
  ]
})

// ---------------------------------------------------------------------------------------------------------------------
// generations
// ---------------------------------------------------------------------------------------------------------------------

const generations = (
  sql: SqlClient.SqlClient
): Pick<IndexStorage, "generations" | "createGeneration" | "setState" | "activate" | "dropGeneration"> => ({
  generations: (state) =>
    sql.unsafe<StoredGeneration>("SELECT id, extraction FROM strata_search_generation WHERE state = ? ORDER BY id", [
      state
    ]),

  createGeneration: Effect.fnUntraced(function* (extraction, state, now) {
    const rows = yield* sql.unsafe<StoredGeneration>(
      "INSERT INTO strata_search_generation (extraction, state, created_at) VALUES (?, ?, ?) RETURNING id, extraction",
      [extraction, state, now]
    )
    const generation = rows[0]!
    yield* Effect.forEach(
      [createFts(generation.id), ...tuneFts(generation.id)],
      (statement) => sql.unsafe(statement).unprepared,
      { discard: true }
    )
    return generation
  }),

  setState: (from, to) =>
    Effect.asVoid(sql.unsafe("UPDATE strata_search_generation SET state = ? WHERE state = ?", [to, from])),

  activate: (generation) =>
    Effect.asVoid(sql.unsafe("UPDATE strata_search_generation SET state = 'active' WHERE id = ?", [generation])),

  dropGeneration: Effect.fnUntraced(function* (generation) {
    yield* sql.unsafe(`DROP TABLE IF EXISTS ${ftsTable(generation)}`).unprepared
    yield* sql.unsafe("DELETE FROM strata_search_document WHERE generation = ?", [generation])
    yield* sql.unsafe("DELETE FROM strata_search_generation WHERE id = ? AND state = 'retired'", [generation])
  })
})

// ---------------------------------------------------------------------------------------------------------------------
// documents
// ---------------------------------------------------------------------------------------------------------------------

const inActive = "generation = (SELECT id FROM strata_search_generation WHERE state = 'active')"

const documents = (sql: SqlClient.SqlClient): Pick<IndexStorage, "countDocuments" | "digests" | "skipped"> => ({
  countDocuments: Effect.map(
    sql.unsafe<{ readonly all: number; readonly skipped: number }>(
      `SELECT count(*) AS "all", count(skipped) AS skipped FROM strata_search_document WHERE ${inActive}`
    ),
    ([row]) => row ?? { all: 0, skipped: 0 }
  ),

  digests: (scope, after, prefix, limit) =>
    sql.unsafe<{ readonly path: string; readonly digest: string }>(
      `SELECT path, digest FROM strata_search_document
      WHERE ${inActive} AND scope = ?1 AND path > ?2 AND path >= ?3 AND substr(path, 1, length(?3)) = ?3
      ORDER BY path LIMIT ?4`,
      [scope, after, prefix, limit]
    ),

  skipped: ({ among, except, limit, prefix, scope }) =>
    Effect.map(
      sql.unsafe<{ readonly scope: string; readonly path: string; readonly reason: string; readonly total: number }>(
        `SELECT scope, path, skipped AS reason, count(*) OVER () AS total FROM strata_search_document
        WHERE ${inActive} AND skipped IS NOT NULL AND (?1 IS NULL OR scope = ?1) AND substr(path, 1, length(?2)) = ?2
          AND (?3 IS NULL OR path IN (SELECT value FROM json_each(?3)))
          AND path NOT IN (SELECT value FROM json_each(?4))
        ORDER BY scope, path LIMIT ?5`,
        [scope, prefix, among === null ? null : JSON.stringify(among), JSON.stringify(except), limit]
      ),
      (rows) => ({ total: rows[0]?.total ?? 0, documents: rows })
    )
})

// ---------------------------------------------------------------------------------------------------------------------
// content
// ---------------------------------------------------------------------------------------------------------------------

const content = (sql: SqlClient.SqlClient, generation: number): ContentStorage => ({
  find: (scope, paths) =>
    sql.unsafe<StoredDocument>(
      `SELECT id, path, digest, passages FROM strata_search_document
      WHERE generation = ? AND scope = ? AND path IN (SELECT value FROM json_each(?))`,
      [generation, scope, JSON.stringify(paths)]
    ),

  upsert: (scope, rows) =>
    sql.unsafe<{ readonly id: number; readonly path: string }>(
      // "WHERE true" keeps the parser from reading ON CONFLICT as the join's condition.
      `INSERT INTO strata_search_document (generation, scope, path, digest, title, passages, skipped)
      SELECT ?, ?, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4 FROM json_each(?) WHERE true
      ON CONFLICT (generation, scope, path) DO UPDATE SET
        digest = excluded.digest, title = excluded.title, passages = excluded.passages, skipped = excluded.skipped
      RETURNING id, path`,
      [generation, scope, JSON.stringify(rows.map(toRow))]
    ),

  remove: (ids) =>
    Effect.asVoid(
      sql.unsafe("DELETE FROM strata_search_document WHERE id IN (SELECT value FROM json_each(?))", [
        JSON.stringify(ids)
      ])
    ),

  ...passages(sql, generation),

  check: (durable) => check(sql, durable, generation)
})

const toRow = ({ digest, passages, path, skipped, title }: NewDocument) => [path, digest, title, passages, skipped]

/**
 * FTS5 collects words in memory, and writes them out whenever a statement of several rows begins: a statement for each
 * document, or for some passages, makes so many small segments that merging them costs many times what they hold. So
 * passages go out by one statement, and come in by statements of one row.
 */
const passages = (
  sql: SqlClient.SqlClient,
  generation: number
): Pick<ContentStorage, "insertPassages" | "removePassages"> => {
  const table = ftsTable(generation)
  const insert = `INSERT INTO ${table} (rowid, title, heading, body, line) VALUES (?, ?, ?, ?, ?)`
  return {
    removePassages: (documents) =>
      Effect.asVoid(
        sql.unsafe(
          `DELETE FROM ${table} WHERE rowid IN (
            SELECT c.id FROM json_each(?) AS first CROSS JOIN ${table}_content AS c
              ON c.id BETWEEN first.value AND first.value + ${maxPassages}
          )`,
          [JSON.stringify(documents.map(firstRowid))]
        )
      ),

    insertPassages: Effect.fnUntraced(function* (documents) {
      for (const { document, passages } of documents) {
        const rowid = firstRowid(document)
        for (const [ordinal, { body, heading, lines, title }] of passages.entries()) {
          // A single number is kept as one.
          yield* sql.unsafe(insert, [
            rowid + ordinal,
            title,
            heading,
            body,
            lines.includes(",") ? lines : Number(lines)
          ])
        }
      }
    })
  }
}

const clean = (text: string): string =>
  text.includes(highlightStart) || text.includes(highlightEnd)
    ? text.replaceAll(highlightStart, " ").replaceAll(highlightEnd, " ")
    : text

// ---------------------------------------------------------------------------------------------------------------------
// checking
// ---------------------------------------------------------------------------------------------------------------------

/** FTS5's own integrity check, and whether passages and documents fit together. */
const check = (
  sql: SqlClient.SqlClient,
  durable: DurableWriter["Service"],
  generation: number
): Effect.Effect<Damage, SqlError> => {
  const table = ftsTable(generation)
  return durable.write(sql.unsafe(`INSERT INTO ${table} (${table}) VALUES ('integrity-check')`)).pipe(
    Effect.andThen(countMisfits(sql, generation)),
    Effect.catchIf(isCorruption, () => Effect.succeed<Damage>({ _tag: "FullText" }))
  )
}

const countMisfits = (sql: SqlClient.SqlClient, generation: number): Effect.Effect<Damage, SqlError> =>
  Effect.map(
    sql.unsafe<{ readonly documents: number; readonly orphans: number }>(
      `WITH found AS MATERIALIZED (
        SELECT id >> ${ordinalBits} AS document, count(*) AS passages FROM ${ftsTable(generation)}_docsize GROUP BY 1
      )
      SELECT
        (SELECT count(*) FROM strata_search_document AS d LEFT JOIN found AS f ON f.document = d.id
          WHERE d.generation = ?1 AND d.passages <> ifnull(f.passages, 0)) AS documents,
        (SELECT ifnull(sum(f.passages), 0) FROM found AS f LEFT JOIN strata_search_document AS d
          ON d.id = f.document AND d.generation = ?1 WHERE d.id IS NULL) AS orphans`,
      [generation]
    ),
    ([row]) => {
      const { documents, orphans } = row ?? { documents: 0, orphans: 0 }
      return documents + orphans > 0 ? { _tag: "Passages", documents, orphans } : { _tag: "None" }
    }
  )

/** SQLite's `SQLITE_CORRUPT`, the primary code of the more exact ones, such as that of a virtual table. */
const corruptCode = 11

/** Effect has no reason of its own for this; the driver leaves SQLite's result code on the cause. */
const isCorruption = ({ reason }: SqlError): boolean =>
  hasProperty(reason.cause, "errno") && (Number(reason.cause.errno) & 0xff) === corruptCode
