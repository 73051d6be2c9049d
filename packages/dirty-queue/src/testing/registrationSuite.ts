/**
 * The contract of `DirtyQueue`: what makes a path dirty, and for whom.
 *
 * @since 0.1.0
 */
import { assert, describe, it } from "@effect/vitest"
import { DurableWriter } from "@strata/durable/DurableWriter"
import * as Effect from "effect/Effect"
import * as Changelog from "../Changelog.ts"
import * as DirtyQueue from "../DirtyQueue.ts"
import * as P from "../Path.ts"
import {
  ack,
  claim,
  fail,
  home,
  incompressible,
  path,
  pathsOf,
  putAll,
  record,
  register,
  removeAll,
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
export const registrationSuite = <E>(name: string, given: Tier<E> | UnjoinedTier<E>): void => {
  const tier = tested(given)
  const run = <A, E2>(effect: Effect.Effect<A, E2, Unjoined>) => Effect.provide(effect, tier.unjoined())
  const reasonOf = <A, R>(effect: Effect.Effect<A, unknown, R>) =>
    Effect.map(Effect.flip(effect), (error) =>
      error instanceof DirtyQueue.DirtyQueueError ? error.reason._tag : undefined
    )

  describe(`DirtyQueue registrations (${name})`, () => {
    it.effect("makes one row of many changes for each follower that covers the path", () =>
      run(
        Effect.gen(function* () {
          const queue = yield* DirtyQueue.DirtyQueue
          const other = P.Scope.make("other")
          yield* register()
          yield* queue.register({ follower: thumbnails, scope: home, prefix: "img/" })
          yield* queue.register({ follower: thumbnails, scope: other })
          for (let i = 0; i < 5; i++) {
            yield* putAll("img/1", "doc/1")
          }
          yield* record([Changelog.put({ scope: other, path: path("doc/1") })])
          assert.deepStrictEqual(
            (yield* rows).map((row) => [row.follower, row.scope, row.path]),
            [
              [search, home, path("doc/1")],
              [search, home, path("img/1")],
              [thumbnails, home, path("img/1")],
              [thumbnails, other, path("doc/1")]
            ]
          )
        })
      )
    )

    it.effect("carries the hints of the newest change, and a new version with every change", () =>
      run(
        Effect.gen(function* () {
          const queue = yield* DirtyQueue.DirtyQueue
          yield* register()
          yield* record([Changelog.put({ scope: home, path: path("a"), cid: "c1", mtime: 7 })])
          const first = yield* row
          assert.deepInclude(first, { op: "put", cid: "c1", mtime: 7, seq: 1 })
          yield* removeAll("a")
          const second = yield* row
          assert.deepInclude(second, { op: "delete", cid: undefined, mtime: undefined, seq: 2 })
          assert.isAbove(second.version, first.version)
          yield* queue.enqueue({ follower: search, scope: home, paths: [path("a")] })
          const third = yield* row
          assert.deepInclude(third, { op: "delete", seq: 2, lane: "live" })
          assert.isAbove(third.version, second.version)
          assert.strictEqual(yield* queue.currentVersion, third.version)
        })
      )
    )

    it.effect("registers again without effect, and refuses another prefix", () =>
      run(
        Effect.gen(function* () {
          const queue = yield* DirtyQueue.DirtyQueue
          const first = yield* register("docs/")
          const again = yield* register("docs/")
          assert.isTrue(first.created)
          assert.deepStrictEqual(again, { ...first, created: false })
          assert.strictEqual(yield* reasonOf(register("other/")), "PrefixMismatch")
          assert.strictEqual(yield* reasonOf(register("\ud800")), "InvalidPrefix")
          assert.strictEqual(yield* reasonOf(register("a\0b")), "InvalidPrefix")
          assert.deepStrictEqual(
            (yield* queue.registrations({ follower: search })).map((registration) => registration.prefix),
            ["docs/"]
          )
        })
      )
    )

    it.effect("removes a registration with its rows, and nothing else", () =>
      run(
        Effect.gen(function* () {
          const queue = yield* DirtyQueue.DirtyQueue
          yield* register()
          yield* queue.register({ follower: thumbnails, scope: home })
          yield* putAll("a", "b")
          const claims = yield* claim(1)
          assert.strictEqual(yield* queue.unregister({ follower: search, scope: home }), 2)
          assert.strictEqual(yield* queue.unregister({ follower: search, scope: home }), 0)
          assert.deepStrictEqual(yield* ack(...claims), ["Lost"])
          assert.deepStrictEqual(
            (yield* rows).map((row) => row.follower),
            [thumbnails, thumbnails]
          )
          yield* putAll("c")
          assert.strictEqual((yield* rows).length, 3)
          assert.strictEqual(yield* reasonOf(claim()), "NotRegistered")
          assert.strictEqual(
            yield* reasonOf(queue.enqueue({ follower: search, scope: home, paths: [path("a")] })),
            "NotRegistered"
          )
          assert.strictEqual(yield* reasonOf(queue.markServed({ follower: search, scope: home })), "NotRegistered")
        })
      )
    )

    it.effect("takes prefixes exactly, in bytes (Q10)", () =>
      run(
        Effect.gen(function* () {
          const queue = yield* DirtyQueue.DirtyQueue
          const names = [
            "A_B/1",
            "aXb/1",
            "a_b",
            "a_b/1",
            "a_b/é",
            "a_b/e\u0301",
            "a_b/😀.md",
            "a_b2/1",
            "a%/1",
            "d0",
            "d/"
          ]
          const covered = (prefix: string) =>
            names.filter((name) => Buffer.from(name).indexOf(Buffer.from(prefix)) === 0).toSorted()
          const prefixes = ["a_b/", "d/", "a%", "a_b/é", "a_b/😀", "a_b/e", ""]
          for (const prefix of prefixes) {
            yield* queue.register({ follower: P.FollowerName.make(`follows ${prefix}`), scope: home, prefix })
          }
          yield* putAll(...names)
          for (const prefix of prefixes) {
            const follower = P.FollowerName.make(`follows ${prefix}`)
            assert.deepStrictEqual(pathsOf(yield* queue.pending({ follower })).toSorted(), covered(prefix), prefix)
          }
          const all = P.FollowerName.make("follows ")
          for (const prefix of prefixes) {
            assert.deepStrictEqual(
              pathsOf(yield* queue.pending({ follower: all, prefix })).toSorted(),
              covered(prefix),
              prefix
            )
          }
        })
      )
    )

    it.effect("lists rows in pages, by path in byte order", () =>
      run(
        Effect.gen(function* () {
          const queue = yield* DirtyQueue.DirtyQueue
          yield* register()
          yield* queue.register({ follower: thumbnails, scope: home })
          const names = ["😀", "\ufffd", "a", "\ue000", "\u{10ffff}", "b"]
          yield* putAll(...names)
          const sorted = names.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
          const pages: Array<string> = []
          let after: DirtyQueue.DirtyRow | undefined
          while (true) {
            const page: ReadonlyArray<DirtyQueue.DirtyRow> = yield* queue.pending({ after, limit: 4 })
            if (page.length === 0) break
            pages.push(...pathsOf(page))
            after = page.at(-1)
          }
          assert.deepStrictEqual(pages, [...sorted, ...sorted])
        })
      )
    )

    it.effect("takes names up to their limits, and refuses longer ones", () =>
      run(
        Effect.gen(function* () {
          const queue = yield* DirtyQueue.DirtyQueue
          const follower = P.FollowerName.make(incompressible(P.maxNameBytes))
          const scope = P.Scope.make(incompressible(P.maxNameBytes))
          const longest = path(incompressible(P.maxPathBytes))
          yield* queue.register({ follower, scope })
          yield* record([Changelog.put({ scope, path: longest })])
          yield* queue.enqueue({ follower, scope, paths: [longest] })
          const claims = yield* queue.claim({ follower, scope, limit: 10 })
          assert.deepStrictEqual(pathsOf(claims), [longest])
          yield* fail(...claims)
          assert.deepStrictEqual(pathsOf(yield* queue.failing({ follower, scope })), [longest])
          const enqueue = queue.enqueue({ follower, scope, paths: [path("a"), path(`${longest}a`)] })
          assert.strictEqual(yield* reasonOf(enqueue), "NameTooLong")
          for (const names of [
            { follower: P.FollowerName.make(`${follower}a`), scope },
            { follower, scope: P.Scope.make(`${scope}a`) }
          ]) {
            assert.strictEqual(yield* reasonOf(queue.register(names)), "NameTooLong")
          }
          assert.strictEqual((yield* queue.registrations()).length, 1)
          assert.deepStrictEqual(pathsOf(yield* rows), [longest])
        })
      )
    )

    it.effect("refuses to enqueue what a registration does not cover", () =>
      run(
        Effect.gen(function* () {
          const queue = yield* DirtyQueue.DirtyQueue
          yield* register("d/")
          const enqueue = queue.enqueue({ follower: search, scope: home, paths: [path("d/1"), path("d0")] })
          assert.strictEqual(yield* reasonOf(enqueue), "OutsidePrefix")
          assert.deepStrictEqual(yield* rows, [])
        })
      )
    )

    it.effect("shows a view of a prefix without it", () =>
      run(
        Effect.gen(function* () {
          const queue = yield* DirtyQueue.DirtyQueue
          const view = DirtyQueue.prefixed(queue, "a_b/")
          const registration = yield* view.register({ follower: search, scope: home, prefix: "😀" })
          assert.strictEqual(registration.prefix, "😀")
          assert.strictEqual((yield* queue.registrations())[0]?.prefix, "a_b/😀")
          yield* putAll("a_b/😀.md", "a_b/1", "aXb/😀")
          yield* view.enqueue({ follower: search, scope: home, paths: [path("😀/2")] })
          assert.deepStrictEqual(pathsOf(yield* view.pending()), ["😀.md", "😀/2"])
          const claims = yield* view.claim({ follower: search, scope: home, limit: 10 })
          assert.deepStrictEqual(pathsOf(claims).toSorted(), ["😀.md", "😀/2"].toSorted())
          assert.deepStrictEqual(yield* view.fail([{ claim: claims[0]!, error: "no", kind: "dead" }]), ["Done"])
          assert.deepStrictEqual(yield* view.renew(claims.slice(1)), ["Done"])
          assert.deepStrictEqual(yield* view.release(claims.slice(1)), ["Done"])
          const again = yield* view.claim({ follower: search, scope: home, limit: 10 })
          assert.deepStrictEqual(pathsOf(again), pathsOf(claims.slice(1)))
          assert.deepStrictEqual(yield* view.ack(again), ["Done"])
          const dead = yield* view.deadLetters()
          assert.deepStrictEqual(pathsOf(dead), [claims[0]!.path])
          assert.deepStrictEqual(yield* view.pending({ after: dead[0] }), [])
          assert.strictEqual(yield* view.revive({ path: claims[0]!.path }), 1)
          assert.deepStrictEqual(pathsOf(yield* queue.pending()), [`a_b/${claims[0]!.path}`])
        })
      )
    )

    it.effect("keeps a view from claiming what it has no name for", () =>
      run(
        Effect.gen(function* () {
          const queue = yield* DirtyQueue.DirtyQueue
          const view = DirtyQueue.prefixed(queue, "d/")
          yield* view.register({ follower: search, scope: home })
          yield* queue.register({ follower: thumbnails, scope: home })
          yield* putAll("d/", "d/1", "e")
          assert.deepStrictEqual(pathsOf(yield* view.claim({ follower: search, scope: home, limit: 10 })), ["1"])
          assert.deepStrictEqual(pathsOf(yield* queue.deadLetters()), ["d/"])
          assert.strictEqual(
            yield* reasonOf(view.claim({ follower: thumbnails, scope: home, limit: 10 })),
            "OutsidePrefix"
          )
          assert.deepStrictEqual(
            (yield* queue.pending({ follower: thumbnails })).map((row) => [row.state, row.attempts]),
            [
              ["ready", 0],
              ["ready", 0],
              ["ready", 0]
            ]
          )
        })
      )
    )

    it.effect("counts rows by state", () =>
      run(
        Effect.gen(function* () {
          const queue = yield* DirtyQueue.DirtyQueue
          yield* register()
          yield* putAll("claimed", "dead", "delayed", "ready")
          yield* queue.enqueue({ follower: search, scope: home, paths: [path("backfill")] })
          const [claimed, dead, delayed] = yield* claim(3)
          assert.strictEqual(claimed?.path, "claimed")
          yield* fail(delayed!)
          yield* queue.fail([{ claim: dead!, error: "no", kind: "dead" }])
          const counts = {
            rows: 5,
            ready: 2,
            delayed: 1,
            claimed: 1,
            dead: 1,
            failing: 1,
            backfill: 1,
            oldestDirtyAt: 0
          }
          assert.deepStrictEqual(yield* queue.stats(), {
            total: counts,
            followers: [{ ...counts, follower: search }]
          })
          assert.deepStrictEqual((yield* queue.stats({ follower: thumbnails })).total.rows, 0)
          assert.deepStrictEqual(pathsOf(yield* queue.failing()), ["delayed"])
          assert.deepStrictEqual(pathsOf(yield* queue.deadLetters()), ["dead"])
        })
      )
    )

    if (tier.layer !== undefined) {
      const { layer } = tier
      const inWrites = <A, E2>(effect: Effect.Effect<A, E2, Services | Unjoined>) => Effect.provide(effect, layer())

      it.effect("records a row in the write of its change, or not at all", () =>
        inWrites(
          Effect.gen(function* () {
            const writer = yield* DurableWriter
            yield* register()
            yield* Effect.exit(
              writer.write(
                Effect.gen(function* () {
                  yield* putAll("a")
                  assert.deepStrictEqual(pathsOf(yield* rows), ["a"])
                  return yield* Effect.fail("no")
                })
              )
            )
            assert.deepStrictEqual(yield* rows, [])
          })
        )
      )
    }
  })
}
