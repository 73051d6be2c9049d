import { assert } from "@effect/vitest"
import type { DirtyQueue } from "@strata/dirty-queue/DirtyQueue"
import { Scope } from "@strata/dirty-queue/Path"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as TestClock from "effect/testing/TestClock"
import * as FollowerScheduler from "../FollowerScheduler.ts"
import * as ProcessingError from "../ProcessingError.ts"
import { makeWorld, numbered, spy, type Test } from "./world.ts"

/** How followers take turns and sleep. */
export const schedulerTests = (test: Test): void => {
  test(
    "wakes for a change, sleeps in between, and comes back for a retry",
    Effect.gen(function* () {
      const world = yield* makeWorld
      const scheduler = yield* FollowerScheduler.make()
      const follower = yield* world.follower()
      yield* scheduler.run(follower)
      yield* TestClock.adjust("1 minute")
      let failed = false
      world.bend.set("b", () => {
        if (failed) return Effect.void
        failed = true
        return Effect.fail(ProcessingError.transient("once"))
      })
      yield* world.put({ a: "1", b: "2" })
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(yield* world.indexed(), { a: "1" })
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(yield* world.indexed(), { a: "1", b: "2" })
      assert.deepStrictEqual(world.reads, ["a", "b", "b"])
    })
  )

  test(
    "Q1: a path that always fails and is always written is attempted at most twice a second",
    Effect.gen(function* () {
      const world = yield* makeWorld
      const scheduler = yield* FollowerScheduler.make()
      yield* scheduler.run(yield* world.follower())
      world.bend.set("a", () => Effect.andThen(Effect.sleep("5 millis"), Effect.fail(ProcessingError.transient("no"))))
      for (let i = 0; i < 1000; i++) {
        yield* world.put({ a: `content ${i}` })
        yield* TestClock.adjust("10 millis")
      }
      assert.isAtMost(world.reads.length, 21)
      assert.isAtLeast(world.reads.length, 5)
    })
  )

  test(
    "Q11: a scope with one path does not wait for a scope with a thousand, nor for a failing one",
    Effect.gen(function* () {
      const world = yield* makeWorld
      const order: Array<string> = []
      const follower = yield* world.follower({
        tickRows: 50,
        batchSize: 50,
        reader: {
          read: (key) => {
            if (order.at(-1) !== key.scope) order.push(key.scope)
            return key.scope === "failing" ? Effect.fail(ProcessingError.transient("no")) : world.reader.read(key)
          }
        }
      })
      for (const scope of ["big", "failing", "small"]) yield* follower.register(Scope.make(scope))
      yield* world.put(numbered(1000), "big")
      yield* world.put(numbered(1000), "failing")
      yield* world.put({ one: "1" }, "small")
      const scheduler = yield* FollowerScheduler.make()
      yield* scheduler.run(follower)
      for (let i = 0; i < 500 && Object.keys(yield* world.indexed("search", "big")).length < 1000; i++) {
        yield* TestClock.adjust("1 millis")
      }
      assert.isAtMost(order.indexOf("small"), 3)
      assert.deepStrictEqual(yield* world.indexed("search", "small"), { one: "1" })
      assert.strictEqual(Object.keys(yield* world.indexed("search", "big")).length, 1000)
    })
  )

  test(
    "Q12: what was deleted while the index was down is gone from it in the end",
    Effect.gen(function* () {
      const world = yield* makeWorld
      yield* Effect.scoped(
        Effect.gen(function* () {
          const scheduler = yield* FollowerScheduler.make()
          let down = false
          const { writer } = spy(world.writer("search"), () =>
            down ? Effect.fail(ProcessingError.busy("down")) : Effect.void
          )
          yield* scheduler.run(yield* world.follower({ writer }))
          yield* world.put({ a: "1", b: "2" })
          yield* TestClock.adjust("10 millis")
          assert.deepStrictEqual(yield* world.indexed(), { a: "1", b: "2" })
          down = true
          yield* world.remove(["a"])
          yield* TestClock.adjust("10 seconds")
          assert.deepStrictEqual(yield* world.indexed(), { a: "1", b: "2" })
        })
      )
      const scheduler = yield* FollowerScheduler.make()
      yield* scheduler.run(yield* world.follower())
      for (let i = 0; i < 20; i++) yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(yield* world.indexed(), { b: "2" })
    })
  )

  test(
    "rests between looks for a retry where its clock is an hour ahead of the store's",
    Effect.gen(function* () {
      const world = yield* makeWorld
      let looks = 0
      const queue: DirtyQueue["Service"] = {
        ...world.queue,
        nextReadyAt: (filter) =>
          Effect.map(
            world.queue.nextReadyAt(filter),
            Option.map((time) => time - 3_600_000)
          ),
        readyScopes: (options) =>
          Effect.andThen(
            Effect.sync(() => looks++),
            world.queue.readyScopes(options)
          )
      }
      const scheduler = yield* FollowerScheduler.make()
      yield* scheduler.run(yield* world.follower({ queue }))
      let failed = 0
      world.bend.set("a", () => (failed++ < 1 ? Effect.fail(ProcessingError.transient("once")) : Effect.void))
      yield* world.put({ a: "1" })
      for (let i = 0; i < 300; i++) yield* TestClock.adjust("10 millis")
      assert.deepStrictEqual(yield* world.indexed(), { a: "1" })
      assert.isAtMost(looks, 40)
    })
  )
}
