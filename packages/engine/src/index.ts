/**
 * @since 0.1.0
 */
export * as Action from "./Action.ts"
/**
 * @since 0.1.0
 */
export * as ActionError from "./ActionError.ts"
/**
 * @since 0.1.0
 */
export * as ActionEvents from "./ActionEvents.ts"
/**
 * @since 0.1.0
 */
export * as ActivityCache from "./ActivityCache.ts"
/**
 * @since 0.1.0
 */
export * as Artifacts from "./Artifacts.ts"
/**
 * @since 0.1.0
 */
export * as ClockDriver from "./ClockDriver.ts"
/**
 * @since 0.1.0
 */
export * as ClockMetrics from "./ClockMetrics.ts"
/**
 * @since 0.1.0
 */
export * as ClockStorage from "./ClockStorage.ts"
/**
 * @since 0.1.0
 */
export * as ClockStore from "./ClockStore.ts"
/**
 * @since 0.1.0
 */
export * as DeferredClockFold from "./DeferredClockFold.ts"
/**
 * @since 0.1.0
 */
export * as DeferredStorage from "./DeferredStorage.ts"
/**
 * @since 0.1.0
 */
export * as DeferredStore from "./DeferredStore.ts"
/**
 * @since 0.1.0
 */
export * as FoldIncomplete from "./FoldIncomplete.ts"
/**
 * @since 0.1.0
 */
export * as Metrics from "./Metrics.ts"
/**
 * @since 0.1.0
 */
export * as Recorder from "./Recorder.ts"
/**
 * @since 0.1.0
 */
export * as Retention from "./Retention.ts"
/**
 * @since 0.1.0
 */
export * as RetentionMetrics from "./RetentionMetrics.ts"
/**
 * @since 0.1.0
 */
export * as RunEvents from "./RunEvents.ts"
/**
 * @since 0.1.0
 */
export * as RunHistory from "./RunHistory.ts"
/**
 * @since 0.1.0
 */
export * as RunHistoryError from "./RunHistoryError.ts"
/**
 * @since 0.1.0
 */
export * as RunStore from "./RunStore.ts"
/**
 * @since 0.1.0
 */
export * as RunStream from "./RunStream.ts"
/**
 * @since 0.1.0
 */
export * as StateError from "./StateError.ts"
/**
 * @since 0.1.0
 */
export * as StateEvents from "./StateEvents.ts"
/**
 * @since 0.1.0
 */
export * as StepKeys from "./StepKeys.ts"
/**
 * @since 0.1.0
 */
export * as WorkflowEngineSql from "./WorkflowEngineSql.ts"
/**
 * @since 0.1.0
 */
export * as WorkflowError from "./WorkflowError.ts"
