/**
 * The contract of followers as a suite that any tier of the queue and of a transactional index can run.
 *
 * @since 0.1.0
 */
import { describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import { catchUpTests } from "./testing/catchUp.ts"
import { clusterTests } from "./testing/cluster.ts"
import { followerTests } from "./testing/follower.ts"
import { rebuildTests } from "./testing/rebuild.ts"
import { schedulerTests } from "./testing/scheduler.ts"
import type { Test, Tier } from "./testing/world.ts"

export {
  /**
   * @since 0.1.0
   * @category services
   */
  TestIndex
} from "./testing/world.ts"

export type {
  /**
   * @since 0.1.0
   * @category models
   */
  Tier
} from "./testing/world.ts"

/**
 * Runs the contract on one tier. Each test builds `layer` anew over an empty store, under `TestClock`.
 *
 * @since 0.1.0
 * @category suites
 */
export const followerSuite = <E>(name: string, layer: () => Layer.Layer<Tier, E>): void => {
  const test: Test = (title, effect) => it.effect(title, () => Effect.provide(effect, layer()))
  describe(`Follower (${name})`, () => followerTests(test))
  describe(`FollowerScheduler (${name})`, () => schedulerTests(test))
  describe(`ClusterFollowers (${name})`, () => clusterTests(test))
  describe(`CatchUp (${name})`, () => catchUpTests(test))
  describe(`Rebuild (${name})`, () => rebuildTests(test))
}
