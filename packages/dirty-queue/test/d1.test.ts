import { D1Client } from "@effect/sql-d1/D1Client"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { put } from "@strata/dirty-queue/Changelog"
import * as ChangeSignal from "@strata/dirty-queue/ChangeSignal"
import * as D1Changelog from "@strata/dirty-queue/D1Changelog"
import * as D1DirtyQueue from "@strata/dirty-queue/D1DirtyQueue"
import { DirtyQueue } from "@strata/dirty-queue/DirtyQueue"
import {
  ack,
  claim,
  claimOne,
  fail,
  home,
  numbered,
  path,
  pathsOf,
  putAll,
  register,
  row,
  rows,
  search
} from "@strata/dirty-queue/testing/fixture"
import * as D1Testing from "@strata/durable/testing/d1"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/testing/TestClock"
import * as Storage from "../src/internal/d1Queue.ts"
import * as Tiers from "./tiers.ts"

const d1 = await D1Testing.forThisFile()
afterAll(d1.stop)

/** Independently built tiers over one database. */
const connections = (count: number) =>
  Effect.flatMap(d1.database, (db) =>
    Effect.all(
      Array.from({ length: count }, () => Layer.build(Layer.fresh(Tiers.d1(D1Testing.layerOf(db))))),
      { concurrency: "unbounded" }
    )
  )

describe.skipIf(!d1.isAvailable)("D1", () => {
  for (const count of [101, 1000]) {
    it.effect(`acknowledges ${count} rows, of one claim or of many (Q6)`, () =>
      Effect.gen(function* () {
        const queue = yield* DirtyQueue
        yield* register()
        yield* putAll(...numbered(count))
        const claims = yield* claim(count)
        assert.deepStrictEqual(new Set(yield* queue.renew(claims)), new Set(["Done"]))
        assert.deepStrictEqual(new Set(yield* ack(...claims)), new Set(["Done"]))
        yield* putAll(...numbered(count))
        const parts = yield* Effect.all(Array.from({ length: 5 }, () => claim(Math.ceil(count / 5))))
        yield* putAll("000050")
        const answers = yield* ack(...parts.flat().toReversed())
        assert.strictEqual(answers.filter((answer) => answer === "Done").length, count - 1)
        assert.deepStrictEqual(pathsOf(yield* rows), ["000050"])
      }).pipe(Effect.provide(Tiers.d1(d1.layer)))
    )
  }

  it.effect("stores a change with what it is about, or neither", () =>
    Effect.gen(function* () {
      const sql = yield* D1Client
      const changelog = yield* D1Changelog.D1Changelog
      const signal = yield* ChangeSignal.ChangeSignal
      yield* register()
      yield* sql`CREATE TABLE note (path TEXT PRIMARY KEY, text TEXT NOT NULL)`
      const write = (name: string, text: string | null) =>
        changelog.recordWith(
          [put({ scope: home, path: path(name) })],
          [
            sql`INSERT INTO note (path, text) VALUES (${name}, ${text}) RETURNING text`,
            sql`SELECT count(*) AS n FROM note`
          ]
        )
      const { range, results } = yield* write("a", "first")
      assert.deepStrictEqual(range._tag === "Some" && range.value, { first: 1, last: 1 })
      assert.deepStrictEqual(results, [[{ text: "first" }], [{ n: 1 }]])
      const woken = yield* signal.count
      const refused = yield* Effect.flip(write("b", null))
      assert.strictEqual(refused.reason._tag, "ConstraintError")
      assert.strictEqual(yield* signal.count, woken)
      assert.deepStrictEqual(pathsOf(yield* rows), ["a"])
      assert.deepStrictEqual(yield* sql`SELECT path FROM note`, [{ path: "a" }])
      const alone = yield* changelog.recordWith([], [sql`SELECT 1 AS one`])
      assert.deepStrictEqual(alone.results, [[{ one: 1 }]])
    }).pipe(Effect.provide(Tiers.d1(d1.layer)))
  )

  it.effect("marks paths dirty whoever writes the changelog, and keeps out what a Schema would refuse", () =>
    Effect.gen(function* () {
      const sql = yield* D1Client
      yield* register()
      yield* sql`INSERT INTO strata_changelog (scope, path, op, recorded_at) VALUES (${home}, 'a', 'put', 5)`
      assert.deepInclude(yield* row, { path: path("a"), dirtyAt: 5 })
      yield* Effect.flip(sql`INSERT INTO strata_changelog (scope, path, op, recorded_at) VALUES ('s', 'a', 'move', 0)`)
      yield* Effect.flip(sql`UPDATE strata_dirty SET registration = 99`)
    }).pipe(Effect.provide(Tiers.d1(d1.layer)))
  )

  it.effect("writes nothing when nothing is ready", () =>
    Effect.gen(function* () {
      const queue = yield* DirtyQueue
      yield* register()
      yield* putAll("a")
      yield* claimOne
      const before = yield* queue.currentVersion
      assert.deepStrictEqual(yield* claim(), [])
      assert.strictEqual(yield* queue.currentVersion, before)
    }).pipe(Effect.provide(Tiers.d1(d1.layer)))
  )

  it.effect("gives at most as many rows as were asked for, with dead letters among them", () =>
    Effect.gen(function* () {
      const queue = yield* DirtyQueue
      yield* register()
      yield* putAll(...numbered(12, "dead/"))
      yield* claim(12)
      yield* TestClock.adjust("30 seconds")
      yield* putAll(...numbered(3, "live/"))
      yield* queue.enqueue({ follower: search, scope: home, paths: numbered(3, "backfill/") })
      assert.deepStrictEqual(pathsOf(yield* claim(4)).toSorted(), [
        "backfill/000000",
        "live/000000",
        "live/000001",
        "live/000002"
      ])
      assert.strictEqual((yield* queue.deadLetters({ limit: 100 })).length, 12)
    }).pipe(Effect.provide(Tiers.d1(d1.layer, { maxAttempts: 1 })))
  )

  it.effect("gives a claim back at once when its caller is gone", () =>
    Effect.gen(function* () {
      const client = yield* D1Client
      const taken = yield* Deferred.make<void>()
      const heard = yield* Deferred.make<void>()
      const batch: typeof client.batch = (statements) =>
        Effect.tap(client.batch(statements), () =>
          Effect.andThen(Deferred.succeed(taken, undefined), Deferred.await(heard))
        )
      // The answer of D1 arrives when the caller has gone.
      const slow = new Proxy(client, { get: (target, key) => (key === "batch" ? batch : Reflect.get(target, key)) })
      yield* register()
      yield* putAll("a")
      const storage = yield* Effect.provideService(Storage.make, D1Client, slow)
      const options = { follower: search, scope: home, limit: 1, leaseFor: 1000, maxAttempts: 3, backfillPermille: 0 }
      const claiming = yield* Effect.forkChild(storage.claim(0, options))
      yield* Deferred.await(taken)
      assert.deepInclude(yield* row, { state: "claimed", attempts: 1 })
      const leaving = yield* Effect.forkChild(Fiber.interrupt(claiming))
      yield* Effect.yieldNow
      yield* Deferred.succeed(heard, undefined)
      yield* Fiber.join(leaving)
      assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(claiming)))
      assert.deepInclude(yield* row, { state: "ready", attempts: 0 })
    }).pipe(Effect.provide(Tiers.d1(d1.layer)))
  )

  it.effect("makes no rows for a registration that was removed meanwhile", () =>
    Effect.gen(function* () {
      const queue = yield* DirtyQueue
      const { id } = yield* register()
      const storage = yield* Storage.make
      yield* queue.unregister({ follower: search, scope: home })
      yield* storage.enqueue(0, { registration: id, paths: ["a"] })
      yield* register()
      assert.deepStrictEqual(yield* rows, [])
    }).pipe(Effect.provide(Tiers.d1(d1.layer)))
  )

  it.live("starts on many machines at a time, which register one follower once", () =>
    Effect.gen(function* () {
      const all = yield* connections(4)
      const registered = yield* Effect.forEach(all, (one) => Effect.provideContext(register(), one), {
        concurrency: "unbounded"
      })
      assert.strictEqual(registered.filter(({ created }) => created).length, 1)
      assert.strictEqual(new Set(registered.map(({ id }) => id)).size, 1)
    })
  )

  it.live(
    "loses no change and gives no row to two, while many write, claim, fail and answer",
    () =>
      Effect.gen(function* () {
        const all = yield* connections(3)
        yield* Effect.provideContext(register(), all[0]!)
        const names = numbered(30)
        /** What was recorded last of a path, and what a worker saw of it before it answered `Done`. */
        const recorded = new Map<string, number>()
        const processed = new Map<string, number>()
        const held = new Set<string>()
        const write = (round: number) =>
          Effect.gen(function* () {
            for (const name of names.filter((_, i) => (i + round) % 3 === 0)) {
              recorded.set(name, round)
              yield* putAll(name)
            }
          })
        const work = Effect.gen(function* () {
          const claims = yield* claim(5)
          for (const { path } of claims) {
            assert.isFalse(held.has(path), `${path} is with two workers`)
            held.add(path)
          }
          const seen = new Map(claims.map(({ path }) => [path, recorded.get(path)!]))
          yield* Effect.sleep(1)
          for (const { path } of claims) held.delete(path)
          const answers = yield* ack(...claims)
          for (const [i, { path }] of claims.entries()) {
            assert.notStrictEqual(answers[i], "Lost")
            processed.set(path, Math.max(seen.get(path)!, processed.get(path) ?? 0))
          }
          return claims.length
        })
        yield* Effect.all(
          [
            ...Array.from({ length: 3 }, (_, i) => Effect.provideContext(Effect.forEach([1, 2, 3], write), all[i]!)),
            ...all.map((one) => Effect.provideContext(Effect.repeat(work, { times: 20 }), one))
          ],
          { concurrency: "unbounded" }
        )
        yield* Effect.provideContext(Effect.repeat(work, { until: (count) => count === 0 }), all[0]!)
        assert.deepStrictEqual(processed, recorded)
        assert.deepStrictEqual(yield* Effect.provideContext(rows, all[0]!), [])
      }),
    120_000
  )

  it.live("goes by the clock of the database unless told otherwise", () =>
    Effect.gen(function* () {
      const changelog = yield* D1Changelog.D1Changelog
      const before = Date.now() - 1000
      yield* register()
      yield* Effect.provide(changelog.record([put({ scope: home, path: path("a") })]), TestClock.layer())
      const claimed = yield* Effect.provide(claimOne, TestClock.layer())
      assert.isAbove(claimed.queuedAt, before)
      assert.isAbove((yield* row).readyAt ?? 0, before + 29_000)
      yield* fail(claimed)
      assert.isAbove((yield* row).failedAt ?? 0, before)
    }).pipe(
      Effect.provide(
        Layer.mergeAll(D1DirtyQueue.layer(), D1Changelog.layer()).pipe(
          Layer.provideMerge(ChangeSignal.layer),
          Layer.provide(d1.layer)
        )
      )
    )
  )

  it.effect("takes failures and paths that are too many for one parameter", () =>
    Effect.gen(function* () {
      const queue = yield* DirtyQueue
      yield* register()
      const names = numbered(900, "long/".repeat(200))
      yield* putAll(...names)
      yield* queue.enqueue({ follower: search, scope: home, paths: names })
      const claims = yield* claim(900)
      const answers = yield* queue.fail(claims.map((claim) => ({ claim, error: "😀".repeat(1000) })))
      assert.strictEqual(answers.filter((answer) => answer === "Done").length, 900)
    }).pipe(Effect.provide(Tiers.d1(d1.layer)))
  )
})
