/**
 * The full-text index: generations of documents and their passages in SQLite's FTS5 or Postgres's `tsvector`, and the
 * `IndexWriter` that keeps one in step. A generation is a whole index. One is active and answers searches (see
 * `Search`); another can be built beside it and take its place in one write.
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
import * as Schema from "effect/Schema"
import type * as Migrator from "effect/sql/Migrator"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { type Extracted, SkipReason } from "./Extractor.ts"
import { byDialect } from "./internal/byDialect.ts"
import * as PostgresIndex from "./internal/postgresIndex.ts"
import * as SqliteIndex from "./internal/sqliteIndex.ts"
import type { IndexStorage, State } from "./internal/storage.ts"
import * as Writer from "./internal/writer.ts"

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
 * - `FullText`: the words that are searched do not fit the text, or their structure is broken. On SQLite that is FTS5's
 *   own integrity check; on Postgres the words of every passage are made again and compared.
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
    /** Checks the active generation: that its words fit its text, and its passages and documents each other. */
    readonly check: Effect.Effect<void, IndexCorrupt | SqlError>
  }
>()("@strata/search/SearchIndex") {}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The index in the database of the `SqlClient` in context, SQLite or Postgres. Creates what is missing of its tables.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make: Effect.Effect<
  SearchIndex["Service"],
  SqlError | Migrator.MigrationError,
  SqlClient.SqlClient | DurableWriter
> = Effect.gen(function* () {
  const storage = byDialect(yield* SqlClient.SqlClient, { postgres: PostgresIndex.make, sqlite: SqliteIndex.make })
  const durable = yield* DurableWriter
  yield* Migrations.run(storage.migrations)
  const generations = makeGenerations(storage, durable)
  return SearchIndex.of({
    ...generations,
    writer: (generation) => Writer.make(storage, generation.id),
    documents: Effect.map(storage.countDocuments, ({ all, skipped }) => ({ indexed: all - skipped, skipped })),
    digests: Effect.fn("SearchIndex.digests")((scope, options) => listDigests(storage, scope, options ?? {})),
    skipped: Effect.fn("SearchIndex.skipped")((options) => listSkipped(storage, options ?? {})),
    check: Effect.flatMap(generations.active, (active) =>
      Option.isNone(active) ? Effect.void : check(storage, durable, active.value.id)
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

const makeGenerations = (
  storage: IndexStorage,
  durable: DurableWriter["Service"]
): Pick<SearchIndex["Service"], "active" | "ensureActive" | "begin" | "activate" | "dropRetired"> => {
  const create = (state: State) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => storage.createGeneration(extraction, state, now))

  const ensure = (state: State) =>
    durable.write(
      Effect.flatMap(storage.generations(state), ([found]) =>
        found === undefined ? create(state) : Effect.succeed(found)
      )
    )

  /** What an older extraction began is not gone on with. */
  const begin = durable.write(
    Effect.gen(function* () {
      const [found] = yield* storage.generations("building")
      if (found !== undefined && found.extraction === extraction) return found
      yield* storage.setState("building", "retired")
      return yield* create("building")
    })
  )

  return {
    active: Effect.map(storage.generations("active"), ([found]) => Option.fromUndefinedOr(found)),
    ensureActive: Effect.flatMap(storage.generations("active"), ([found]) =>
      found === undefined ? ensure("active") : Effect.succeed(found)
    ),
    begin,
    activate: Effect.fn("SearchIndex.activate")(function* (generation) {
      yield* storage.setState("active", "retired")
      yield* storage.activate(generation.id)
    }),
    dropRetired: Effect.flatMap(storage.generations("retired"), (retired) =>
      Effect.as(
        Effect.forEach(retired, ({ id }) => durable.write(storage.dropGeneration(id)), { discard: true }),
        retired.length
      )
    )
  }
}

const pageDocuments = 1000

const listDigests = (
  storage: IndexStorage,
  scope: Scope,
  options: { readonly after?: string | undefined; readonly prefix?: string | undefined }
): Effect.Effect<ReadonlyArray<DocumentDigest>, SqlError> =>
  Effect.map(storage.digests(scope, options.after ?? "", options.prefix ?? "", pageDocuments), (rows) =>
    rows.map(({ digest, path }) => ({ path: path as Path, digest }))
  )

const decodeSkipped = Schema.decodeUnknownEffect(
  Schema.Array(Schema.Struct({ scope: Scope, path: Path, reason: Schema.fromJsonString(SkipReason) }))
)

/** What is stored was encoded by the writer, so that a row which does not decode is a fault of this module. */
const listSkipped = Effect.fnUntraced(function* (
  storage: IndexStorage,
  { among, except, limit, prefix, scope }: SkippedOptions
): Effect.fn.Return<SkippedDocuments, SqlError> {
  const { documents, total } = yield* storage.skipped({
    scope: scope ?? null,
    prefix: prefix ?? "",
    among: among ?? null,
    except: except ?? [],
    limit: limit ?? 1000
  })
  return { total, documents: yield* Effect.catchTag(decodeSkipped(documents), "SchemaError", Effect.die) }
})

const check = Effect.fn("SearchIndex.check")(function* (
  storage: IndexStorage,
  durable: DurableWriter["Service"],
  generation: number
): Effect.fn.Return<void, IndexCorrupt | SqlError> {
  const damage = yield* storage.content(generation).check(durable)
  if (damage._tag !== "None") {
    return yield* new IndexCorrupt({ generation, reason: damage })
  }
})
