/**
 * The contract of `DirtyQueue`: claims, leases and answers.
 *
 * @since 0.1.0
 */
import { assert, describe, it } from "@effect/vitest"
import { DurableWriter } from "@strata/durable/DurableWriter"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as TestClock from "effect/testing/TestClock"
import { put } from "../Changelog.ts"
import { ChangeSignal } from "../ChangeSignal.ts"
import { type Answer, type Claim, DirtyQueue, reader } from "../DirtyQueue.ts"
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
  row,
  rows,
  search,
  type Services,
  tested,
  thumbnails,
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
export const claimSuite = <E>(name: string, given: Tier<E> | UnjoinedTier<E>): void => {
  const tier = tested(given)
  const run = <A, E2>(effect: Effect.Effect<A, E2, Unjoined>) =>
    Effect.provide(effect, tier.unjoined({ lease: "30 seconds", maxAttempts: 3 }))
  const release = (...claims: ReadonlyArray<Claim>) => DirtyQueue.use((queue) => queue.release(claims))
  const renew = (...claims: ReadonlyArray<Claim>) => DirtyQueue.use((queue) => queue.renew(claims))

  describe(`DirtyQueue claims (${name})`, () => {
    it.effect("answers Done, Superseded or Lost, in the order of the claims", () =>
      run(
        Effect.gen(function* () {
          yield* register()
          yield* putAll("a", "b", "c")
          const [a, b, c] = yield* claim()
          yield* TestClock.adjust("30 seconds")
          yield* claim(1)
          yield* putAll("b")
          assert.deepStrictEqual(yield* ack(c!, b!, a!), ["Done", "Superseded", "Lost"])
          assert.deepStrictEqual(yield* ack(c!, b!, a!), ["Lost", "Lost", "Lost"])
          assert.deepStrictEqual(yield* ack(), [])
        })
      )
    )

    it.effect("frees a superseded row at once, with its fresh state, whatever the answer was (Q3)", () =>
      run(
        Effect.gen(function* () {
          yield* register()
          yield* putAll("a")
          for (const answer of [ack, release, renew]) {
            const first = yield* claimOne
            yield* TestClock.adjust(10)
            yield* record([put({ scope: home, path: path("a"), cid: "v2" })])
            assert.deepStrictEqual(yield* claim(), [])
            assert.deepStrictEqual(yield* answer(first), ["Superseded"])
            assert.deepInclude(yield* row, { state: "ready", cid: "v2", attempts: 0 })
            const second = yield* claimOne
            assert.deepInclude(second, { cid: "v2", attempts: 1, queuedAt: first.queuedAt + 10 })
            assert.isAbove(second.version, first.version)
            yield* release(second)
          }
        })
      )
    )

    it.effect("keeps a change that comes while its row is claimed from starting a second worker", () =>
      run(
        Effect.gen(function* () {
          yield* register()
          yield* putAll("a")
          const first = yield* claimOne
          yield* putAll("a", "a")
          yield* TestClock.adjust("29 seconds")
          assert.deepStrictEqual(yield* claim(), [])
          assert.deepInclude(yield* row, { state: "claimed" })
          assert.deepStrictEqual(yield* ack(first), ["Superseded"])
          assert.deepStrictEqual(yield* ack(yield* claimOne), ["Done"])
          assert.deepStrictEqual(yield* rows, [])
        })
      )
    )

    it.effect("tells two claims of one row apart in one ack", () =>
      run(
        Effect.gen(function* () {
          yield* register()
          yield* putAll("a")
          const old = yield* claimOne
          yield* putAll("a")
          yield* TestClock.adjust("30 seconds")
          const last = yield* claimOne
          assert.deepStrictEqual(yield* ack(last, old, old), ["Done", "Lost", "Lost"])
          assert.deepStrictEqual(yield* rows, [])
        })
      )
    )

    it.effect("answers claims of several followers in one call, in their order", () =>
      run(
        Effect.gen(function* () {
          const queue = yield* DirtyQueue
          yield* register()
          yield* queue.register({ follower: thumbnails, scope: home })
          yield* putAll("a", "b", "c")
          const claimed = Effect.gen(function* () {
            const ours = yield* claim()
            const theirs = yield* queue.claim({ follower: thumbnails, scope: home, limit: 10 })
            return ours.flatMap((claim, i) => [theirs[i]!, claim])
          })
          const all = Array.from({ length: 6 }, (): Answer => "Done")
          assert.deepStrictEqual(yield* renew(...(yield* claimed)), all)
          yield* queue.newEpoch
          assert.deepStrictEqual(yield* release(...(yield* claimed)), all)
          const failed = yield* claimed
          assert.deepStrictEqual(yield* queue.fail(failed.map((claim) => ({ claim, error: "no", delay: 0 }))), all)
          yield* TestClock.adjust("1 hour")
          const last = yield* claimed
          yield* queue.release(last.slice(1, 2))
          yield* putAll("b")
          assert.deepStrictEqual(yield* ack(...last), ["Done", "Lost", "Superseded", "Superseded", "Done", "Done"])
          assert.deepStrictEqual(
            (yield* rows).map((row) => [row.follower, row.path]),
            [
              [search, "a"],
              [search, "b"],
              [thumbnails, "b"]
            ]
          )
        })
      )
    )

    it.effect("never uses a version again: an old ack removes nothing (Q9)", () =>
      run(
        Effect.gen(function* () {
          const queue = yield* DirtyQueue
          const changelog = yield* Recorder
          yield* register()
          yield* putAll("a")
          const old = yield* claimOne
          yield* queue.unregister({ follower: search, scope: home })
          assert.strictEqual(yield* changelog.prune({ before: { seq: 1000 } }), 1)
          yield* register()
          yield* putAll("a")
          assert.deepStrictEqual(yield* ack(old), ["Lost"])
          const again = yield* claimOne
          assert.deepStrictEqual(yield* ack(old), ["Lost"])
          assert.isAbove(again.version, old.lease)
          assert.strictEqual((yield* rows).length, 1)
        })
      )
    )

    it.effect("gives a row to another worker when its lease has ended", () =>
      run(
        Effect.gen(function* () {
          const queue = yield* DirtyQueue
          yield* register()
          yield* putAll("a")
          const [first] = yield* queue.claim({ follower: search, scope: home, limit: 1, lease: "5 seconds" })
          yield* TestClock.adjust(4999)
          assert.deepStrictEqual(yield* claim(), [])
          assert.deepStrictEqual(yield* queue.nextReadyAt(), Option.some(5000))
          yield* TestClock.adjust(1)
          const second = yield* claimOne
          assert.strictEqual(second.attempts, 2)
          for (const answer of [ack, fail, release, renew]) {
            assert.deepStrictEqual(yield* answer(first!), ["Lost"])
          }
          assert.deepStrictEqual(yield* ack(second), ["Done"])
        })
      )
    )

    it.effect("accepts a late answer when nobody else has the row", () =>
      run(
        Effect.gen(function* () {
          yield* register()
          yield* putAll("a")
          const late = yield* claimOne
          yield* TestClock.adjust("1 hour")
          assert.deepStrictEqual(yield* ack(late), ["Done"])
        })
      )
    )

    it.effect("renews a lease from now on", () =>
      run(
        Effect.gen(function* () {
          yield* register()
          yield* putAll("a")
          const held = yield* claimOne
          for (let i = 0; i < 4; i++) {
            yield* TestClock.adjust("20 seconds")
            assert.deepStrictEqual(yield* renew(held), ["Done"])
          }
          yield* TestClock.adjust("29 seconds")
          assert.deepStrictEqual(yield* claim(), [])
          assert.deepStrictEqual(yield* ack(held), ["Done"])
        })
      )
    )

    it.effect("releases a claim to its place in the queue, without counting the attempt", () =>
      run(
        Effect.gen(function* () {
          const queue = yield* DirtyQueue
          yield* register()
          yield* putAll("a")
          yield* TestClock.adjust(10)
          yield* putAll("b")
          yield* TestClock.adjust(10)
          for (let i = 0; i < 5; i++) {
            const first = yield* claimOne
            assert.deepInclude(first, { path: path("a"), attempts: 1, queuedAt: 0 })
            assert.deepStrictEqual(yield* release(first), ["Done"])
          }
          const first = yield* claimOne
          yield* queue.release([first], { delay: "1 second" })
          assert.deepStrictEqual(pathsOf(yield* claim()), ["b"])
          yield* TestClock.adjust("1 second")
          assert.deepInclude(yield* claimOne, { path: path("a"), attempts: 1, queuedAt: 1020 })
        })
      )
    )

    it.effect("makes a dead letter of a row that kills its workers", () =>
      run(
        Effect.gen(function* () {
          const queue = yield* DirtyQueue
          yield* register()
          yield* putAll("killer")
          yield* TestClock.adjust(1)
          yield* putAll("other1", "other2")
          for (let delivery = 1; delivery <= 3; delivery++) {
            assert.deepInclude(yield* claimOne, { path: path("killer"), attempts: delivery })
            yield* TestClock.adjust("30 seconds")
            yield* claim(2)
            yield* TestClock.adjust("30 seconds")
            yield* putAll("other1", "other2")
          }
          // It is the first in the queue, but the claim is full all the same.
          assert.deepStrictEqual(pathsOf(yield* claim(2)), ["other1", "other2"])
          const [dead] = yield* queue.deadLetters()
          assert.deepInclude(dead, { path: path("killer"), state: "dead", attempts: 3, readyAt: undefined })
          assert.isString(dead?.lastError)
        })
      )
    )

    it.effect("takes two paths with the same content in one batch (Q5)", () =>
      run(
        Effect.gen(function* () {
          yield* register()
          yield* record(["a", "b"].map((name) => put({ scope: home, path: path(name), cid: "same" })))
          const claims = yield* claim()
          assert.deepStrictEqual(pathsOf(claims), ["a", "b"])
          assert.deepStrictEqual(yield* ack(...claims), ["Done", "Done"])
        })
      )
    )

    it.effect("answers batches of any size", () =>
      run(
        Effect.gen(function* () {
          yield* register()
          yield* putAll(...numbered(2500))
          const claims = yield* claim(5000)
          assert.strictEqual(claims.length, 2500)
          assert.isTrue((yield* renew(...claims)).every((answer) => answer === "Done"))
          assert.isTrue((yield* ack(...claims)).every((answer) => answer === "Done"))
          assert.deepStrictEqual(yield* rows, [])
        })
      )
    )

    it.effect("takes every limit and every duration", () =>
      run(
        Effect.gen(function* () {
          const queue = yield* DirtyQueue
          yield* register()
          yield* putAll("a", "b", "c")
          const take = (limit: number, lease: Duration.Input) =>
            queue.claim({ follower: search, scope: home, limit, lease })
          assert.deepStrictEqual(yield* take(0, "1 second"), [])
          assert.deepStrictEqual(yield* take(-1, "1 second"), [])
          const [a, b, c] = yield* take(Infinity, Duration.infinity)
          yield* queue.fail([{ claim: a!, error: "no", delay: Duration.infinity }])
          yield* queue.release([b!], { delay: Duration.infinity })
          yield* queue.renew([c!], { lease: 0 })
          yield* TestClock.adjust(1)
          assert.deepStrictEqual(
            (yield* queue.pending({ limit: Infinity })).map((row) => [row.path, row.state]),
            [
              ["a", "delayed"],
              ["b", "delayed"],
              ["c", "ready"]
            ]
          )
        })
      )
    )

    it.effect("takes every claim back in a new epoch", () =>
      run(
        Effect.gen(function* () {
          const queue = yield* DirtyQueue
          yield* register()
          yield* putAll("a", "b")
          const held = yield* claim(1)
          const before = yield* queue.currentVersion
          yield* queue.newEpoch
          assert.isAbove(yield* queue.currentVersion, before + 1e12)
          assert.deepStrictEqual(yield* ack(...held), ["Lost"])
          assert.deepStrictEqual(
            (yield* claim()).map((claim) => [claim.path, claim.attempts]),
            [
              ["a", 1],
              ["b", 1]
            ]
          )
        })
      )
    )

    it.effect("wakes followers of this process when a row became ready, and not for nothing", () =>
      run(
        Effect.gen(function* () {
          const queue = yield* DirtyQueue
          const signal = yield* ChangeSignal
          const woken = Effect.fnUntraced(function* <A, E, R>(effect: Effect.Effect<A, E, R>) {
            const seen = yield* signal.count
            yield* effect
            return (yield* signal.count) > seen
          })
          yield* register()
          assert.isTrue(yield* woken(putAll("a")))
          assert.isTrue(yield* woken(queue.enqueue({ follower: search, scope: home, paths: [path("b")] })))
          const [a, b] = yield* claim()
          assert.isFalse(yield* woken(renew(a!)))
          assert.isTrue(yield* woken(release(b!)))
          assert.isTrue(yield* woken(fail(a!)))
          assert.isFalse(yield* woken(ack(yield* claimOne)))
          assert.isFalse(yield* woken(claim()))
        })
      )
    )

    it.effect("tells what must be processed for a reader to see all that was recorded before", () =>
      run(
        Effect.gen(function* () {
          const queue = yield* DirtyQueue
          yield* register()
          yield* putAll("a", "b")
          const barrier = yield* queue.currentVersion
          const waiting = Effect.map(queue.pending({ versionAtMost: barrier }), pathsOf)
          yield* putAll("a", "c")
          assert.deepStrictEqual(yield* waiting, ["a", "b"])
          const claims = yield* claim()
          yield* putAll("a")
          yield* ack(...claims)
          assert.deepStrictEqual(yield* waiting, [])
          assert.deepStrictEqual(pathsOf(yield* rows), ["a"])
        })
      )
    )

    it.effect("offers surfaces a reader that can change nothing", () =>
      run(
        Effect.gen(function* () {
          const view = reader(yield* DirtyQueue)
          yield* register()
          yield* putAll("a")
          assert.deepStrictEqual(Object.keys(view).toSorted(), [
            "deadLetters",
            "failing",
            "nextReadyAt",
            "pending",
            "registrations",
            "stats"
          ])
          assert.deepStrictEqual(pathsOf(yield* view.pending()), ["a"])
        })
      )
    )

    if (tier.layer !== undefined) {
      const { layer } = tier
      const inWrites = <A, E2>(effect: Effect.Effect<A, E2, Services | Unjoined>) => Effect.provide(effect, layer())

      it.effect("commits an acknowledgement with the write that it is part of, or not at all", () =>
        inWrites(
          Effect.gen(function* () {
            const writer = yield* DurableWriter
            yield* register()
            yield* putAll("a", "b")
            const claims = yield* claim()
            yield* Effect.exit(writer.write(Effect.andThen(ack(...claims), Effect.fail("no"))))
            assert.strictEqual((yield* rows).length, 2)
            yield* writer.write(ack(claims[0]!))
            assert.deepStrictEqual(pathsOf(yield* rows), ["b"])
            assert.deepStrictEqual(yield* ack(claims[1]!), ["Done"])
          })
        )
      )
    }

    if (tier.twoConnections !== undefined) {
      const twoConnections = tier.twoConnections

      it.live("gives each row to one of many workers on two connections, and none a conflict (Q7)", () =>
        Effect.gen(function* () {
          const connections = yield* twoConnections()
          yield* Effect.provideContext(Effect.andThen(register(), putAll(...numbered(300))), connections[0])
          const taken: Array<string> = []
          const worker = Effect.gen(function* () {
            while (true) {
              const claims = yield* claim(7)
              if (claims.length === 0) return
              taken.push(...pathsOf(claims))
              yield* Effect.sleep(1)
              assert.isTrue((yield* ack(...claims)).every((answer) => answer === "Done"))
            }
          })
          const recorder = Effect.forEach(numbered(100, "late/"), (path) => putAll(path), { discard: true })
          yield* Effect.all(
            [
              ...Array.from({ length: 6 }, (_, i) => Effect.provideContext(worker, connections[i % 2 === 0 ? 0 : 1])),
              Effect.provideContext(recorder, connections[1])
            ],
            { concurrency: "unbounded" }
          )
          yield* Effect.provideContext(worker, connections[0])
          assert.strictEqual(taken.length, 400)
          assert.strictEqual(new Set(taken).size, 400)
        })
      )
    }
  })
}
