/**
 * The contract of followers as a suite that any tier of the queue and of a transactional index can run.
 *
 * @since 0.1.0
 */
import { assert, describe, it } from "@effect/vitest"
import { Changelog } from "@strata/dirty-queue/Changelog"
import type { ChangeSignal } from "@strata/dirty-queue/ChangeSignal"
import { DirtyQueue } from "@strata/dirty-queue/DirtyQueue"
import { Path, Scope } from "@strata/dirty-queue/Path"
import { type DurableWriter, write } from "@strata/durable/DurableWriter"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as EffectScope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as CatchUp from "./CatchUp.ts"
import { type ContentReader, fromLookup, type Key } from "./ContentReader.ts"
import * as Follower from "./Follower.ts"
import * as FollowerScheduler from "./FollowerScheduler.ts"
import type * as IndexWriter from "./IndexWriter.ts"
import * as ProcessingError from "./ProcessingError.ts"
import * as Rebuild from "./Rebuild.ts"

// ---------------------------------------------------------------------------------------------------------------------
// what a tier brings
// ---------------------------------------------------------------------------------------------------------------------

/**
 * An index of strings in the store that the tier's writes go to.
 *
 * @since 0.1.0
 * @category services
 */
export class TestIndex extends Context.Service<
  TestIndex,
  {
    /** A writer into the index called `name`. */
    readonly writer: (name: string) => IndexWriter.Transactional<string>
    /** What the index called `name` holds for a scope, by path. */
    readonly entries: (name: string, scope: Scope) => Effect.Effect<Readonly<Record<string, string>>, unknown>
  }
>()("@strata/follower/testing/TestIndex") {}

/**
 * @since 0.1.0
 * @category models
 */
export type Tier = DirtyQueue | Changelog | DurableWriter | ChangeSignal | TestIndex

// ---------------------------------------------------------------------------------------------------------------------
// the world of a test
// ---------------------------------------------------------------------------------------------------------------------

const main = Scope.make("main")

/** Content that tests change, recording each change, and a reader whose answers they can bend. */
const makeWorld = Effect.gen(function* () {
  const queue = yield* DirtyQueue
  const changelog = yield* Changelog
  const index = yield* TestIndex
  const contents = new Map<string, string>()
  const reads: Array<string> = []
  const key = (scope: string, path: string) => `${scope}/${path}`
  const bend = new Map<string, (key: Key) => Effect.Effect<void, ProcessingError.ProcessingError>>()
  const reader: ContentReader<string> = fromLookup((at) =>
    Effect.gen(function* () {
      reads.push(at.path)
      const content = contents.get(key(at.scope, at.path))
      const bent = bend.get(at.path)
      if (bent !== undefined) yield* bent(at)
      return Option.fromUndefinedOr(content)
    })
  )
  const change = (op: "put" | "delete", scope: string, paths: ReadonlyArray<string>) =>
    write(changelog.record(paths.map((path) => ({ scope: Scope.make(scope), path: Path.make(path), op }))))
  return {
    queue,
    contents,
    reads,
    bend,
    reader,
    /** Sets contents and records the changes in one write. */
    put: (entries: Readonly<Record<string, string>>, scope: string = main) =>
      Effect.suspend(() => {
        for (const [path, content] of Object.entries(entries)) contents.set(key(scope, path), content)
        return change("put", scope, Object.keys(entries))
      }),
    remove: (paths: ReadonlyArray<string>, scope: string = main) =>
      Effect.suspend(() => {
        for (const path of paths) contents.delete(key(scope, path))
        return change("delete", scope, paths)
      }),
    indexed: (name = "search", scope: string = main) => index.entries(name, Scope.make(scope)),
    writer: index.writer,
    follower: (options: Partial<Follower.FollowerOptions<string>> = {}) =>
      Follower.make<string>({
        name: "search",
        version: "1",
        scope: main,
        queue,
        reader,
        writer: index.writer("search"),
        ...options
      })
  }
})

const deadPaths = (queue: DirtyQueue["Service"]) =>
  Effect.map(queue.deadLetters(), (rows) => rows.map((row) => row.path as string))

/** A writer whose calls are counted and can be made to fail. */
const spy = (
  writer: IndexWriter.Transactional<string>,
  refuse: (batch: IndexWriter.Batch<string>) => Effect.Effect<void, ProcessingError.ProcessingError> = () => Effect.void
) => {
  const batches: Array<IndexWriter.Batch<string>> = []
  return {
    batches,
    writer: {
      ...writer,
      write: (batch: IndexWriter.Batch<string>) =>
        Effect.suspend(() => {
          batches.push(batch)
          return Effect.andThen(writer.write(batch), refuse(batch))
        })
    }
  }
}

/** A writer elsewhere, which knows nothing of transactions, and remembers the keys it was given. */
const external = () => {
  const entries = new Map<string, string>()
  const keys: Array<string> = []
  return {
    entries,
    keys,
    writer: {
      mode: "idempotent",
      write: (batch) =>
        Effect.sync(() => {
          for (const upsert of batch.upserts) {
            keys.push(upsert.idempotencyKey)
            entries.set(upsert.path, upsert.value)
          }
          for (const removal of batch.removals) entries.delete(removal.path)
        })
    } satisfies IndexWriter.Idempotent<string>
  }
}

const numbered = (count: number, content = "text") =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`p${String(i).padStart(4, "0")}`, `${content}${i}`]))

// ---------------------------------------------------------------------------------------------------------------------
// suite
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Runs the contract on one tier. Each test builds `layer` anew over an empty store, under `TestClock`.
 *
 * @since 0.1.0
 * @category suites
 */
export const followerSuite = <E>(name: string, layer: () => Layer.Layer<Tier, E>): void => {
  const test = <A, E2>(title: string, effect: Effect.Effect<A, E2, Tier | EffectScope.Scope>) =>
    it.effect(title, () => Effect.provide(effect, layer()))

  describe(`Follower (${name})`, () => {
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
          [["a", "b"], ["c", "d"], ["e"]]
        )
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
  })

  describe(`FollowerScheduler (${name})`, () => {
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
        world.bend.set("a", () =>
          Effect.andThen(Effect.sleep("5 millis"), Effect.fail(ProcessingError.transient("no")))
        )
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
  })

  describe(`CatchUp (${name})`, () => {
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
        yield* world.put({ untouched: "4" })
        const fiber = yield* Effect.forkChild(Effect.flip(CatchUp.awaitCaughtUp(follower, { timeout: "5 seconds" })))
        for (let i = 0; i < 60; i++) yield* TestClock.adjust("100 millis")
        const late = yield* Fiber.join(fiber)
        assert.strictEqual(late._tag === "NotCaughtUp" && late.reason._tag, "TimedOut")
      })
    )
  })

  describe(`Rebuild (${name})`, () => {
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
                Stream.drain(
                  Stream.fromEffect(Effect.andThen(Deferred.succeed(listed, undefined), Deferred.await(goOn)))
                )
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
  })
}
