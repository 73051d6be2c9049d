/**
 * An open index and everything that works on it: where its directories are, and the follower that keeps it in step.
 * Only a search does without, as it has no time to load it.
 *
 * @since 0.1.0
 */
import type * as Cache from "@strata/cache/Cache"
import type { CacheError } from "@strata/cache/CacheError"
import { DirtyQueue, type DirtyQueueError } from "@strata/dirty-queue/DirtyQueue"
import type { Scope } from "@strata/dirty-queue/Path"
import { DurableWriter } from "@strata/durable/DurableWriter"
import * as Follower from "@strata/follower/Follower"
import * as CachedExtractor from "@strata/search/CachedExtractor"
import * as FileReader from "@strata/search/FileReader"
import * as Scan from "@strata/search/Scan"
import * as Search from "@strata/search/Search"
import * as SearchIndex from "@strata/search/SearchIndex"
import type { PostgresClientError } from "@strata/strata/PostgresClient"
import * as Strata from "@strata/strata/Strata"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as EffectScope from "effect/Scope"
import type * as Migrator from "effect/sql/Migrator"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import * as NodePath from "node:path"
import * as Counting from "./internal/counting.ts"
import type { Database } from "./Database.ts"
import { baseOf, filesOf } from "./internal/paths.ts"
import * as PresentRoots from "./internal/presentRoots.ts"
import * as Reader from "./Reader.ts"
import * as RemoteTier from "./RemoteTier.ts"
import type { SharedTier } from "./SharedTier.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A part of a root that is to be scanned.
 *
 * @since 0.1.0
 * @category models
 */
export interface Target {
  readonly scope: Scope
  /** As `docs/api/`; empty for the whole root. */
  readonly under: string
}

// ---------------------------------------------------------------------------------------------------------------------
// service
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The open index.
 *
 * @since 0.1.0
 * @category services
 */
export class Workspace extends Context.Service<
  Workspace,
  {
    readonly base: string
    /** The files of the database, which are not indexed wherever they lie. */
    readonly exclude: ReadonlyArray<string>
    readonly index: SearchIndex.SearchIndex["Service"]
    readonly scan: Scan.Scan["Service"]
    readonly queue: DirtyQueue["Service"]
    /** Reads every file, whether a scan has listed it or not. */
    readonly reader: ReturnType<typeof FileReader.make>
    /** Fills the generation that answers searches. */
    readonly follower: Follower.Follower
    /** What the followers made here have written so far. */
    readonly counts: Effect.Effect<Counting.Counts>
    /** What was extracted so far, and what the cache had. */
    readonly extraction: Effect.Effect<CachedExtractor.Counts>
    /** A follower that fills another generation. */
    readonly makeFollower: (
      generation: SearchIndex.Generation
    ) => Effect.Effect<Follower.Follower, SqlError | DirtyQueueError, EffectScope.Scope>
    /** The directories that are indexed. */
    readonly roots: Effect.Effect<ReadonlyArray<Scope>, SqlError>
  }
>()("@strata/cli/Workspace") {}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

const make = (base: string, exclude: ReadonlyArray<string>, which: CachedExtractor.Which) =>
  Effect.gen(function* () {
    const index = yield* SearchIndex.SearchIndex
    const scan = yield* Scan.Scan
    const queue = yield* DirtyQueue
    const { counts: extraction, extractor } = yield* CachedExtractor.make({ which })
    const durable = yield* DurableWriter
    const counting = Counting.make()
    const makeFollower = (generation: SearchIndex.Generation) =>
      Effect.provideService(
        Follower.make({
          name: "search",
          version: String(generation.id),
          queue,
          reader: PresentRoots.make(base, FileReader.make({ base, extractor, lists: scan.lists })),
          writer: counting.count(index.writer(generation)),
          // Short, since a run that was killed keeps the next one waiting for as long; a living one renews it.
          lease: Duration.seconds(5),
          batchSize: 400,
          // Files are read synchronously, one after the other; what they wait for are the cache and its commits.
          concurrency: 32,
          // A fifth of a second of work for SQLite, in which no scan and no other process can write.
          weigh: SearchIndex.weigh,
          maxWeight: 2 * 1024 * 1024,
          tickRows: 2000
        }),
        DurableWriter,
        durable
      )
    const follower = yield* makeFollower(yield* index.ensureActive)
    return Workspace.of({
      base,
      exclude,
      index,
      scan,
      queue,
      reader: FileReader.make({ base, extractor }),
      follower,
      counts: counting.counts,
      extraction,
      makeFollower,
      roots: Effect.map(queue.registrations({ follower: follower.name }), (registrations) =>
        registrations.map((registration) => registration.scope)
      )
    })
  })

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The index in a database, which is created when it is missing.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  database: Database,
  shared?: SharedTier
): Layer.Layer<
  Workspace | Strata.Services | SearchIndex.SearchIndex | Cache.Services | SqlClient,
  SqlError | Migrator.MigrationError | DirtyQueueError | CacheError | PostgresClientError
> => {
  const base = baseOf(database)
  const exclude = filesOf(database)
  return Layer.effect(Workspace, make(base, exclude, shared === undefined ? "structured" : "all")).pipe(
    Layer.provideMerge(Layer.mergeAll(SearchIndex.layer, Scan.layer({ base, exclude }))),
    Layer.provideMerge(layerCache(database, shared)),
    Layer.provideMerge(layerStore(database))
  )
}

/**
 * The store in a database, which is created when it is missing, without what is particular to an index.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerStore = (
  database: Database
): Layer.Layer<Strata.Services | SqlClient, SqlError | Migrator.MigrationError | PostgresClientError> =>
  database._tag === "File"
    ? Strata.layerSqlite({ filename: database.name })
    : Strata.layerPostgres({ url: database.url })

/**
 * The store in a database with its cache, without what is particular to an index.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerCached = (database: Database) =>
  layerCache(database, undefined).pipe(Layer.provideMerge(layerStore(database)))

const layerCache = (database: Database, shared: SharedTier | undefined) =>
  Layer.unwrap(
    Effect.map(shared === undefined ? Effect.undefined : RemoteTier.make(shared), (remote) => {
      const options: Cache.CacheOptions = {
        remote,
        sharing: { readOnly: shared?.readOnly, guard: { failures: 3 } }
      }
      return database._tag === "File"
        ? Strata.layerCache({ ...options, directory: NodePath.join(NodePath.dirname(database.name), "artifacts") })
        : Strata.layerCachePostgres({ ...options, url: database.url })
    })
  )

/**
 * The index in a database that has one. Another database is left as it is.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerExisting = (database: Database, shared?: SharedTier) => ifIndexed(database, layer(database, shared))

/**
 * A layer over a database that has an index; fails with `NoIndex`, and leaves the database as it is, when it has none.
 *
 * @since 0.1.0
 * @category layers
 */
export const ifIndexed = <A, E, R>(database: Database, layer: Layer.Layer<A, E, R>) =>
  Layer.unwrap(Effect.scoped(Effect.as(Effect.flatMap(Reader.make(database), Search.scopes), layer)))

// ---------------------------------------------------------------------------------------------------------------------
// paths
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A path of the index as it can be opened from the working directory.
 *
 * @since 0.1.0
 * @category paths
 */
export const display = (base: string, scope: string, path: string): string =>
  NodePath.relative(process.cwd(), NodePath.join(base, scope, path)) || "."
