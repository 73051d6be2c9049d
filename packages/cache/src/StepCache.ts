/**
 * The results of steps, by step key. One tag for local and shared tiers: the first result that is recorded under a key
 * stays, a lookup is verified before it is served, and each tier says how certain its answers are.
 *
 * @since 0.1.0
 */
import { Changelog } from "@strata/dirty-queue/Changelog"
import { DurableWriter } from "@strata/durable/DurableWriter"
import { Journal } from "@strata/journal/Journal"
import type { StreamName } from "@strata/journal/StreamName"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as Migrator from "effect/sql/Migrator"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { ArtifactStore } from "./ArtifactStore.ts"
import type { CacheEntry, Recording } from "./CacheEntry.ts"
import type { CacheError } from "./CacheError.ts"
import * as CacheEvents from "./CacheEvents.ts"
import * as Service from "./internal/stepCacheService.ts"
import type { Lookup, MissReason } from "./Lookup.ts"
import * as Storage from "./StepCacheStorage.ts"
import type { StepKey } from "./StepKey.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * What became of an entry that was put, decided by the digests of the results alone:
 *
 * - `Inserted`: it is in the cache now.
 * - `ExistingSame`: the same result was there, and its metadata stays.
 * - `Conflict`: another result was there, and stays.
 * - `Unarbitrated`: it was sent, but the tier cannot tell whether another was there.
 *
 * @since 0.1.0
 * @category models
 */
export type PutOutcome =
  | { readonly _tag: "Inserted" }
  | { readonly _tag: "ExistingSame"; readonly entry: CacheEntry }
  | { readonly _tag: "Conflict"; readonly entry: CacheEntry }
  | { readonly _tag: "Unarbitrated" }

/**
 * Whether a tier can tell who was first: `exact`, or `last-writer-wins`, where a put always answers `Unarbitrated`.
 *
 * @since 0.1.0
 * @category models
 */
export const Arbitration = Schema.Literals(["exact", "last-writer-wins"])

/**
 * @since 0.1.0
 * @category models
 */
export type Arbitration = typeof Arbitration.Type

/**
 * How the local step cache works.
 *
 * @since 0.1.0
 * @category models
 */
export interface StepCacheOptions {
  /** Names the tier. Default `local`. */
  readonly name?: string | undefined
  /** The stream in which it journals. Default `CacheEvents.stream`. */
  readonly stream?: StreamName | undefined
  /**
   * What a lookup does about the artifacts of an entry, if it has some: `exists` asks the artifact store for those that
   * are missing, `verify` reads and hashes all of them, `trust` does nothing. Default `exists`.
   */
  readonly artifacts?: "exists" | "verify" | "trust" | undefined
  /**
   * A hit writes the time of its use down when the one that is there is older than this; other hits write nothing.
   * Default 1 hour.
   */
  readonly useGrain?: Duration.Input | undefined
}

// ---------------------------------------------------------------------------------------------------------------------
// service
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A step cache.
 *
 * @since 0.1.0
 * @category services
 */
export class StepCache extends Context.Service<
  StepCache,
  {
    /** Names the tier in lookups, errors, metrics and refusals. */
    readonly name: string
    readonly arbitration: Arbitration
    /**
     * Looks a key up. With `recording`, only an entry of that recording is a hit, another one is a miss by `Fenced`. A
     * local tier takes a poisoned entry out, see `quarantine`.
     */
    readonly get: (
      key: StepKey,
      options?: { readonly recording?: Recording | undefined }
    ) => Effect.Effect<Lookup, CacheError>
    /**
     * Records an entry, unless the key has one. Fails with `Invalid` when the entry contradicts itself and, on a local
     * tier, with `ArtifactMissing` when a blob it names is not in the artifact store. A local tier puts it into the
     * write that is under way, if there is one, else into one of its own.
     *
     * `from` names the tier that the entry was read from: it is then known to be there, and is not published again.
     */
    readonly put: (
      entry: CacheEntry,
      options?: { readonly from?: string | undefined }
    ) => Effect.Effect<PutOutcome, CacheError>
    /**
     * Takes an entry out, and tells whether there was one. With `recording`, only that recording: a fresher one stays.
     * Fails with `Unsupported` on a tier that cannot.
     */
    readonly evict: (
      key: StepKey,
      options?: { readonly recording?: Recording | undefined }
    ) => Effect.Effect<boolean, CacheError>
    /** Takes a recording out because it cannot be served, and tells whether it was still there. */
    readonly quarantine: (
      key: StepKey,
      options: { readonly recording: Recording; readonly reason: MissReason }
    ) => Effect.Effect<boolean, CacheError>
  }
>()("@strata/cache/StepCache") {}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The local step cache over the storage in context. Whatever changes in it is journaled in the write that changes it; an
 * entry that was recorded here, and not read from another tier, is also a change of its key in the scope `~cache` of the
 * changelog. It joins the write under way.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = Effect.fnUntraced(function* (
  options?: StepCacheOptions
): Effect.fn.Return<
  StepCache["Service"],
  never,
  Storage.StepCacheStorage | DurableWriter | Journal | Changelog | ArtifactStore
> {
  return Service.make({
    name: options?.name ?? "local",
    stream: options?.stream ?? CacheEvents.stream,
    artifactCheck: options?.artifacts ?? "exists",
    useGrain: Duration.toMillis(options?.useGrain ?? "1 hour"),
    storage: yield* Storage.StepCacheStorage,
    writer: yield* DurableWriter,
    journal: yield* Journal,
    changelog: yield* Changelog,
    artifacts: yield* ArtifactStore
  })
})

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The local step cache over the storage in context.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  options?: StepCacheOptions
): Layer.Layer<StepCache, never, Storage.StepCacheStorage | DurableWriter | Journal | Changelog | ArtifactStore> =>
  Layer.effect(StepCache, make(options))

/**
 * A step cache in memory, with its storage: for tests, and where nothing has to survive the process.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerMemory = (
  options?: StepCacheOptions
): Layer.Layer<StepCache | Storage.StepCacheStorage, never, DurableWriter | Journal | Changelog | ArtifactStore> =>
  layer(options).pipe(Layer.provideMerge(Storage.layerMemory))

/**
 * A step cache on SQLite or Postgres, with its storage. Creates what is missing of its tables.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerSql = (
  options?: StepCacheOptions
): Layer.Layer<
  StepCache | Storage.StepCacheStorage,
  SqlError | Migrator.MigrationError,
  SqlClient.SqlClient | DurableWriter | Journal | Changelog | ArtifactStore
> => layer(options).pipe(Layer.provideMerge(Storage.layerSql))
