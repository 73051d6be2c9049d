/**
 * The cache of an app in one line: the local step cache and artifact store, and the shared ones behind them if there are
 * any, put together in the only right order. `StepCache` and `ArtifactStore` of the result are the combined ones;
 * publication works on the local ones, which go by the same tags.
 *
 * @since 0.1.0
 */
import type { Changelog } from "@strata/dirty-queue/Changelog"
import type { ChangeSignal } from "@strata/dirty-queue/ChangeSignal"
import * as DirtyQueue from "@strata/dirty-queue/DirtyQueue"
import type { DurableWriter } from "@strata/durable/DurableWriter"
import type { Journal } from "@strata/journal/Journal"
import type { StreamName } from "@strata/journal/StreamName"
import type * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type * as Migrator from "effect/sql/Migrator"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import * as ArtifactStore from "./ArtifactStore.ts"
import * as ArtifactSync from "./ArtifactSync.ts"
import type { CacheError } from "./CacheError.ts"
import * as CacheSync from "./CacheSync.ts"
import * as CombinedArtifactStore from "./CombinedArtifactStore.ts"
import * as CombinedStepCache from "./CombinedStepCache.ts"
import * as Publication from "./Publication.ts"
import * as PublicationStorage from "./PublicationStorage.ts"
import * as StepCache from "./StepCache.ts"
import type { StepCacheStorage } from "./StepCacheStorage.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The services of a cache.
 *
 * @since 0.1.0
 * @category models
 */
export type Services =
  | StepCache.StepCache
  | StepCacheStorage
  | ArtifactStore.ArtifactStore
  | CacheSync.CacheSync
  | ArtifactSync.ArtifactSync
  | Publication.Publication

/**
 * A tier that machines share, as `HttpCache` has one.
 *
 * @since 0.1.0
 * @category models
 */
export interface Remote {
  readonly steps: Effect.Effect<StepCache.StepCache["Service"], CacheError, Scope.Scope>
  readonly artifacts: Effect.Effect<ArtifactStore.ArtifactStore["Service"], CacheError, Scope.Scope>
}

/**
 * The settings of every cache; what is absent has the defaults of the service it belongs to.
 *
 * @since 0.1.0
 * @category models
 */
export interface CacheOptions {
  /** Default: none, everything stays on this machine. */
  readonly remote?: Remote | undefined
  /** How entries are shared. */
  readonly sharing?: Omit<CacheSync.CacheSyncOptions, "stream"> | undefined
  readonly publication?: Omit<Publication.PublicationOptions, "stream"> | undefined
  readonly steps?: Omit<StepCache.StepCacheOptions, "stream"> | undefined
  /** Where the cache journals. Default `CacheEvents.stream`. */
  readonly stream?: StreamName | undefined
}

/**
 * The settings of {@link layerSql}.
 *
 * @since 0.1.0
 * @category models
 */
export type SqlOptions = CacheOptions & {
  /** Whose time the queue of publication goes by, see `DirtyQueueOptions.clock`: that of the changelog. */
  readonly clock?: DirtyQueue.DirtyQueueOptions["clock"]
} & (
    | {
        /** The folder of the artifacts. Several processes, and several databases, may use it. */
        readonly directory: string
      }
    | {
        /**
         * The store of the artifacts, for a database that several machines use: one that all of them reach, as
         * `PostgresCache.artifactStore`. It is asked from inside of writes, by connections of its own.
         */
        readonly artifacts: Remote["artifacts"]
      }
  )

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A cache in the database of the `SqlClient` in context, with artifacts as files or in a store of their own. Journal,
 * changelog and writer in context have to be those of that database. Publication has a queue of its own on it, whichever
 * one the app uses.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerSql = (
  options: SqlOptions
): Layer.Layer<
  Services,
  CacheError | SqlError | Migrator.MigrationError | DirtyQueue.DirtyQueueError,
  SqlClient | DurableWriter | Journal | Changelog | ChangeSignal
> =>
  combine(
    options,
    "directory" in options
      ? ArtifactStore.layerFileSystem({ directory: options.directory })
      : Layer.effect(ArtifactStore.ArtifactStore, options.artifacts),
    StepCache.layerSql(stepOptions(options)),
    publication(options).pipe(
      Layer.provide(
        Layer.mergeAll(
          PublicationStorage.layerSql,
          DirtyQueue.layer({ ...Publication.queueOptions, clock: options.clock })
        )
      )
    )
  )

/**
 * A cache in memory, for tests. The queue in context has to be that of the changelog.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerMemory = (
  options: CacheOptions = {}
): Layer.Layer<
  Services,
  CacheError | SqlError | DirtyQueue.DirtyQueueError,
  DurableWriter | Journal | Changelog | ChangeSignal | DirtyQueue.DirtyQueue
> =>
  combine(
    options,
    ArtifactStore.layerMemory(),
    StepCache.layerMemory(stepOptions(options)),
    publication(options).pipe(Layer.provide(PublicationStorage.layerMemory))
  )

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const stepOptions = ({ steps, stream }: CacheOptions): StepCache.StepCacheOptions => ({ ...steps, stream })

const publication = ({ publication, stream }: CacheOptions) => Publication.layer({ ...publication, stream })

/** The local tiers are built once, and seen by everything but the app. */
const combine = <E, R, E2, R2, E3, R3>(
  options: CacheOptions,
  artifacts: Layer.Layer<ArtifactStore.ArtifactStore, E, R>,
  steps: Layer.Layer<StepCache.StepCache | StepCacheStorage, E2, R2 | ArtifactStore.ArtifactStore>,
  publication: Layer.Layer<Publication.Publication, E3, R3 | StepCache.StepCache | StepCacheStorage>
) =>
  Layer.mergeAll(CombinedArtifactStore.layer, CombinedStepCache.layer, publication).pipe(
    Layer.provideMerge(sharing(options)),
    Layer.provideMerge(steps),
    Layer.provideMerge(artifacts)
  )

/** Entries and blobs of one tier have one guard, which `ArtifactSync` finds in the `CacheSync`. */
const sharing = ({ remote, sharing, stream }: CacheOptions) =>
  remote === undefined
    ? Layer.mergeAll(CacheSync.layerLocal, ArtifactSync.layerLocal)
    : ArtifactSync.layer(remote.artifacts, { guard: sharing?.guard }).pipe(
        Layer.provideMerge(CacheSync.layer(remote.steps, { ...sharing, stream }))
      )
