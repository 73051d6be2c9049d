import { assert, describe, it } from "@effect/vitest"
import { DirtyQueue } from "@strata/dirty-queue/DirtyQueue"
import * as Metrics from "@strata/dirty-queue/Metrics"
import { ack, claim, fail, putAll, register, search } from "@strata/dirty-queue/testing/fixture"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as TestClock from "effect/testing/TestClock"
import * as Tiers from "./tiers.ts"

describe("Metrics", () => {
  it.effect("tell how deep the queue is, and what becomes of claims", () =>
    Effect.gen(function* () {
      const queue = yield* DirtyQueue
      const follower = { follower: search }
      const rows = (state: string) =>
        Effect.map(Metric.value(Metric.withAttributes(Metrics.depth, { ...follower, state })), ({ value }) => value)
      const answers = (operation: string, answer: string) =>
        Effect.map(Metric.value(Metric.withAttributes(Metrics.answers, { operation, answer })), ({ count }) => count)

      yield* register()
      yield* putAll("a", "b", "c", "d")
      yield* TestClock.adjust(700)
      const [a, b, c] = yield* claim(3)
      yield* putAll("b")
      yield* ack(a!, b!)
      yield* queue.fail([{ claim: c!, error: "no", kind: "dead" }])
      yield* fail(c!)
      yield* queue.stats()

      assert.strictEqual((yield* Metric.value(Metric.withAttributes(Metrics.claims, follower))).count, 3)
      assert.strictEqual((yield* Metric.value(Metric.withAttributes(Metrics.lag, follower))).max, 700)
      assert.strictEqual(yield* answers("ack", "Done"), 1)
      assert.strictEqual(yield* answers("ack", "Superseded"), 1)
      assert.strictEqual(yield* answers("fail", "Lost"), 1)
      assert.strictEqual((yield* Metric.value(Metrics.deadLetters)).count, 1)
      assert.strictEqual(yield* rows("ready"), 2)
      assert.strictEqual(yield* rows("dead"), 1)
      assert.strictEqual((yield* Metric.value(Metric.withAttributes(Metrics.oldestAge, follower))).value, 700)
    }).pipe(Effect.provide(Tiers.memory()), Effect.provideService(Metric.MetricRegistry, new Map()))
  )
})
