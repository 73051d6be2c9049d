/**
 * The contracts of clocks, deferreds and their fold, 52 to 56, as suites that any tier can run: whoever brings a
 * `ClockStorage` and a `DeferredStorage` can prove them.
 *
 * @since 0.1.0
 */
export {
  /**
   * @since 0.1.0
   * @category suites
   */
  clockStoreSuite
} from "./testing/clockStoreSuite.ts"
export {
  /**
   * @since 0.1.0
   * @category suites
   */
  deferredClockFoldSuite
} from "./testing/deferredClockFoldSuite.ts"
export {
  /**
   * @since 0.1.0
   * @category suites
   */
  deferredStoreSuite
} from "./testing/deferredStoreSuite.ts"
export {
  /**
   * @since 0.1.0
   * @category suites
   */
  retentionSuite
} from "./testing/retentionSuite.ts"
export {
  /**
   * @since 0.1.0
   * @category suites
   */
  runHistorySuite
} from "./testing/runHistorySuite.ts"
export type {
  /**
   * @since 0.1.0
   * @category models
   */
  Storages,
  /**
   * @since 0.1.0
   * @category models
   */
  Tier
} from "./testing/harness.ts"
export type {
  /**
   * @since 0.1.0
   * @category models
   */
  Stores,
  /**
   * @since 0.1.0
   * @category models
   */
  WorkflowTier
} from "./testing/workflowHarness.ts"
export {
  /**
   * @since 0.1.0
   * @category suites
   */
  workflowSuite
} from "./testing/workflowSuite.ts"
