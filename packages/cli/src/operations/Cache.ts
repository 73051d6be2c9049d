/**
 * @since 0.1.0
 */
import * as CacheTable from "@strata/cache/CacheTable"
import * as Collector from "@strata/cache/Collector"
import * as StepCacheStorage from "@strata/cache/StepCacheStorage"
import type * as Duration from "effect/Duration"
import * as Search from "@strata/search/Search"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type { Database } from "../Database.ts"
import type { CacheGcResult, CacheStatsResult, CacheVerifyResult } from "../Results.ts"
import * as Reader from "../Reader.ts"
import * as Tables from "../internal/tables.ts"
import * as Unpublished from "../internal/unpublished.ts"
import * as Workspace from "../Workspace.ts"

/**
 * Only the app knows where the artifacts of its cache are.
 *
 * @since 0.1.0
 * @category errors
 */
export class CacheOfApp extends Schema.TaggedError<CacheOfApp>("@strata/cli/CacheOfApp")("CacheOfApp", {
  database: Schema.String
}) {
  override get message(): string {
    return (
      `${this.database} has the cache of an app, and not of an index: only the app knows where its artifacts are, and ` +
      "takes out what is too old with Collector.collect"
    )
  }
}

/**
 * What a cache has.
 *
 * @since 0.1.0
 * @category operations
 */
export const stats = (options: { readonly database: Database }) =>
  Effect.gen(function* () {
    const storage = yield* StepCacheStorage.StepCacheStorage
    const { origins, ...counts } = yield* storage.stats
    return {
      ...counts,
      origins: origins.map(({ entries, from }) => ({ from, entries })),
      unpublished: yield* Unpublished.waiting
    } satisfies CacheStatsResult
  }).pipe(Effect.provide(layerExisting(options.database)))

/**
 * Compares the cache of an index with its journal, and results with their digests.
 *
 * @since 0.1.0
 * @category operations
 */
export const verify = (options: { readonly database: Database }) =>
  Effect.gen(function* () {
    const { corrupt, missing, unexplained, unjoined } = yield* CacheTable.verify()
    const ok = missing.length + unexplained.length + unjoined.length + corrupt.length === 0
    return { ok, missing, unexplained, unjoined, corrupt } satisfies CacheVerifyResult
  }).pipe(Effect.provide(layerExisting(options.database)))

/**
 * Takes out of the cache of an index what was not used for some time, or what is too much, with all that only that
 * needed; or tells what that would be.
 *
 * @since 0.1.0
 * @category operations
 */
export const gc = (options: {
  readonly database: Database
  readonly dryRun: boolean
  readonly maxAge: Duration.Duration | undefined
  readonly maxBytes: number | undefined
}) =>
  Effect.gen(function* () {
    const { dryRun, maxAge, maxBytes } = options
    const collected = yield* Collector.collect({ dryRun, maxAge, maxBytes })
    return { dryRun, ...collected } satisfies CacheGcResult
  }).pipe(
    Effect.provide(Layer.unwrap(Effect.as(requireIndex(options.database), Workspace.layerCached(options.database))))
  )

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/** Blobs that no row needs are taken out, so that the folder of another database than the one asked for is not touched. */
const requireIndex = Effect.fnUntraced(function* (database: Database) {
  yield* Tables.require(database, Tables.cache)
  yield* Effect.scoped(Effect.flatMap(Reader.make(database), Search.scopes)).pipe(
    Effect.catchTag("NoIndex", () => Effect.fail(new CacheOfApp({ database: database.name })))
  )
})

/** A database without a cache is left as it is, and one of an app gets neither an index nor a folder of artifacts. */
const layerExisting = (database: Database) =>
  Layer.unwrap(
    Effect.as(
      Tables.require(database, Tables.cache),
      StepCacheStorage.layerSql.pipe(Layer.provideMerge(Workspace.layerStore(database)))
    )
  )
