import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import * as CatchUp from "../CatchUp.ts"
import * as ProcessingError from "../ProcessingError.ts"
import { main, makeWorld, type Test } from "./world.ts"

/** The read barrier. */
export const catchUpTests = (test: Test): void => {
  test(
    "waits for everything recorded before it, and for nothing recorded after",
    Effect.gen(function* () {
      const world = yield* makeWorld
      const follower = yield* world.follower()
      yield* world.put({ a: "1" })
      const fiber = yield* Effect.forkChild(CatchUp.awaitCaughtUp(follower))
      yield* TestClock.adjust("1 second")
      assert.isUndefined(fiber.pollUnsafe())
      yield* follower.drain(main)
      yield* world.put({ b: "2" })
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(yield* world.indexed(), { a: "1" })
    })
  )

  test(
    "still waits for a path that changed again after the barrier",
    Effect.gen(function* () {
      const world = yield* makeWorld
      const follower = yield* world.follower()
      yield* world.put({ a: "1" })
      const fiber = yield* Effect.forkChild(CatchUp.awaitCaughtUp(follower))
      yield* TestClock.adjust("10 millis")
      yield* world.put({ a: "2" })
      yield* TestClock.adjust("1 second")
      assert.isUndefined(fiber.pollUnsafe())
      yield* follower.drain(main)
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(fiber)
    })
  )

  test(
    "ends with the failing and dead paths, and with a time-out, instead of waiting for ever",
    Effect.gen(function* () {
      const world = yield* makeWorld
      const follower = yield* world.follower()
      yield* world.put({ fails: "1", dead: "2", ok: "3" })
      world.bend.set("fails", () => Effect.fail(ProcessingError.transient("later")))
      world.bend.set("dead", () => Effect.fail(ProcessingError.poison("never")))
      yield* follower.drain(main)
      const error = yield* Effect.flip(CatchUp.awaitCaughtUp(follower))
      if (error._tag !== "NotCaughtUp") return assert.fail(error._tag)
      assert.strictEqual(error.reason._tag, "PathsFailed")
      assert.deepStrictEqual(
        [error.failing, error.dead].map((list) => list.map((one) => `${one.path}: ${one.error}`)),
        [["fails: later"], ["dead: never"]]
      )
      assert.strictEqual(error.message, "The index is behind; failed: dead (never), fails (later)")
      yield* world.put({ untouched: "4" })
      const fiber = yield* Effect.forkChild(Effect.flip(CatchUp.awaitCaughtUp(follower, { timeout: "5 seconds" })))
      for (let i = 0; i < 60; i++) yield* TestClock.adjust("100 millis")
      const late = yield* Fiber.join(fiber)
      assert.strictEqual(late._tag === "NotCaughtUp" && late.reason._tag, "TimedOut")
    })
  )
}
