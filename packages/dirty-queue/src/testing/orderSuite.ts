/**
 * The contract of `DirtyQueue`: who is served first, at what cost, and by whose clock.
 *
 * @since 0.1.0
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { put } from "../Changelog.ts"
import { DirtyQueue, type DirtyQueueOptions } from "../DirtyQueue.ts"
import * as P from "../Path.ts"
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
  record,
  Recorder,
  register,
  rows,
  search,
  tested,
  type Tier,
  type Unjoined,
  type UnjoinedTier
} from "./fixture.ts"

/**
 * Runs the contract on one tier.
 *
 * @since 0.1.0
 * @category suites
 */
export const orderSuite = <E>(name: string, given: Tier<E> | UnjoinedTier<E>): void => {
  const tier = tested(given)
  const run = <A, E2>(effect: Effect.Effect<A, E2, Unjoined>, options?: DirtyQueueOptions) =>
    Effect.provide(effect, tier.unjoined(options))
  const backfill = (...names: ReadonlyArray<string>) =>
    DirtyQueue.use((queue) => queue.enqueue({ follower: search, scope: home, paths: names.map(path) }))

  describe(`DirtyQueue order (${name})`, () => {
    it.effect("serves rows by the time at which they became ready, and keeps the place of one that changes", () =>
      run(
        Effect.gen(function* () {
          yield* register()
          for (const name of ["c", "a", "b"]) {
            yield* putAll(name)
            yield* TestClock.adjust(10)
          }
          yield* putAll("c", "d")
          assert.deepStrictEqual(pathsOf(yield* claim()), ["c", "a", "b", "d"])
        })
      )
    )

    it.effect("lets neither fresh rows nor retries starve the other", () =>
      run(
        Effect.gen(function* () {
          yield* register()
          yield* putAll("retry")
          yield* fail(yield* claimOne)
          const served: Array<string> = []
          for (let i = 0; i < 30; i++) {
            yield* TestClock.adjust(100)
            yield* putAll(`fresh${i}/1`, `fresh${i}/2`)
            // One is served where two come.
            const claims = yield* claim(1)
            served.push(...pathsOf(claims))
            yield* ack(...claims)
          }
          const place = served.indexOf("retry")
          // Ready after one second, behind the twenty rows of that second.
          assert.isAtLeast(place, 15)
          assert.isAtMost(place, 22)
        }),
        { retryBase: "1 second", retryJitter: 0 }
      )
    )

    it.effect(
      "finishes a backfill under full live load, without holding up live rows (Q2)",
      () =>
        run(
          Effect.gen(function* () {
            yield* register()
            yield* backfill(...numbered(1000, "backfill/"))
            let backfilled = 0
            let longest = 0
            for (let tick = 0; backfilled < 1000; tick++) {
              assert.isAtMost(tick, 500, "the backfill does not finish")
              // As many as the backfill's share leaves room for, in bursts.
              yield* putAll(...numbered(tick % 2 === 0 ? 9 : 3, `live/${tick}/`))
              const claims = yield* claim(8)
              assert.strictEqual(claims.length, 8)
              for (const { lane, queuedAt } of claims) {
                if (lane === "backfill") backfilled++
                else longest = Math.max(longest, tick - queuedAt / 10)
              }
              yield* ack(...claims)
              yield* TestClock.adjust(10)
            }
            assert.isAtMost(longest, 2)
          }),
          { backfillShare: 0.25 }
        ),
      180_000
    )

    it.effect("gives backfilled rows their share of single claims too", () =>
      run(
        Effect.gen(function* () {
          yield* register()
          yield* backfill(...numbered(10, "b/"))
          yield* putAll(...numbered(50, "l/"))
          const lanes: Array<string> = []
          for (let i = 0; i < 12; i++) {
            lanes.push((yield* claimOne).lane)
          }
          assert.deepStrictEqual(
            lanes.map((lane) => lane === "backfill"),
            Array.from({ length: 12 }, (_, i) => i % 4 === 3)
          )
        }),
        { backfillShare: 0.25 }
      )
    )

    it.effect("gives each lane what the other leaves", () =>
      run(
        Effect.gen(function* () {
          yield* register()
          yield* backfill(...numbered(20, "b/"))
          yield* putAll(...numbered(3, "l/"))
          const first = yield* claim(12)
          assert.strictEqual(first.filter((claim) => claim.lane === "live").length, 3)
          assert.strictEqual(first.filter((claim) => claim.lane === "backfill").length, 9)
          yield* putAll(...numbered(100, "m/"))
          assert.strictEqual((yield* claim(8)).filter((claim) => claim.lane === "live").length, 6)
          yield* claim(60)
          assert.strictEqual((yield* claim(8)).filter((claim) => claim.lane === "live").length, 8)
        }),
        { backfillShare: 0.25 }
      )
    )

    it.effect("promotes a backfilled row that changes, and leaves a live one where it is", () =>
      run(
        Effect.gen(function* () {
          yield* register()
          yield* backfill("a", "b")
          yield* putAll("a", "c")
          yield* backfill("c")
          assert.deepStrictEqual(
            (yield* rows).map((row) => [row.path, row.lane]),
            [
              ["a", "live"],
              ["b", "backfill"],
              ["c", "live"]
            ]
          )
        })
      )
    )

    it.effect("serves scopes in turn, however many rows one has (Q11)", () =>
      run(
        Effect.gen(function* () {
          const queue = yield* DirtyQueue
          const a = P.Scope.make("a")
          const b = P.Scope.make("b")
          for (const scope of [a, b, P.Scope.make("idle")]) {
            yield* queue.register({ follower: search, scope })
          }
          yield* record(numbered(1000).map((path) => put({ scope: a, path })))
          yield* record([put({ scope: b, path: path("only") })])
          const served: Array<P.Scope> = []
          for (let tick = 0; tick < 4; tick++) {
            const [next] = yield* queue.readyScopes({ follower: search, limit: 1 })
            served.push(next!)
            yield* ack(...(yield* queue.claim({ follower: search, scope: next!, limit: 10 })))
            yield* queue.markServed({ follower: search, scope: next! })
            yield* record([put({ scope: b, path: path("only") })])
          }
          assert.deepStrictEqual(served, [a, b, a, b])
          assert.deepStrictEqual(yield* queue.readyScopes({ follower: search }), [a, b])
        })
      )
    )

    it.live("claims as fast from many rows as from few", () =>
      run(
        Effect.gen(function* () {
          const queue = yield* DirtyQueue
          const large = P.Scope.make("large")
          yield* register()
          yield* queue.register({ follower: search, scope: large })
          yield* putAll(...numbered(200))
          yield* record(numbered(30_000).map((path) => put({ scope: large, path })))
          const measure = Effect.fnUntraced(function* (scope: P.Scope) {
            const start = performance.now()
            const claims = yield* queue.claim({ follower: search, scope, limit: 10 })
            const ms = performance.now() - start
            assert.strictEqual(claims.length, 10)
            yield* queue.release(claims)
            return ms
          })
          // By turns, so that what else the machine does slows both.
          const times: Array<readonly [few: number, many: number]> = []
          for (let i = 0; i < 21; i++) times.push([yield* measure(home), yield* measure(large)])
          const median = (place: 0 | 1) => times.map((pair) => pair[place]).toSorted((a, b) => a - b)[10]!
          const few = median(0)
          const many = median(1)
          // A hundred and fifty times the rows: a scan or a sort takes more than ten times as long.
          assert.isBelow(many, few * 10)
        })
      )
    )

    it.live("goes by the clock of the store, if it is told to", () =>
      run(
        Effect.gen(function* () {
          const changelog = yield* Recorder
          yield* register()
          const before = Date.now() - 1000
          yield* putAll("a").pipe(TestClock.withLive, Effect.provide(TestClock.layer()))
          const [entry] = yield* changelog.read()
          assert.isAbove(entry!.recordedAt, before)
          assert.isAbove((yield* claimOne).queuedAt, before)
        }),
        { clock: "database" }
      )
    )
  })
}
