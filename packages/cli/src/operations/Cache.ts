/**
 * @since 0.1.0
 */
import * as CacheTable from "@strata/cache/CacheTable"
import * as Collector from "@strata/cache/Collector"
import { StepCacheStorage } from "@strata/cache/StepCacheStorage"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Database } from "../Database.ts"
import type { CacheGcResult, CacheStatsResult, CacheVerifyResult } from "../Results.ts"
import * as Workspace from "../Workspace.ts"

/**
 * What the cache of an index has.
 *
 * @since 0.1.0
 * @category operations
 */
export const stats = (options: { readonly database: Database }) =>
  Effect.gen(function* () {
    const storage = yield* StepCacheStorage
    const { origins, ...counts } = yield* storage.stats
    return {
      ...counts,
      origins: origins.map(({ entries, from }) => ({ from, entries }))
    } satisfies CacheStatsResult
  }).pipe(Effect.provide(Workspace.layerExisting(options.database)))

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
  }).pipe(Effect.provide(Workspace.layerExisting(options.database)))

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
  }).pipe(Effect.provide(Workspace.layerExisting(options.database)))
