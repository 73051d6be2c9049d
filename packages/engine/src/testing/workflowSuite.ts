/**
 * Contract 57: what `effect/workflow` promises of its engines, on the durable one. Parts of it have suites of their own,
 * which this one runs.
 *
 * @since 0.1.0
 */
import { describe } from "@effect/vitest"
import { workflowCases } from "./workflowCases.ts"
import { workflowEnding } from "./workflowEnding.ts"
import type { WorkflowTier } from "./workflowHarness.ts"
import { workflowKeeping } from "./workflowKeeping.ts"
import { workflowOwning } from "./workflowOwning.ts"
import { workflowRunning } from "./workflowRunning.ts"
import { workflowWaiting } from "./workflowWaiting.ts"

/**
 * Runs the contract on one tier.
 *
 * @since 0.1.0
 * @category suites
 */
export const workflowSuite = <E>(name: string, tier: WorkflowTier<E>): void => {
  describe(`WorkflowEngineSql (${name})`, () => {
    workflowRunning(tier)
    workflowWaiting(tier)
    workflowEnding(tier)
    workflowOwning(tier)
    workflowKeeping(tier)
    workflowCases(tier)
  })
}
