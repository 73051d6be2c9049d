/**
 * @since 0.1.0
 */
export * as Changelog from "./Changelog.ts"
/**
 * @since 0.1.0
 */
export * as ChangelogError from "./ChangelogError.ts"
/**
 * @since 0.1.0
 */
export * as ChangelogStorage from "./ChangelogStorage.ts"
/**
 * @since 0.1.0
 */
export * as ChangeSignal from "./ChangeSignal.ts"
/**
 * @since 0.1.0
 */
export * as DirtyQueue from "./DirtyQueue.ts"
/**
 * @since 0.1.0
 */
export * as DirtyQueueError from "./DirtyQueueError.ts"
/**
 * @since 0.1.0
 */
export * as DirtyQueueStorage from "./DirtyQueueStorage.ts"
/**
 * @since 0.1.0
 */
export * as DirtyRow from "./DirtyRow.ts"
/**
 * @since 0.1.0
 */
export * as MemoryStore from "./MemoryStore.ts"
/**
 * @since 0.1.0
 */
export * as Metrics from "./Metrics.ts"
/**
 * @since 0.1.0
 */
export * as Path from "./Path.ts"
/**
 * @since 0.1.0
 */
export * as Prefix from "./Prefix.ts"
/**
 * @since 0.1.0
 */
export * as Transition from "./Transition.ts"
