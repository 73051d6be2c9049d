/**
 * The contracts of `Changelog` and `DirtyQueue` as suites that any tier can run, beside the lockstep driver in
 * `@strata/dirty-queue/testing/lockstep`.
 *
 * @since 0.1.0
 */
import { claimSuite } from "./testing/claimSuite.ts"
import type { Tier, UnjoinedTier } from "./testing/fixture.ts"
import { orderSuite } from "./testing/orderSuite.ts"
import { registrationSuite } from "./testing/registrationSuite.ts"
import { retrySuite } from "./testing/retrySuite.ts"

export {
  /**
   * What tiers without transactions provide in place of `Changelog`.
   *
   * @since 0.1.0
   * @category services
   */
  Recorder
} from "./testing/fixture.ts"

export {
  /**
   * @since 0.1.0
   * @category suites
   */
  changelogSuite
} from "./testing/changelogSuite.ts"

export type {
  /**
   * @since 0.1.0
   * @category models
   */
  Services,
  /**
   * @since 0.1.0
   * @category models
   */
  Tier,
  /**
   * @since 0.1.0
   * @category models
   */
  Unjoined,
  /**
   * @since 0.1.0
   * @category models
   */
  UnjoinedTier
} from "./testing/fixture.ts"

/**
 * Runs the contract of `DirtyQueue` on one tier. Each test builds the layer anew.
 *
 * @since 0.1.0
 * @category suites
 */
export const dirtyQueueSuite = <E>(name: string, tier: Tier<E> | UnjoinedTier<E>): void => {
  registrationSuite(name, tier)
  claimSuite(name, tier)
  retrySuite(name, tier)
  orderSuite(name, tier)
}
