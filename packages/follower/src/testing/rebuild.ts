import { assert } from "@effect/vitest"
import { Path } from "@strata/dirty-queue/Path"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as FollowerScheduler from "../FollowerScheduler.ts"
import * as ProcessingError from "../ProcessingError.ts"
import * as Rebuild from "../Rebuild.ts"
import { deadPaths, main, makeWorld, numbered, type Test } from "./world.ts"

/** The switch from one index to another. */
export const rebuildTests = (test: Test): void => {
  test(
    "Q13: the old index serves until the new one has everything, edits made meanwhile too",
    Effect.gen(function* () {
      const world = yield* makeWorld
      let serving = "old"
      const scheduler = yield* FollowerScheduler.make()
      const old = yield* world.follower({ writer: world.writer("old") })
      yield* scheduler.run(old)
      yield* world.put(numbered(120))
      yield* TestClock.adjust("1 second")
      const next = yield* world.follower({ version: "2", scope: undefined, writer: world.writer("new") })
      yield* scheduler.run(next)
      const paths = [...world.contents.keys()].map((key) => Path.make(key.slice(main.length + 1)))
      const listed = yield* Deferred.make<void>()
      const goOn = yield* Deferred.make<void>()
      const rebuild = yield* Effect.forkChild(
        Rebuild.run({
          follower: next,
          replaces: old.name,
          scopes: [main],
          content: () =>
            Stream.concat(
              Stream.fromIterable(paths),
              Stream.drain(Stream.fromEffect(Effect.andThen(Deferred.succeed(listed, undefined), Deferred.await(goOn))))
            ),
          activate: Effect.sync(() => void (serving = "new"))
        })
      )
      yield* Deferred.await(listed)
      yield* world.put({ p0000: "edited", fresh: "created" })
      yield* world.remove(["p0001"])
      assert.strictEqual(serving, "old")
      yield* Deferred.succeed(goOn, undefined)
      for (let i = 0; i < 50; i++) yield* TestClock.adjust("100 millis")
      yield* Fiber.join(rebuild)
      assert.strictEqual(serving, "new")
      const entries = yield* world.indexed("new")
      assert.strictEqual(Object.keys(entries).length, 120)
      assert.deepStrictEqual([entries["p0000"], entries["p0001"], entries["fresh"]], ["edited", undefined, "created"])
      assert.deepStrictEqual(
        (yield* world.queue.registrations()).map((registration) => registration.follower as string),
        ["search@2"]
      )
    })
  )

  test(
    "switches nothing while paths fail, and goes on when it is run again",
    Effect.gen(function* () {
      const world = yield* makeWorld
      const scheduler = yield* FollowerScheduler.make()
      const old = yield* world.follower({ writer: world.writer("old") })
      yield* world.put({ a: "1", b: "2" })
      yield* old.drain(main)
      const next = yield* world.follower({ version: "2", scope: undefined, writer: world.writer("new") })
      yield* scheduler.run(next)
      let activated = 0
      const rebuild = Rebuild.run({
        follower: next,
        replaces: old.name,
        scopes: [main],
        content: () => Stream.fromIterable([Path.make("a"), Path.make("b")]),
        activate: Effect.sync(() => void activated++)
      })
      world.bend.set("b", () => Effect.fail(ProcessingError.poison("no")))
      const first = yield* Effect.forkChild(Effect.flip(rebuild))
      for (let i = 0; i < 20; i++) yield* TestClock.adjust("100 millis")
      const error = yield* Fiber.join(first)
      assert.strictEqual(error._tag === "NotCaughtUp" && (error.dead[0]?.path as string), "b")
      assert.strictEqual(activated, 0)
      const accepting = yield* Effect.forkChild(
        Rebuild.run({
          follower: next,
          scopes: [main],
          content: () => Stream.empty,
          activate: Effect.sync(() => void activated++),
          failures: "accept"
        })
      )
      for (let i = 0; i < 5; i++) yield* TestClock.adjust("100 millis")
      yield* Fiber.join(accepting)
      assert.strictEqual(activated, 1)
      assert.deepStrictEqual(yield* deadPaths(world.queue), ["b"])
      world.bend.delete("b")
      const second = yield* Effect.forkChild(rebuild)
      for (let i = 0; i < 20; i++) yield* TestClock.adjust("100 millis")
      yield* Fiber.join(second)
      assert.strictEqual(activated, 2)
      assert.deepStrictEqual(yield* world.indexed("new"), { a: "1", b: "2" })
    })
  )
}
