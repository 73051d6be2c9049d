/**
 * @since 0.1.0
 */
export * as Checkpoint from "./Checkpoint.ts"
/**
 * @since 0.1.0
 */
export * as Compaction from "./Compaction.ts"
/**
 * @since 0.1.0
 */
export * as Event from "./Event.ts"
/**
 * @since 0.1.0
 */
export * as Fold from "./Fold.ts"
/**
 * @since 0.1.0
 */
export * as Folds from "./Folds.ts"
/**
 * @since 0.1.0
 */
export * as Journal from "./Journal.ts"
/**
 * @since 0.1.0
 */
export * as JournalError from "./JournalError.ts"
/**
 * @since 0.1.0
 */
export * as JournalStorage from "./JournalStorage.ts"
/**
 * @since 0.1.0
 */
export * as Metrics from "./Metrics.ts"
/**
 * @since 0.1.0
 */
export * as Projections from "./Projections.ts"
/**
 * @since 0.1.0
 */
export * as Redaction from "./Redaction.ts"
/**
 * @since 0.1.0
 */
export * as Rewind from "./Rewind.ts"
/**
 * @since 0.1.0
 */
export * as StreamName from "./StreamName.ts"
