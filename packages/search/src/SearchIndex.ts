/**
 * The full-text index: generations of documents and their passages in SQLite's FTS5, and the `IndexWriter` that keeps
 * one in step. A generation is a whole index. One is active and answers searches (see `Search`); another can be built
 * beside it and take its place in one write.
 *
 * @since 0.1.0
 */
import { Path, Scope } from "@strata/dirty-queue/Path"
import { DurableWriter, type WriteTransaction } from "@strata/durable/DurableWriter"
import * as Migrations from "@strata/durable/Migrations"
import type * as IndexWriter from "@strata/follower/IndexWriter"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { hasProperty } from "effect/Predicate"
import * as Schema from "effect/Schema"
import type * as Migrator from "effect/sql/Migrator"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { type Extracted, SkipReason } from "./Extractor.ts"
import * as Writer from "./internal/ftsWriter.ts"
import { createFts, ftsTable, migrations, ordinalBits } from "./internal/schema.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * What the index holds of a file: its passages, or why it has none. A file without passages is a document too, so that
 * it is not read again until it changes.
 *
 * @since 0.1.0
 * @category models
 */
export type Indexed =
  | ({ readonly _tag: "Text" } & Extracted)
  | { readonly _tag: "Skipped"; readonly title: string; readonly reason: SkipReason }

/**
 * A whole index.
 *
 * @since 0.1.0
 * @category models
 */
export interface Generation {
  readonly id: number
  /** The version of the extraction that made it, see {@link extraction}. */
  readonly extraction: string
}

/**
 * A document without passages, and why.
 *
 * @since 0.1.0
 * @category models
 */
export interface SkippedDocument {
  readonly scope: Scope
  readonly path: Path
  readonly reason: SkipReason
}

/**
 * Which documents without passages are asked for. Default: all of them.
 *
 * @since 0.1.0
 * @category models
 */
export interface SkippedOptions {
  readonly scope?: Scope | undefined
  /** Only paths that start with exactly this. */
  readonly prefix?: string | undefined
  /** Only these paths. */
  readonly among?: ReadonlyArray<string> | undefined
  /** Not these paths. */
  readonly except?: ReadonlyArray<string> | undefined
  /** How many are listed at most. Default 1,000. */
  readonly limit?: number | undefined
}

/**
 * `total` counts all, of which `documents` lists the first.
 *
 * @since 0.1.0
 * @category models
 */
export interface SkippedDocuments {
  readonly total: number
  readonly documents: ReadonlyArray<SkippedDocument>
}

/**
 * A document as the index knows it.
 *
 * @since 0.1.0
 * @category models
 */
export interface DocumentDigest {
  readonly path: Path
  readonly digest: string
}

/**
 * About how many bytes of text a value has, for `Follower`'s `weigh`. A passage that is removed counts as one of average
 * size: FTS5 has to take its words apart again.
 *
 * @since 0.1.0
 * @category models
 */
export const weigh = (value: Indexed): number => {
  if (value._tag === "Skipped") return 0
  let length = 0
  for (const passage of value.passages) length += passage.body.length + passage.heading.length
  return length
}

/**
 * How files are turned into passages. It is raised whenever the same file would give other passages, since digests do
 * not show that.
 *
 * @since 0.1.0
 * @category models
 */
export const extraction = "2"

// ---------------------------------------------------------------------------------------------------------------------
// errors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * How an index is damaged.
 *
 * - `FullText`: FTS5's own integrity check fails: its words do not fit its text, or its structure is broken.
 * - `Passages`: documents whose passages are not all there, or that have too many, and passages of documents that do not
 *   exist, each counted.
 *
 * @since 0.1.0
 * @category errors
 */
export const CorruptReason = Schema.TaggedUnion({
  FullText: {},
  Passages: { documents: Schema.Int, orphans: Schema.Int }
})

/**
 * @since 0.1.0
 * @category errors
 */
export type CorruptReason = typeof CorruptReason.Type

/**
 * The full-text table of a generation does not fit its own data or its documents. A rebuild mends it.
 *
 * @since 0.1.0
 * @category errors
 */
export class IndexCorrupt extends Schema.TaggedError<IndexCorrupt>("@strata/search/IndexCorrupt")("IndexCorrupt", {
  generation: Schema.Int,
  reason: CorruptReason
}) {
  override get message(): string {
    return CorruptReason.match(this.reason, {
      FullText: () => "the full-text index is damaged: rebuild it",
      Passages: ({ documents, orphans }) =>
        `the full-text index is damaged (${documents} documents, ${orphans} passages without one): rebuild it`
    })
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// service
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The index.
 *
 * @since 0.1.0
 * @category services
 */
export class SearchIndex extends Context.Service<
  SearchIndex,
  {
    /** The generation that answers searches. */
    readonly active: Effect.Effect<Option.Option<Generation>, SqlError>
    /** The generation that answers searches; the first one is made, and active at once. */
    readonly ensureActive: Effect.Effect<Generation, SqlError>
    /** A generation to build beside the active one: the one that an interrupted rebuild left, or an empty one. */
    readonly begin: Effect.Effect<Generation, SqlError>
    /** Lets a generation answer searches from the commit on, in place of the one that did. */
    readonly activate: (generation: Generation) => Effect.Effect<void, SqlError, WriteTransaction>
    /** Removes what generations that are neither active nor being built have left, and tells how many there were. */
    readonly dropRetired: Effect.Effect<number, SqlError>
    /** Writes into a generation; see `Follower`. */
    readonly writer: (generation: Generation) => IndexWriter.Transactional<Indexed>
    /** How many documents the active generation has, those without passages included. */
    readonly documents: Effect.Effect<{ readonly indexed: number; readonly skipped: number }, SqlError>
    /** The documents of a scope in the active generation, in pages of at most 1,000, by path in byte order. */
    readonly digests: (
      scope: Scope,
      options?: { readonly after?: string | undefined; readonly prefix?: string | undefined }
    ) => Effect.Effect<ReadonlyArray<DocumentDigest>, SqlError>
    /** The documents without passages in the active generation, by scope and path in byte order. */
    readonly skipped: (options?: SkippedOptions) => Effect.Effect<SkippedDocuments, SqlError>
    /** Checks the active generation: FTS5's own integrity check, and that passages and documents fit together. */
    readonly check: Effect.Effect<void, IndexCorrupt | SqlError>
  }
>()("@strata/search/SearchIndex") {}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The index in the database of the `SqlClient` in context. Creates what is missing of its tables.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make: Effect.Effect<
  SearchIndex["Service"],
  SqlError | Migrator.MigrationError,
  SqlClient.SqlClient | DurableWriter
> = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const durable = yield* DurableWriter
  yield* Migrations.run(migrations)
  const generations = makeGenerations(sql, durable)
  return SearchIndex.of({
    ...generations,
    writer: (generation) => Writer.make(sql, generation.id),
    documents: countDocuments(sql),
    digests: Effect.fn("SearchIndex.digests")((scope, options) => listDigests(sql, scope, options ?? {})),
    skipped: Effect.fn("SearchIndex.skipped")((options) => listSkipped(sql, options ?? {})),
    check: Effect.flatMap(generations.active, (active) =>
      Option.isNone(active) ? Effect.void : check(sql, durable, active.value.id)
    )
  })
})

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The index in the database of the `SqlClient` in context.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<SearchIndex, SqlError | Migrator.MigrationError, SqlClient.SqlClient | DurableWriter> =
  Layer.effect(SearchIndex, make)

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

type State = "building" | "active" | "retired"

const makeGenerations = (
  sql: SqlClient.SqlClient,
  durable: DurableWriter["Service"]
): Pick<SearchIndex["Service"], "active" | "ensureActive" | "begin" | "activate" | "dropRetired"> => {
  const inState = (state: State) =>
    sql.unsafe<Generation>("SELECT id, extraction FROM strata_search_generation WHERE state = ? ORDER BY id", [state])

  const create = Effect.fnUntraced(function* (state: State): Effect.fn.Return<Generation, SqlError> {
    const rows = yield* sql.unsafe<Generation>(
      "INSERT INTO strata_search_generation (extraction, state, created_at) VALUES (?, ?, ?) RETURNING id, extraction",
      [extraction, state, yield* Clock.currentTimeMillis]
    )
    const generation = rows[0]!
    yield* sql.unsafe(createFts(generation.id)).unprepared
    return generation
  })

  const setState = (from: State, to: State) =>
    sql.unsafe("UPDATE strata_search_generation SET state = ? WHERE state = ?", [to, from])

  const ensure = (state: State) =>
    durable.write(
      Effect.flatMap(inState(state), ([found]) => (found === undefined ? create(state) : Effect.succeed(found)))
    )

  /** What an older extraction began is not gone on with. */
  const begin = durable.write(
    Effect.gen(function* () {
      const [found] = yield* inState("building")
      if (found !== undefined && found.extraction === extraction) return found
      yield* setState("building", "retired")
      return yield* create("building")
    })
  )

  const drop = (generation: Generation) =>
    durable.write(
      Effect.gen(function* () {
        yield* sql.unsafe(`DROP TABLE IF EXISTS ${ftsTable(generation.id)}`).unprepared
        yield* sql.unsafe("DELETE FROM strata_search_document WHERE generation = ?", [generation.id])
        yield* sql.unsafe("DELETE FROM strata_search_generation WHERE id = ? AND state = 'retired'", [generation.id])
      })
    )

  return {
    active: Effect.map(inState("active"), ([found]) => Option.fromUndefinedOr(found)),
    ensureActive: Effect.flatMap(inState("active"), ([found]) =>
      found === undefined ? ensure("active") : Effect.succeed(found)
    ),
    begin,
    activate: Effect.fn("SearchIndex.activate")(function* (generation) {
      yield* setState("active", "retired")
      yield* sql.unsafe("UPDATE strata_search_generation SET state = 'active' WHERE id = ?", [generation.id])
    }),
    dropRetired: Effect.flatMap(inState("retired"), (retired) =>
      Effect.as(Effect.forEach(retired, drop, { discard: true }), retired.length)
    )
  }
}

const inActive = "generation = (SELECT id FROM strata_search_generation WHERE state = 'active')"

const countDocuments = (sql: SqlClient.SqlClient) =>
  Effect.map(
    sql.unsafe<{ readonly all: number; readonly skipped: number }>(
      `SELECT count(*) AS "all", count(skipped) AS skipped FROM strata_search_document WHERE ${inActive}`
    ),
    ([row]) => ({ indexed: (row?.all ?? 0) - (row?.skipped ?? 0), skipped: row?.skipped ?? 0 })
  )

const listDigests = (
  sql: SqlClient.SqlClient,
  scope: Scope,
  options: { readonly after?: string | undefined; readonly prefix?: string | undefined }
) =>
  sql.unsafe<DocumentDigest>(
    `SELECT path, digest FROM strata_search_document
    WHERE ${inActive} AND scope = ?1 AND path > ?2 AND path >= ?3 AND substr(path, 1, length(?3)) = ?3
    ORDER BY path LIMIT 1000`,
    [scope, options.after ?? "", options.prefix ?? ""]
  )

const decodeSkipped = Schema.decodeUnknownEffect(
  Schema.Array(Schema.Struct({ scope: Scope, path: Path, reason: Schema.fromJsonString(SkipReason) }))
)

/** What is stored was encoded by the writer, so that a row which does not decode is a fault of this module. */
const listSkipped = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  { among, except, limit, prefix, scope }: SkippedOptions
): Effect.fn.Return<SkippedDocuments, SqlError> {
  const rows = yield* sql.unsafe<{ readonly total: number }>(
    `SELECT scope, path, skipped AS reason, count(*) OVER () AS total FROM strata_search_document
    WHERE ${inActive} AND skipped IS NOT NULL AND (?1 IS NULL OR scope = ?1) AND substr(path, 1, length(?2)) = ?2
      AND (?3 IS NULL OR path IN (SELECT value FROM json_each(?3))) AND path NOT IN (SELECT value FROM json_each(?4))
    ORDER BY scope, path LIMIT ?5`,
    [
      scope ?? null,
      prefix ?? "",
      among === undefined ? null : JSON.stringify(among),
      JSON.stringify(except ?? []),
      limit ?? 1000
    ]
  )
  const documents = yield* Effect.catchTag(decodeSkipped(rows), "SchemaError", Effect.die)
  return { total: rows[0]?.total ?? 0, documents }
})

const check = Effect.fn("SearchIndex.check")(function* (
  sql: SqlClient.SqlClient,
  durable: DurableWriter["Service"],
  generation: number
): Effect.fn.Return<void, IndexCorrupt | SqlError> {
  const table = ftsTable(generation)
  yield* durable
    .write(sql.unsafe(`INSERT INTO ${table} (${table}) VALUES ('integrity-check')`))
    .pipe(
      Effect.catchIf(isCorruption, () => Effect.fail(new IndexCorrupt({ generation, reason: { _tag: "FullText" } })))
    )
  const rows = yield* sql.unsafe<{ readonly documents: number; readonly orphans: number }>(
    `WITH found AS MATERIALIZED (
      SELECT id >> ${ordinalBits} AS document, count(*) AS passages FROM ${table}_docsize GROUP BY 1
    )
    SELECT
      (SELECT count(*) FROM strata_search_document AS d LEFT JOIN found AS f ON f.document = d.id
        WHERE d.generation = ?1 AND d.passages <> ifnull(f.passages, 0)) AS documents,
      (SELECT ifnull(sum(f.passages), 0) FROM found AS f LEFT JOIN strata_search_document AS d
        ON d.id = f.document AND d.generation = ?1 WHERE d.id IS NULL) AS orphans`,
    [generation]
  )
  const { documents, orphans } = rows[0] ?? { documents: 0, orphans: 0 }
  if (documents + orphans > 0) {
    return yield* new IndexCorrupt({ generation, reason: { _tag: "Passages", documents, orphans } })
  }
})

/** SQLite's `SQLITE_CORRUPT`, the primary code of the more exact ones, such as that of a virtual table. */
const corruptCode = 11

/** Effect has no reason of its own for this; the driver leaves SQLite's result code on the cause. */
const isCorruption = ({ reason }: SqlError): boolean =>
  hasProperty(reason.cause, "errno") && (Number(reason.cause.errno) & 0xff) === corruptCode
