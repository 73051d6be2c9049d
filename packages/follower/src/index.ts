/**
 * @since 0.1.0
 */
export * as CatchUp from "./CatchUp.ts"
/**
 * @since 0.1.0
 */
export * as ContentReader from "./ContentReader.ts"
/**
 * @since 0.1.0
 */
export * as Follower from "./Follower.ts"
/**
 * @since 0.1.0
 */
export * as FollowerScheduler from "./FollowerScheduler.ts"
/**
 * @since 0.1.0
 */
export * as IndexWriter from "./IndexWriter.ts"
/**
 * @since 0.1.0
 */
export * as ProcessingError from "./ProcessingError.ts"
/**
 * @since 0.1.0
 */
export * as Rebuild from "./Rebuild.ts"
/**
 * @since 0.1.0
 */
export * as Tick from "./Tick.ts"
