/**
 * @since 0.1.0
 */
export * as ArtifactStore from "@strata/cache/ArtifactStore"
/**
 * @since 0.1.0
 */
export * as Cache from "@strata/cache/Cache"
/**
 * @since 0.1.0
 */
export * as CacheSync from "@strata/cache/CacheSync"
/**
 * @since 0.1.0
 */
export * as HttpCache from "@strata/cache/HttpCache"
/**
 * @since 0.1.0
 */
export * as PostgresCache from "@strata/cache/PostgresCache"
/**
 * @since 0.1.0
 */
export * as Publication from "@strata/cache/Publication"
/**
 * @since 0.1.0
 */
export * as RedisCache from "@strata/cache/RedisCache"
/**
 * @since 0.1.0
 */
export * as S3Cache from "@strata/cache/S3Cache"
/**
 * @since 0.1.0
 */
export * as StepCache from "@strata/cache/StepCache"
/**
 * @since 0.1.0
 */
export * as ChangeSignal from "@strata/dirty-queue/ChangeSignal"
/**
 * @since 0.1.0
 */
export * as Changelog from "@strata/dirty-queue/Changelog"
/**
 * @since 0.1.0
 */
export * as DirtyQueue from "@strata/dirty-queue/DirtyQueue"
/**
 * @since 0.1.0
 */
export * as Path from "@strata/dirty-queue/Path"
/**
 * @since 0.1.0
 */
export * as Prefix from "@strata/dirty-queue/Prefix"
/**
 * @since 0.1.0
 */
export * as Digest from "@strata/durable/Digest"
/**
 * @since 0.1.0
 */
export * as DurableWriter from "@strata/durable/DurableWriter"
/**
 * @since 0.1.0
 */
export * as Action from "@strata/engine/Action"
/**
 * @since 0.1.0
 */
export * as ActivityCache from "@strata/engine/ActivityCache"
/**
 * @since 0.1.0
 */
export * as Artifacts from "@strata/engine/Artifacts"
/**
 * @since 0.1.0
 */
export * as Retention from "@strata/engine/Retention"
/**
 * @since 0.1.0
 */
export * as RunHistory from "@strata/engine/RunHistory"
/**
 * @since 0.1.0
 */
export * as StepKeys from "@strata/engine/StepKeys"
/**
 * @since 0.1.0
 */
export * as WorkflowEngineSql from "@strata/engine/WorkflowEngineSql"
/**
 * @since 0.1.0
 */
export * as CatchUp from "@strata/follower/CatchUp"
/**
 * @since 0.1.0
 */
export * as ContentReader from "@strata/follower/ContentReader"
/**
 * @since 0.1.0
 */
export * as Follower from "@strata/follower/Follower"
/**
 * @since 0.1.0
 */
export * as FollowerScheduler from "@strata/follower/FollowerScheduler"
/**
 * @since 0.1.0
 */
export * as IndexWriter from "@strata/follower/IndexWriter"
/**
 * @since 0.1.0
 */
export * as ProcessingError from "@strata/follower/ProcessingError"
/**
 * @since 0.1.0
 */
export * as Rebuild from "@strata/follower/Rebuild"
/**
 * @since 0.1.0
 */
export * as Compaction from "@strata/journal/Compaction"
/**
 * @since 0.1.0
 */
export * as Event from "@strata/journal/Event"
/**
 * @since 0.1.0
 */
export * as Fold from "@strata/journal/Fold"
/**
 * @since 0.1.0
 */
export * as Folds from "@strata/journal/Folds"
/**
 * @since 0.1.0
 */
export * as Journal from "@strata/journal/Journal"
/**
 * @since 0.1.0
 */
export * as Projections from "@strata/journal/Projections"
/**
 * @since 0.1.0
 */
export * as Redaction from "@strata/journal/Redaction"
/**
 * @since 0.1.0
 */
export * as StreamName from "@strata/journal/StreamName"
/**
 * @since 0.1.0
 */
export * as SqliteClient from "@strata/sqlite/SqliteClient"
/**
 * @since 0.1.0
 */
export * as PostgresClient from "./PostgresClient.ts"
/**
 * @since 0.1.0
 */
export * as Strata from "./Strata.ts"
