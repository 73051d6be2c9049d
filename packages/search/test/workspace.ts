import * as Changelog from "@strata/dirty-queue/Changelog"
import * as ChangeSignal from "@strata/dirty-queue/ChangeSignal"
import * as DirtyQueue from "@strata/dirty-queue/DirtyQueue"
import * as DurableWriter from "@strata/durable/DurableWriter"
import type { ContentReader } from "@strata/follower/ContentReader"
import * as Follower from "@strata/follower/Follower"
import * as Extractor from "@strata/search/Extractor"
import * as FileReader from "@strata/search/FileReader"
import * as Roots from "@strata/search/Roots"
import * as Scan from "@strata/search/Scan"
import * as Search from "@strata/search/Search"
import * as SearchIndex from "@strata/search/SearchIndex"
import * as Verify from "@strata/search/Verify"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import type { Database, Tier } from "./tiers.ts"

/** A folder that is removed with the scope, and that other users may look into. */
export const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => {
    const folder = mkdtempSync(join(tmpdir(), "strata-search-"))
    chmodSync(folder, 0o755)
    return folder
  }),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

/** A new folder with files, and an index of them in a database that no other client opens. */
export const makeWorkspace = (tier: Tier, options: Extractor.ExtractorOptions = {}) =>
  Effect.flatMap(Effect.all([temporaryFolder, tier.own]), ([base, database]) =>
    openWorkspace({ ...options, base, database })
  )

/** The files in `docs` below `base`, or in another folder, and an index of them in a database that may be there. */
export const openWorkspace = (
  options: Extractor.ExtractorOptions & {
    readonly base: string
    readonly database: Database
    readonly folder?: string | undefined
  }
) =>
  Effect.gen(function* () {
    const context = yield* Layer.build(layer(options))
    const root = join(options.base, options.folder ?? "docs")
    mkdirSync(root, { recursive: true })
    return yield* Effect.provideContext(connect(options.base, root), context)
  })

/** Runs as a user whom permissions stop: root is not. */
export const asOrdinaryUser = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  process.geteuid?.() !== 0
    ? effect
    : Effect.acquireUseRelease(
        Effect.sync(() => process.seteuid?.(65_534)),
        () => effect,
        () => Effect.sync(() => process.seteuid?.(0))
      )

const layer = ({
  base,
  database,
  ...options
}: Extractor.ExtractorOptions & { readonly base: string; readonly database: Database }) =>
  Layer.mergeAll(SearchIndex.layer, Scan.layer({ base }), Extractor.layer(options)).pipe(
    Layer.provideMerge(Layer.mergeAll(Changelog.layer(), DirtyQueue.layer())),
    Layer.provideMerge(Layer.mergeAll(DurableWriter.layer(), ChangeSignal.layer)),
    Layer.provideMerge(database.layer)
  )

const connect = (base: string, root: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const index = yield* SearchIndex.SearchIndex
    const scan = yield* Scan.Scan
    const queue = yield* DirtyQueue.DirtyQueue
    const durable = yield* DurableWriter.DurableWriter
    const extractor = yield* Extractor.Extractor
    const services = yield* Effect.context<
      SearchIndex.SearchIndex | Changelog.Changelog | DurableWriter.DurableWriter
    >()
    const scope = Roots.scopeOf(base, root)
    const reader = FileReader.make({ base, extractor, lists: scan.lists })
    const generation = yield* index.ensureActive
    const makeFollower = (generation: SearchIndex.Generation, from: ContentReader<SearchIndex.Indexed> = reader) =>
      Effect.provideService(
        Follower.make({
          name: "search",
          version: String(generation.id),
          queue,
          reader: from,
          writer: index.writer(generation)
        }),
        DurableWriter.DurableWriter,
        durable
      )
    const follower = yield* makeFollower(generation)
    yield* follower.register(scope)
    const drain = Effect.gen(function* () {
      let processed = 0
      for (;;) {
        const tick = yield* follower.drain(scope)
        processed += tick.processed
        if (!tick.hasMore) return processed
      }
    })
    const find = (query: string, options: Partial<Search.SearchOptions> = {}) =>
      Search.search(sql, { query, limit: 1000, ...options })
    return {
      base,
      root,
      scope,
      sql,
      index,
      scan,
      queue,
      durable,
      services,
      follower,
      makeFollower,
      reader,
      drain,
      find,
      write: (path: string, content: string | Uint8Array) =>
        Effect.sync(() => {
          const file = join(root, path)
          mkdirSync(dirname(file), { recursive: true })
          writeFileSync(file, content)
        }),
      remove: (path: string) => Effect.sync(() => rmSync(join(root, path), { recursive: true })),
      /** Scans and drains: what was recorded, and how many documents were written. */
      sync: (options: Partial<Scan.ScanOptions> = {}) =>
        Effect.gen(function* () {
          const scanned = yield* scan.run({ scope, ...options })
          return { ...scanned, processed: yield* drain }
        }),
      paths: (query: string) => Effect.map(find(query), ({ hits }) => hits.map((hit) => hit.path).toSorted()),
      switchTo: (generation: SearchIndex.Generation) => durable.write(index.activate(generation)),
      compare: Effect.provideContext(
        Verify.compare({ base, scope, reader: FileReader.make({ base, extractor }) }),
        services
      ),
      repair: (differences: Verify.Differences) => Effect.provideContext(Verify.repair(scope, differences), services)
    }
  })
