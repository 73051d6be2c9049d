/**
 * The contracts of the journal, 11 to 17, as a suite that any tier can run: whoever brings a `JournalStorage` can prove
 * it.
 *
 * @since 0.1.0
 */
import { describe } from "@effect/vitest"
import { appending } from "./testing/appending.ts"
import { compacting } from "./testing/compacting.ts"
import { folding } from "./testing/folding.ts"
import { following } from "./testing/following.ts"
import type { Tier } from "./testing/harness.ts"
import { redacting } from "./testing/redacting.ts"
import { removing } from "./testing/removing.ts"
import { rewinding } from "./testing/rewinding.ts"

/**
 * Runs the contracts on one tier. Each test builds its layer anew.
 *
 * @since 0.1.0
 * @category suites
 */
export const journalSuite = <E>(name: string, tier: Tier<E>): void => {
  describe(`Journal (${name})`, () => {
    appending(tier)
    following(tier)
    compacting(tier)
    removing(tier)
    rewinding(tier)
    redacting(tier)
    folding(tier)
  })
}
