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
export * as Artifacts from "./Artifacts.ts"
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
export * as StepKeys from "./StepKeys.ts"
