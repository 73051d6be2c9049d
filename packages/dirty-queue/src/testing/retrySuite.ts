/**
 * The contract of `DirtyQueue`: failures, retries and dead letters.
 *
 * @since 0.1.0
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as TestClock from "effect/testing/TestClock"
import { type Claim, DirtyQueue, type DirtyQueueOptions } from "../DirtyQueue.ts"
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
export const retrySuite = <E>(name: string, given: Tier<E> | UnjoinedTier<E>): void => {
  const tier = tested(given)
  const run = <A, E2>(effect: Effect.Effect<A, E2, Unjoined>, options?: DirtyQueueOptions) =>
    Effect.provide(effect, tier.unjoined(options))
  const nextReadyAt = DirtyQueue.use((queue) => Effect.map(queue.nextReadyAt(), Option.getOrUndefined))
  const now = Effect.clockWith((clock) => clock.currentTimeMillis)
  const waitUntilReady = Effect.flatMap(Effect.all([nextReadyAt, now]), ([ready, now]) =>
    TestClock.adjust(Math.max((ready ?? 0) - now, 0))
  )

  describe(`DirtyQueue retries (${name})`, () => {
    it.effect("delays each attempt longer, up to the cap, and gives up after the last", () =>
      run(
        Effect.gen(function* () {
          const queue = yield* DirtyQueue
          yield* register()
          yield* putAll("a")
          const delays: Array<number | undefined> = []
          for (let attempt = 1; attempt <= 5; attempt++) {
            const failed = yield* claimOne
            assert.strictEqual(failed.attempts, attempt)
            assert.deepStrictEqual(yield* fail(failed), ["Done"])
            const ready = yield* nextReadyAt
            delays.push(ready === undefined ? undefined : ready - (yield* now))
            yield* waitUntilReady
          }
          assert.deepStrictEqual(delays, [1000, 3000, 9000, 10_000, undefined])
          assert.deepStrictEqual(yield* claim(), [])
          const [dead] = yield* queue.deadLetters()
          assert.deepInclude(dead, { path: path("a"), attempts: 5, lastError: "broken", failedAt: yield* now })
        }),
        { maxAttempts: 5, retryBase: "1 second", retryFactor: 3, retryCap: "10 seconds", retryJitter: 0 }
      )
    )

    it.effect("spreads retries by chance, never above the cap", () =>
      run(
        Effect.gen(function* () {
          const queue = yield* DirtyQueue
          yield* register()
          yield* putAll(...numbered(200))
          yield* fail(...(yield* claim(200)))
          const delays = (yield* queue.failing({ limit: 200 })).map((row) => row.readyAt ?? 0)
          assert.isAbove(new Set(delays).size, 100)
          assert.isAtLeast(Math.min(...delays), 5000)
          assert.isAtMost(Math.max(...delays), 10_000)
          assert.isAbove(Math.max(...delays), 9000)
        }),
        { retryBase: "1 hour", retryCap: "10 seconds", retryJitter: 0.5 }
      )
    )

    it.effect("keeps the error, in a form that every store takes", () =>
      run(
        Effect.gen(function* () {
          const queue = yield* DirtyQueue
          yield* register()
          yield* putAll("a")
          yield* queue.fail([{ claim: yield* claimOne, error: `x\0y\ud800${"z".repeat(5000)}` }])
          const { lastError } = yield* row
          assert.isTrue(lastError?.startsWith("x\ufffdy\ufffdz"))
          assert.strictEqual(lastError?.length, 2000)
          yield* waitUntilReady
          yield* queue.fail([{ claim: yield* claimOne, error: `"quoted" 'text' 😀` }])
          assert.deepInclude(yield* row, { lastError: `"quoted" 'text' 😀` })
        })
      )
    )

    it.effect("waits as long as a failure asks for, and not at all after one that no attempt can mend", () =>
      run(
        Effect.gen(function* () {
          const queue = yield* DirtyQueue
          yield* register()
          yield* putAll("dead", "later")
          const [dead, later] = yield* claim()
          yield* queue.fail([
            { claim: dead!, error: "never", kind: "dead" },
            { claim: later!, error: "later", delay: "1 hour" }
          ])
          assert.strictEqual(yield* nextReadyAt, 3_600_000)
          assert.deepStrictEqual(pathsOf(yield* queue.deadLetters()), ["dead"])
        })
      )
    )

    it.effect("revives dead letters by hand, by change and by backfill", () =>
      run(
        Effect.gen(function* () {
          const queue = yield* DirtyQueue
          yield* register()
          const names = ["hand", "d/hand", "change", "backfill", "left"]
          yield* putAll(...names)
          yield* queue.fail((yield* claim()).map((claim) => ({ claim, error: "no", kind: "dead" })))
          assert.strictEqual((yield* queue.deadLetters()).length, 5)
          yield* TestClock.adjust("1 minute")
          const before = yield* queue.currentVersion
          assert.strictEqual(yield* queue.revive({ path: path("hand") }), 1)
          assert.strictEqual(yield* queue.revive({ scope: home, prefix: "d/" }), 1)
          assert.strictEqual(yield* queue.revive({ path: path("hand") }), 0)
          yield* putAll("change")
          yield* queue.enqueue({ follower: search, scope: home, paths: [path("backfill")] })
          assert.deepStrictEqual(pathsOf(yield* queue.deadLetters()), ["left"])
          const claims = yield* claim()
          assert.deepStrictEqual(pathsOf(claims).toSorted(), ["backfill", "change", "d/hand", "hand"])
          assert.isTrue(claims.every((claim) => claim.attempts === 1 && claim.version > before))
          assert.strictEqual(yield* queue.revive(), 1)
          assert.deepStrictEqual(yield* queue.deadLetters(), [])
        })
      )
    )

    it.effect("starts attempts again with a change, and forgets failures with success", () =>
      run(
        Effect.gen(function* () {
          const queue = yield* DirtyQueue
          yield* register()
          yield* putAll("a")
          for (let i = 0; i < 2; i++) {
            yield* fail(yield* claimOne)
            yield* waitUntilReady
          }
          yield* putAll("a")
          assert.deepInclude(yield* row, { attempts: 0, lastError: "broken" })
          const claimed = yield* claimOne
          assert.strictEqual(claimed.attempts, 1)
          yield* putAll("a")
          assert.deepStrictEqual(yield* ack(claimed), ["Superseded"])
          assert.deepInclude(yield* row, { lastError: undefined, failedAt: undefined, state: "ready" })
          assert.deepStrictEqual(yield* queue.failing(), [])
        }),
        { maxAttempts: 3 }
      )
    )

    it.effect(
      "attempts a path that always fails at most twice a second, however often it changes (Q1)",
      () =>
        run(
          Effect.gen(function* () {
            const queue = yield* DirtyQueue
            yield* register()
            const attempts: Array<number> = []
            let held: ReadonlyArray<Claim> = []
            for (let time = 0; time < 10_000; time += 10) {
              yield* putAll("a")
              // Some failures come at once, some after the next change.
              yield* fail(...held)
              const claims = yield* claim()
              attempts.push(...claims.map(() => time))
              held = attempts.length % 2 === 0 ? claims : []
              yield* fail(...(held.length === 0 ? claims : []))
              yield* TestClock.adjust(10)
            }
            for (let i = 2; i < attempts.length; i++) {
              assert.isAtLeast(attempts[i]! - attempts[i - 2]!, 1000)
            }
            assert.isAtLeast(attempts.length, 15)
            assert.isAtMost(attempts.length, 20)
            assert.deepStrictEqual(pathsOf(yield* queue.failing()), ["a"])
          })
        ),
      // A thousand changes, on tiers that are asked over a network.
      180_000
    )

    it.effect("answers a failure of a path that changed meanwhile, and keeps the change", () =>
      run(
        Effect.gen(function* () {
          yield* register()
          yield* putAll("a")
          const failed = yield* claimOne
          yield* putAll("a")
          assert.deepStrictEqual(yield* fail(failed), ["Superseded"])
          assert.deepInclude(yield* row, { state: "delayed", readyAt: 500, attempts: 0 })
          yield* TestClock.adjust(500)
          assert.deepStrictEqual(yield* ack(yield* claimOne), ["Done"])
          assert.deepStrictEqual(yield* rows, [])
        })
      )
    )
  })
}
