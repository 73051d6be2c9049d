/**
 * The contracts of `Changelog` and `DirtyQueue` as suites that any tier can run, beside the lockstep driver in
 * `@strata/dirty-queue/testing/lockstep`.
 *
 * @since 0.1.0
 */
import { claimSuite } from "./testing/claimSuite.ts"
import type { Tier } from "./testing/fixture.ts"
import { orderSuite } from "./testing/orderSuite.ts"
import { registrationSuite } from "./testing/registrationSuite.ts"
import { retrySuite } from "./testing/retrySuite.ts"

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
  Tier
} from "./testing/fixture.ts"

/**
 * Runs the contract of `DirtyQueue` on one tier. Each test builds the layer anew.
 *
 * @since 0.1.0
 * @category suites
 */
export const dirtyQueueSuite = <E>(name: string, tier: Tier<E>): void => {
  registrationSuite(name, tier)
  claimSuite(name, tier)
  retrySuite(name, tier)
  orderSuite(name, tier)
}
