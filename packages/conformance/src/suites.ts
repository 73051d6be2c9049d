/**
 * The contracts of all tags, as suites for vitest that any tier can run.
 *
 * @since 0.1.0
 */
export {
  /**
   * `ArtifactStore`: 39.
   *
   * @since 0.1.0
   * @category suites
   */
  artifactStoreSuite,
  /**
   * `CacheTable` on a `StepCacheStorage`: the table is what the journal says.
   *
   * @since 0.1.0
   * @category suites
   */
  cacheTableSuite,
  /**
   * `Collector` on a `StepCacheStorage`: 47.
   *
   * @since 0.1.0
   * @category suites
   */
  collectorSuite,
  /**
   * `StepCacheStorage`: what only local step caches promise.
   *
   * @since 0.1.0
   * @category suites
   */
  localStepCacheSuite,
  /**
   * `StepCache`, local or shared: 36 to 38.
   *
   * @since 0.1.0
   * @category suites
   */
  stepCacheSuite
} from "@strata/cache/testing"
export {
  /**
   * `Changelog`: 18 and 25.
   *
   * @since 0.1.0
   * @category suites
   */
  changelogSuite,
  /**
   * `DirtyQueue`: 18 to 27.
   *
   * @since 0.1.0
   * @category suites
   */
  dirtyQueueSuite
} from "@strata/dirty-queue/testing"
export {
  /**
   * What a `DurableWriter` has to bring to be tested: numbers by name.
   *
   * @since 0.1.0
   * @category services
   */
  Cells,
  /**
   * `DurableWriter`: 1 to 9.
   *
   * @since 0.1.0
   * @category suites
   */
  durableWriterSuite
} from "@strata/durable/testing"
export {
  /**
   * `ClockStorage`: 52 to 54.
   *
   * @since 0.1.0
   * @category suites
   */
  clockStoreSuite,
  /**
   * `DeferredClockFold` over a `ClockStorage` and a `DeferredStorage`: 54 to 56.
   *
   * @since 0.1.0
   * @category suites
   */
  deferredClockFoldSuite,
  /**
   * `DeferredStorage`: 52 and 54.
   *
   * @since 0.1.0
   * @category suites
   */
  deferredStoreSuite,
  /**
   * Retention over the storages of a tier.
   *
   * @since 0.1.0
   * @category suites
   */
  retentionSuite,
  /**
   * `RunHistory` over the stores of a tier.
   *
   * @since 0.1.0
   * @category suites
   */
  runHistorySuite,
  /**
   * `WorkflowEngineSql` over the stores of a tier: 57.
   *
   * @since 0.1.0
   * @category suites
   */
  workflowSuite
} from "@strata/engine/testing"
export {
  /**
   * Followers over a queue and a transactional index: 28 to 35.
   *
   * @since 0.1.0
   * @category suites
   */
  followerSuite,
  /**
   * What an index has to bring to be tested.
   *
   * @since 0.1.0
   * @category services
   */
  TestIndex
} from "@strata/follower/testing"
export {
  /**
   * `JournalStorage`: 11 to 17.
   *
   * @since 0.1.0
   * @category suites
   */
  journalSuite
} from "@strata/journal/testing"
