/**
 * The contracts of the cache as suites: whoever brings a tier can prove it.
 *
 * @since 0.1.0
 */
export {
  /**
   * @since 0.1.0
   * @category suites
   */
  arbitrationSuite
} from "./testing/arbitrationSuite.ts"
export {
  /**
   * @since 0.1.0
   * @category suites
   */
  artifactStoreSuite
} from "./testing/artifactStoreSuite.ts"
export {
  /**
   * @since 0.1.0
   * @category suites
   */
  localStepCacheSuite
} from "./testing/localStepCacheSuite.ts"
export {
  /**
   * @since 0.1.0
   * @category suites
   */
  stepCacheSuite
} from "./testing/stepCacheSuite.ts"
export {
  /**
   * @since 0.1.0
   * @category suites
   */
  cacheTableSuite
} from "./testing/cacheTableSuite.ts"
export {
  /**
   * @since 0.1.0
   * @category suites
   */
  collectorSuite
} from "./testing/collectorSuite.ts"
export {
  /**
   * @since 0.1.0
   * @category suites
   */
  twoMachinesSuite
} from "./testing/twoMachinesSuite.ts"
