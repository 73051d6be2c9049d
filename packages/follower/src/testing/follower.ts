import { assert } from "@effect/vitest"
import type { DurableWriter } from "@strata/durable/DurableWriter"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import * as ProcessingError from "../ProcessingError.ts"
import { deadPaths, external, main, makeWorld, numbered, spy, type Test } from "./world.ts"

/** What a follower does in one tick. */
export const followerTests = (test: Test): void => {
  test(
    "indexes current content, removes what is missing, and says what a tick came to",
    Effect.gen(function* () {
      const world = yield* makeWorld
      const follower = yield* world.follower()
      yield* world.put({ a: "one", b: "two", c: "three" })
      yield* world.put({ b: "two, again" })
      assert.deepStrictEqual(yield* follower.drain(main), {
        scanned: 3,
        processed: 3,
        noop: 0,
        failed: 0,
        advanced: true,
        hasMore: false
      })
      yield* world.remove(["a", "never"])
      const tick = yield* follower.drain(main)
      assert.deepStrictEqual([tick.scanned, tick.processed, tick.noop], [2, 0, 2])
      assert.deepStrictEqual(yield* world.indexed(), { b: "two, again", c: "three" })
      assert.deepStrictEqual(yield* follower.drain(main), {
        scanned: 0,
        processed: 0,
        noop: 0,
        failed: 0,
        advanced: false,
        hasMore: false
      })
    })
  )

  test(
    "Q3: a write between the read and the acknowledgement is what the index ends with",
    Effect.gen(function* () {
      const world = yield* makeWorld
      const follower = yield* world.follower()
      yield* world.put({ a: "v1" })
      let once = true
      world.bend.set("a", () => {
        if (!once) return Effect.void
        once = false
        return Effect.ignore(Effect.provideContext(world.put({ a: "v2" }), context))
      })
      const context = yield* Effect.context<DurableWriter>()
      assert.isTrue((yield* follower.drain(main)).advanced)
      yield* follower.drain(main)
      assert.deepStrictEqual(yield* world.indexed(), { a: "v2" })
      assert.deepStrictEqual(yield* world.queue.pending(), [])
    })
  )

  test(
    "Q5: two paths with the same content in one batch are both indexed",
    Effect.gen(function* () {
      const world = yield* makeWorld
      const follower = yield* world.follower()
      yield* world.put({ a: "same", b: "same" })
      assert.strictEqual((yield* follower.drain(main)).processed, 2)
      assert.deepStrictEqual(yield* world.indexed(), { a: "same", b: "same" })
      assert.deepStrictEqual(yield* world.queue.pending(), [])
    })
  )

  test(
    "ends a tick at its budget of rows and of time, and says that there is more",
    Effect.gen(function* () {
      const world = yield* makeWorld
      const rows = yield* world.follower({ tickRows: 25, batchSize: 10 })
      yield* world.put(numbered(60))
      const first = yield* rows.drain(main)
      assert.deepStrictEqual([first.scanned, first.hasMore], [25, true])
      const slow = yield* world.follower({ tickTime: "100 millis", batchSize: 5, concurrency: 5 })
      for (const path of Object.keys(numbered(60))) world.bend.set(path, () => Effect.sleep("60 millis"))
      const fiber = yield* Effect.forkChild(slow.drain(main))
      yield* TestClock.adjust("1 second")
      const second = yield* Fiber.join(fiber)
      assert.deepStrictEqual([second.scanned, second.hasMore], [10, true])
    })
  )

  test(
    "acknowledges unchanged content without a write",
    Effect.gen(function* () {
      const world = yield* makeWorld
      const { batches, writer } = spy(world.writer("search"))
      const follower = yield* world.follower({ writer })
      yield* world.put({ a: "one" })
      yield* follower.drain(main)
      yield* world.put({ a: "one" })
      const tick = yield* follower.drain(main)
      assert.deepStrictEqual([tick.scanned, tick.processed, tick.noop, tick.advanced], [1, 0, 1, true])
      assert.strictEqual(batches.length, 1)
      assert.deepStrictEqual(yield* world.queue.pending(), [])
    })
  )

  test(
    "commits index and acknowledgement together, or neither",
    Effect.gen(function* () {
      const world = yield* makeWorld
      let broken = true
      const { writer } = spy(world.writer("search"), () => (broken ? Effect.die("power cut") : Effect.void))
      const follower = yield* world.follower({ writer })
      yield* world.put({ a: "one" })
      assert.isTrue(Exit.isFailure(yield* Effect.exit(follower.drain(main))))
      assert.deepStrictEqual(yield* world.indexed(), {})
      broken = false
      assert.strictEqual((yield* follower.drain(main)).processed, 1)
      assert.deepStrictEqual(yield* world.indexed(), { a: "one" })
    })
  )

  test(
    "writes nothing for a claim that has passed to another worker",
    Effect.gen(function* () {
      const world = yield* makeWorld
      const follower = yield* world.follower({ lease: "1 second" })
      const other = yield* world.follower()
      yield* world.put({ a: "old" })
      const reached = yield* Deferred.make<void>()
      const go = yield* Deferred.make<void>()
      let first = true
      world.bend.set("a", () => {
        if (!first) return Effect.void
        first = false
        return Effect.andThen(Deferred.succeed(reached, undefined), Deferred.await(go))
      })
      const fiber = yield* Effect.forkChild(follower.drain(main))
      yield* Deferred.await(reached)
      yield* world.queue.newEpoch
      yield* world.put({ a: "new" })
      yield* other.drain(main)
      yield* Deferred.succeed(go, undefined)
      const late = yield* Fiber.join(fiber)
      assert.deepStrictEqual([late.processed, late.advanced], [0, false])
      assert.deepStrictEqual(yield* world.indexed(), { a: "new" })
    })
  )

  test(
    "keeps the lease of work that takes longer than it",
    Effect.gen(function* () {
      const world = yield* makeWorld
      const follower = yield* world.follower({ lease: "1 second" })
      const other = yield* world.follower()
      yield* world.put({ a: "slow" })
      world.bend.set("a", () => Effect.sleep("5 seconds"))
      const fiber = yield* Effect.forkChild(follower.drain(main))
      for (let i = 0; i < 14; i++) {
        yield* TestClock.adjust("333 millis")
        assert.strictEqual((yield* other.drain(main)).scanned, 0)
      }
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* Fiber.join(fiber)).processed, 1)
    })
  )

  test(
    "gives claimed paths back at once when it is interrupted",
    Effect.gen(function* () {
      const world = yield* makeWorld
      const follower = yield* world.follower()
      yield* world.put({ a: "one" })
      const reached = yield* Deferred.make<void>()
      world.bend.set("a", () => Effect.andThen(Deferred.succeed(reached, undefined), Effect.never))
      const fiber = yield* Effect.forkChild(follower.drain(main))
      yield* Deferred.await(reached)
      yield* Fiber.interrupt(fiber)
      const [row] = yield* world.queue.pending()
      assert.deepStrictEqual([row?.state, row?.attempts], ["ready", 0])
    })
  )

  test(
    "an idempotent index gets the same key when the same change comes again",
    Effect.gen(function* () {
      const world = yield* makeWorld
      const { entries, keys, writer } = external()
      let crash = true
      const follower = yield* world.follower({
        writer: {
          ...writer,
          write: (batch) =>
            Effect.andThen(writer.write(batch), crash ? Effect.die("killed after the write") : Effect.void)
        }
      })
      yield* world.put({ a: "one" })
      yield* Effect.exit(follower.drain(main))
      crash = false
      yield* follower.drain(main)
      yield* world.put({ a: "two" })
      yield* follower.drain(main)
      assert.strictEqual(entries.get("a"), "two")
      assert.strictEqual(keys.length, 3)
      assert.strictEqual(new Set(keys).size, 2)
      assert.strictEqual(keys[0], keys[1])
    })
  )

  test(
    "retries transient failures with delays, sets poison aside, and removes what is gone",
    Effect.gen(function* () {
      const world = yield* makeWorld
      const follower = yield* world.follower()
      yield* world.put({ ok: "1", poison: "2", gone: "3", transient: "4" })
      yield* follower.drain(main)
      yield* world.put({ ok: "5", poison: "6", gone: "7", transient: "8" })
      let failures = 0
      world.bend.set("poison", () => Effect.fail(ProcessingError.poison("cannot be read")))
      world.bend.set("gone", () => Effect.fail(ProcessingError.gone("deleted meanwhile")))
      world.bend.set("transient", () =>
        ++failures < 3 ? Effect.fail(ProcessingError.transient("not yet")) : Effect.void
      )
      const tick = yield* follower.drain(main)
      assert.deepStrictEqual([tick.scanned, tick.processed, tick.noop, tick.failed], [4, 1, 1, 2])
      assert.deepStrictEqual(yield* deadPaths(world.queue), ["poison"])
      assert.deepStrictEqual(yield* world.indexed(), { ok: "5", poison: "2", transient: "4" })
      const [failing] = yield* world.queue.failing()
      assert.deepStrictEqual([failing?.path as string, failing?.lastError], ["transient", "not yet"])
      const idle = yield* follower.drain(main)
      assert.deepStrictEqual([idle.scanned, idle.hasMore], [0, false])
      for (let i = 0; i < 10; i++) {
        yield* TestClock.adjust("1 second")
        yield* follower.drain(main)
      }
      assert.strictEqual(failures, 3)
      assert.strictEqual((yield* world.indexed())["transient"], "8")
      world.bend.delete("poison")
      yield* world.queue.revive()
      yield* follower.drain(main)
      assert.strictEqual((yield* world.indexed())["poison"], "6")
    })
  )

  test(
    "a reader that dies fails that path alone",
    Effect.gen(function* () {
      const world = yield* makeWorld
      const follower = yield* world.follower()
      yield* world.put({ a: "1", b: "2" })
      world.bend.set("a", () => Effect.die(new Error("bug")))
      const tick = yield* follower.drain(main)
      assert.deepStrictEqual([tick.processed, tick.failed], [1, 1])
      assert.deepStrictEqual(yield* world.indexed(), { b: "2" })
    })
  )

  test(
    "finds the one path that an index refuses in a batch",
    Effect.gen(function* () {
      const world = yield* makeWorld
      const { writer } = spy(world.writer("search"), (batch) =>
        batch.upserts.some((upsert) => upsert.path === "p0013")
          ? Effect.fail(ProcessingError.poison("refused"))
          : Effect.void
      )
      const follower = yield* world.follower({ writer })
      yield* world.put(numbered(40))
      const tick = yield* follower.drain(main)
      assert.deepStrictEqual([tick.scanned, tick.processed, tick.failed], [40, 39, 1])
      assert.deepStrictEqual(yield* deadPaths(world.queue), ["p0013"])
      assert.strictEqual(Object.keys(yield* world.indexed()).length, 39)
    })
  )

  test(
    "commits a batch in portions of the weight that memory allows",
    Effect.gen(function* () {
      const world = yield* makeWorld
      const { batches, writer } = spy(world.writer("search"))
      const follower = yield* world.follower({
        writer,
        concurrency: 2,
        weigh: (value) => value.length,
        maxWeight: 10
      })
      yield* world.put({ a: "xxxxx", b: "xxxxx", c: "xxxxxxxxxxxxxxxxxxxx", d: "x", e: "x" })
      const tick = yield* follower.drain(main)
      assert.deepStrictEqual([tick.scanned, tick.processed, tick.hasMore], [5, 5, false])
      assert.deepStrictEqual(
        batches.map((batch) => batch.upserts.map((upsert) => upsert.path as string)),
        [["a", "b"], ["c"], ["d", "e"]]
      )
    })
  )

  test(
    "bounds the weight of removals and replacements too, and gives what is heavier a portion of its own",
    Effect.gen(function* () {
      const world = yield* makeWorld
      const { batches, writer } = spy(world.writer("search"))
      const follower = yield* world.follower({
        writer: {
          ...writer,
          weights: (_, paths) => Effect.succeed(new Map(paths.map((path) => [path, weights[path]!])))
        },
        concurrency: 2,
        weigh: (value) => value.length,
        maxWeight: 10
      })
      const weights: Readonly<Record<string, number>> = { a: 4, b: 4, c: 30, d: 4, e: 9 }
      yield* world.put({ a: "x", b: "x", c: "x", d: "x", e: "x" })
      yield* follower.drain(main)
      batches.length = 0
      yield* world.put({ e: "xxx" })
      yield* world.remove(["a", "b", "c", "d"])
      const tick = yield* follower.drain(main)
      assert.deepStrictEqual([tick.scanned, tick.processed, tick.noop], [5, 1, 4])
      const portions = batches.map(({ removals, upserts }) =>
        [...removals, ...upserts].map(({ path }) => path as string).toSorted()
      )
      assert.deepStrictEqual(portions.toSorted(), [["a", "b"], ["c"], ["d"], ["e"]])
    })
  )

  test(
    "pauses while what it depends on is out of reach, without counting attempts",
    Effect.gen(function* () {
      const world = yield* makeWorld
      let down = true
      const { batches, writer } = spy(world.writer("search"), () =>
        down ? Effect.fail(ProcessingError.busy("unreachable")) : Effect.void
      )
      const follower = yield* world.follower({ writer, batchSize: 10 })
      yield* world.put(numbered(30))
      for (let i = 0; i < 100; i++) {
        const tick = yield* follower.drain(main)
        assert.isFalse(tick.advanced)
        yield* TestClock.adjust("100 millis")
      }
      // 10 seconds of pauses of 1, 2 and 4 seconds, and one that goes on.
      assert.isAtMost(batches.length, 4)
      assert.isTrue((yield* world.queue.pending()).every((row) => row.attempts === 0 && row.failedAt === undefined))
      down = false
      yield* TestClock.adjust("1 minute")
      let processed = 0
      for (let i = 0; i < 5; i++) processed += (yield* follower.drain(main)).processed
      assert.strictEqual(processed, 30)
    })
  )

  test(
    "follows only its prefix, exactly",
    Effect.gen(function* () {
      const world = yield* makeWorld
      const follower = yield* world.follower({ prefix: "a_b/" })
      yield* world.put({ "a_b/x": "1", "aXb/x": "2", "A_B/x": "3", "a_b2/x": "4", "a_b/😀.md": "5" })
      yield* follower.drain(main)
      assert.deepStrictEqual(yield* world.indexed(), { "a_b/x": "1", "a_b/😀.md": "5" })
    })
  )
}
