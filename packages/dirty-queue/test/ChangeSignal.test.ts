import { assert, describe, it } from "@effect/vitest"
import * as ChangeSignal from "@strata/dirty-queue/ChangeSignal"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"

describe("ChangeSignal", () => {
  it.effect("wakes all waiters", () =>
    Effect.gen(function* () {
      const signal = yield* ChangeSignal.make
      const seen = yield* signal.count
      const waiters = yield* Effect.forEach([1, 2, 3], () =>
        Effect.forkChild(signal.awaitAfter(seen), { startImmediately: true })
      )
      yield* signal.notify
      assert.deepStrictEqual(yield* Effect.forEach(waiters, Fiber.join), [1, 1, 1])
    })
  )

  it.effect("loses no notification between looking and waiting", () =>
    Effect.gen(function* () {
      const signal = yield* ChangeSignal.make
      const seen = yield* signal.count
      yield* signal.notify
      yield* signal.notify
      assert.strictEqual(yield* signal.awaitAfter(seen), 2)
      const waiter = yield* Effect.forkChild(signal.awaitAfter(2), { startImmediately: true })
      assert.isUndefined(waiter.pollUnsafe())
      yield* signal.notify
      assert.strictEqual(yield* Fiber.join(waiter), 3)
    })
  )

  it.effect("follows a polled number, through its failures", () =>
    Effect.gen(function* () {
      let number = 7
      let broken = false
      const signal = yield* ChangeSignal.makePoll({
        source: Effect.suspend(() => (broken ? Effect.fail("out of reach") : Effect.succeed(number))),
        interval: "100 millis"
      })
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* signal.count, 0)
      number++
      yield* TestClock.adjust("100 millis")
      assert.strictEqual(yield* signal.count, 1)
      broken = true
      number++
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* signal.count, 1)
      broken = false
      yield* TestClock.adjust("100 millis")
      assert.strictEqual(yield* signal.count, 2)
      yield* signal.notify
      assert.strictEqual(yield* signal.count, 3)
    })
  )
})
