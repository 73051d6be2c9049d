import { assert, describe, it } from "@effect/vitest"
import * as DurableWriter from "@strata/durable/DurableWriter"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { CacheError, type CacheErrorReason, Forbidden, TooLarge, Unexpected } from "../src/CacheError.ts"
import * as TierGuard from "../src/TierGuard.ts"

const fail = (reason: CacheErrorReason) => Effect.fail(new CacheError({ reason }))

const broken = fail(new Unexpected({ tier: "t", detail: "500" }))

/** A tier whose calls and probes are counted. */
const setUp = (options?: TierGuard.TierGuardOptions) =>
  Effect.gen(function* () {
    const tier = { probes: 0, calls: 0, mood: broken as Effect.Effect<string, CacheError> }
    const probe = Effect.suspend(() => {
      tier.probes++
      return tier.mood
    })
    const guard = yield* TierGuard.make("t", probe, { openBase: "1 second", openCap: "8 seconds", ...options })
    const call = guard.run(
      Effect.suspend(() => {
        tier.calls++
        return tier.mood
      })
    )
    const reason = Effect.map(Effect.flip(call), (error) => error.reason._tag)
    const state = Effect.map(guard.state, (state) => state._tag)
    return { tier, guard, call, reason, state }
  })

describe("TierGuard", () => {
  it.effect("leaves a tier alone after failures in a row, and one probe finds out when it is back", () =>
    Effect.gen(function* () {
      const { call, reason, state, tier } = yield* setUp({ failures: 3 })
      for (let i = 0; i < 3; i++) assert.strictEqual(yield* reason, "Unexpected")
      assert.strictEqual(yield* state, "Open")
      for (let i = 0; i < 10; i++) assert.strictEqual(yield* reason, "BreakerOpen")
      assert.strictEqual(tier.calls, 3)
      // The probe fails, and the tier is left alone for twice as long.
      yield* TestClock.adjust("1 second")
      assert.deepInclude(tier, { calls: 3, probes: 1 })
      assert.strictEqual(yield* reason, "BreakerOpen")
      yield* TestClock.adjust("1900 millis")
      assert.strictEqual(tier.probes, 1)
      tier.mood = Effect.succeed("here")
      yield* TestClock.adjust("100 millis")
      assert.deepInclude(tier, { calls: 3, probes: 2 })
      assert.strictEqual(yield* state, "Closed")
      assert.strictEqual(yield* call, "here")
    })
  )

  it.effect("asks no more often than at the cap, however long it lasts", () =>
    Effect.gen(function* () {
      const { reason, tier } = yield* setUp({ failures: 1 })
      yield* reason
      for (let i = 0; i < 10; i++) yield* TestClock.adjust("100 seconds")
      assert.isAtMost(tier.probes, 1000 / 8 + 4)
      assert.isAtLeast(tier.probes, 100)
    })
  )

  it.effect("a caller does not wait while a probe is under way", () =>
    Effect.gen(function* () {
      const { reason, state, tier } = yield* setUp({ failures: 1 })
      yield* reason
      tier.mood = Effect.never
      yield* TestClock.adjust("1 second")
      assert.strictEqual(tier.probes, 1)
      assert.strictEqual(yield* state, "HalfOpen")
      assert.strictEqual(yield* reason, "BreakerOpen")
      assert.deepInclude(tier, { calls: 1, probes: 1 })
    })
  )

  it.effect("one refusal of access is enough (C7)", () =>
    Effect.gen(function* () {
      const { reason, tier } = yield* setUp()
      tier.mood = fail(new Forbidden({ tier: "t", status: 403 }))
      assert.strictEqual(yield* reason, "Forbidden")
      for (let i = 0; i < 10; i++) assert.strictEqual(yield* reason, "BreakerOpen")
      assert.strictEqual(tier.calls, 1)
    })
  )

  it.effect("a tier that says what it cannot do is well", () =>
    Effect.gen(function* () {
      const { reason, state, tier } = yield* setUp({ failures: 2 })
      tier.mood = fail(new TooLarge({ tier: "t", size: 10, limit: 5 }))
      for (let i = 0; i < 10; i++) assert.strictEqual(yield* reason, "TooLarge")
      assert.strictEqual(yield* state, "Closed")
    })
  )

  it.effect("a call ends at its deadline, which counts as a failure", () =>
    Effect.gen(function* () {
      const { reason, tier } = yield* setUp({ failures: 1, deadline: "3 seconds" })
      tier.mood = Effect.never
      const fiber = yield* Effect.forkChild(reason)
      yield* TestClock.adjust("2999 millis")
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      assert.strictEqual(yield* Fiber.join(fiber), "TimedOut")
      assert.strictEqual(yield* reason, "BreakerOpen")
    })
  )

  it.effect("no more calls than allowed are under way, and what waits does not reach a tier that was given up", () =>
    Effect.gen(function* () {
      const { reason, tier } = yield* setUp({ failures: 1, concurrency: 2, deadline: "1 second" })
      tier.mood = Effect.never
      const fibers = yield* Effect.forEach([1, 2, 3, 4, 5], () => Effect.forkChild(reason))
      yield* TestClock.adjust("500 millis")
      assert.strictEqual(tier.calls, 2)
      yield* TestClock.adjust("500 millis")
      const reasons = yield* Effect.forEach(fibers, Fiber.join)
      assert.deepStrictEqual(reasons, ["TimedOut", "TimedOut", "BreakerOpen", "BreakerOpen", "BreakerOpen"])
      assert.strictEqual(tier.calls, 2)
    })
  )

  it.effect("the time that a call waits for others is part of its deadline, and is no failure of the tier", () =>
    Effect.gen(function* () {
      const { guard } = yield* setUp({ failures: 1, concurrency: 1, deadline: "3 seconds" })
      const first = yield* Effect.forkChild(
        guard.run(Effect.delay(Effect.succeed("first"), "4 seconds"), { deadline: "5 seconds" })
      )
      const second = yield* Effect.forkChild(Effect.flip(guard.run(Effect.succeed("second"))))
      const third = yield* Effect.forkChild(
        Effect.flip(guard.run(Effect.delay(Effect.succeed("third"), "2 seconds"), { deadline: "5 seconds" }))
      )
      yield* TestClock.adjust("3 seconds")
      assert.strictEqual((yield* Fiber.join(second)).reason._tag, "TimedOut")
      assert.strictEqual((yield* guard.state)._tag, "Closed")
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(yield* Fiber.join(first), "first")
      assert.strictEqual((yield* Fiber.join(third)).reason._tag, "TimedOut")
    })
  )

  it.effect("nothing is asked of a tier from inside of a write", () =>
    Effect.gen(function* () {
      const { call, reason, state, tier } = yield* setUp({ failures: 1 })
      const writer = yield* DurableWriter.DurableWriter
      assert.strictEqual(yield* writer.write(reason), "InsideWrite")
      assert.strictEqual(tier.calls, 0)
      assert.strictEqual(yield* state, "Closed")
      tier.mood = Effect.succeed("ok")
      assert.strictEqual(yield* call, "ok")
      // A fiber that has outlived the write in which it was forked is outside of it.
      const ended = yield* Deferred.make<void>()
      const forked = yield* writer.write(Effect.forkDetach(Effect.andThen(Deferred.await(ended), call)))
      yield* Deferred.succeed(ended, undefined)
      assert.strictEqual(yield* Fiber.join(forked), "ok")
    }).pipe(Effect.provide(DurableWriter.layerMemory()))
  )
})
