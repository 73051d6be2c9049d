/**
 * @since 0.1.0
 */
export * as ArtifactStore from "./ArtifactStore.ts"
/**
 * @since 0.1.0
 */
export * as ArtifactSync from "./ArtifactSync.ts"
/**
 * @since 0.1.0
 */
export * as Cache from "./Cache.ts"
/**
 * @since 0.1.0
 */
export * as CacheEntry from "./CacheEntry.ts"
/**
 * @since 0.1.0
 */
export * as CacheError from "./CacheError.ts"
/**
 * @since 0.1.0
 */
export * as CacheEvents from "./CacheEvents.ts"
/**
 * @since 0.1.0
 */
export * as CacheSync from "./CacheSync.ts"
/**
 * @since 0.1.0
 */
export * as CacheTable from "./CacheTable.ts"
/**
 * @since 0.1.0
 */
export * as Collector from "./Collector.ts"
/**
 * @since 0.1.0
 */
export * as CombinedStepCache from "./CombinedStepCache.ts"
/**
 * @since 0.1.0
 */
export * as HttpCache from "./HttpCache.ts"
/**
 * @since 0.1.0
 */
export * as Lookup from "./Lookup.ts"
/**
 * @since 0.1.0
 */
export * as PostgresCache from "./PostgresCache.ts"
/**
 * @since 0.1.0
 */
export * as Publication from "./Publication.ts"
/**
 * @since 0.1.0
 */
export * as PublicationMetrics from "./PublicationMetrics.ts"
/**
 * @since 0.1.0
 */
export * as PublicationStorage from "./PublicationStorage.ts"
/**
 * @since 0.1.0
 */
export * as RedisCache from "./RedisCache.ts"
/**
 * @since 0.1.0
 */
export * as Refusal from "./Refusal.ts"
/**
 * @since 0.1.0
 */
export * as S3Cache from "./S3Cache.ts"
/**
 * @since 0.1.0
 */
export * as Signing from "./Signing.ts"
/**
 * @since 0.1.0
 */
export * as StepCache from "./StepCache.ts"
/**
 * @since 0.1.0
 */
export * as StepCacheStorage from "./StepCacheStorage.ts"
/**
 * @since 0.1.0
 */
export * as StepKey from "./StepKey.ts"
/**
 * @since 0.1.0
 */
export * as TierGuard from "./TierGuard.ts"
