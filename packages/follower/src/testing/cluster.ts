import { assert } from "@effect/vitest"
import type { DirtyQueue } from "@strata/dirty-queue/DirtyQueue"
import { FollowerName, Scope } from "@strata/dirty-queue/Path"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as EffectScope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import * as ClusterFollowers from "../ClusterFollowers.ts"
import type { Follower } from "../Follower.ts"
import * as ProcessingError from "../ProcessingError.ts"
import * as Runners from "./clusterRunners.ts"
import { makeWorld, type Test } from "./world.ts"

const scopes = Array.from({ length: 12 }, (_, i) => Scope.make(`tenant-${i}`))

const search = FollowerName.make("search@1")

/** A cluster without runners, whose followers are registered in all scopes. */
const makeCluster = Effect.gen(function* () {
  const world = yield* makeWorld
  const storage = yield* Runners.makeStorage
  for (const scope of scopes) yield* world.queue.register({ follower: search, scope })
  const putAll = (content: string) =>
    Effect.forEach(scopes, (scope) => world.put({ [`${scope}.md`]: content }, scope), { discard: true })
  return {
    world,
    storage,
    putAll,
    /** What the index holds of all scopes: as many copies of `content` as there are scopes with it. */
    indexed: Effect.map(
      Effect.forEach(scopes, (scope) => world.indexed("search", scope)),
      (entries) => entries.flatMap((entry) => Object.values(entry))
    ),
    placed: {
      name: "search",
      scopes: ClusterFollowers.registeredScopes(world.queue, search),
      follower: (scope: Scope) => world.follower({ scope })
    }
  }
})

/** A runner that places followers until it is stopped. */
const startRunner = Effect.fnUntraced(function* <E1, R1, E2, R2>(
  storage: Runners.Storage,
  port: number,
  placed: ClusterFollowers.Placed<E1, R1, E2, R2>
) {
  const scope = yield* EffectScope.fork(yield* Effect.scope)
  const placement = yield* Effect.gen(function* () {
    const services = yield* Layer.build(Layer.provide(ClusterFollowers.layer(), Runners.layer(storage, port)))
    return yield* ClusterFollowers.ClusterFollowers.use((followers) => followers.run(placed)).pipe(
      Effect.provideContext(services)
    )
  }).pipe(EffectScope.provide(scope))
  return { here: placement.here, stop: EffectScope.close(scope, Exit.void) }
})

type Runner = Effect.Success<ReturnType<typeof startRunner>>

/** Where each scope is, after making sure that none is in two places. */
const whereabouts = Effect.fnUntraced(function* (runners: ReadonlyArray<Runner>) {
  const places = yield* Effect.forEach(runners, ({ here }) => here)
  const all = places.flat()
  assert.strictEqual(new Set(all).size, all.length, `a scope is on two runners: ${places.join(" | ")}`)
  return places
})

/** Lets time pass in steps, as a database answers between them. */
const pass = (seconds: number, check: Effect.Effect<unknown> = Effect.void) =>
  Effect.forEach(Array.from({ length: seconds * 4 }), () => Effect.andThen(TestClock.adjust("250 millis"), check), {
    discard: true
  })

/** How followers are spread over the runners of a cluster. */
export const clusterTests = (test: Test): void => {
  test(
    "gives each scope to one runner, and all of them to the one that is left",
    Effect.gen(function* () {
      const { indexed, placed, putAll, storage } = yield* makeCluster
      const first = yield* startRunner(storage, 1, placed)
      const second = yield* startRunner(storage, 2, placed)
      yield* pass(6)
      const places = yield* whereabouts([first, second])
      assert.sameMembers(places.flat(), scopes)
      assert.isTrue(
        places.every((place) => place.length > 0),
        "a runner has nothing to do"
      )
      yield* putAll("one")
      yield* pass(1)
      assert.deepStrictEqual(
        yield* indexed,
        scopes.map(() => "one")
      )
      yield* first.stop
      assert.deepStrictEqual(yield* first.here, [])
      yield* putAll("two")
      yield* pass(4)
      assert.sameMembers((yield* whereabouts([first, second])).flat(), scopes)
      assert.deepStrictEqual(
        yield* indexed,
        scopes.map(() => "two")
      )
    })
  )

  test(
    "a runner that does not reach the locks stops before another takes over, and comes back",
    Effect.gen(function* () {
      const { indexed, placed, putAll, storage } = yield* makeCluster
      const runners = [yield* startRunner(storage, 1, placed), yield* startRunner(storage, 2, placed)]
      yield* pass(6)
      assert.isNotEmpty((yield* whereabouts(runners))[0])
      storage.cut(1)
      yield* putAll("one")
      // The expiration of a lock, an interval of assignments, and two seconds.
      yield* pass(12, whereabouts(runners))
      const [cut, whole] = yield* whereabouts(runners)
      assert.deepStrictEqual(cut, [])
      assert.sameMembers([...(whole ?? [])], scopes)
      assert.deepStrictEqual(
        yield* indexed,
        scopes.map(() => "one")
      )
      storage.mend(1)
      yield* pass(12, whereabouts(runners))
      const places = yield* whereabouts(runners)
      assert.sameMembers(places.flat(), scopes)
      assert.isNotEmpty(places[0])
    })
  )

  test(
    "what a dead runner had claimed is processed when the leases have ended",
    Effect.gen(function* () {
      const { indexed, placed, putAll, storage, world } = yield* makeCluster
      yield* putAll("one")
      for (const scope of scopes) yield* world.queue.claim({ follower: search, scope, limit: 10 })
      yield* startRunner(storage, 1, placed)
      yield* pass(29)
      assert.deepStrictEqual(yield* indexed, [])
      yield* pass(2)
      assert.deepStrictEqual(
        yield* indexed,
        scopes.map(() => "one")
      )
    })
  )

  test(
    "scopes come and go with the list, and a follower's scope closes when it leaves",
    Effect.gen(function* () {
      const { placed, storage, world } = yield* makeCluster
      const [a, b] = scopes as [Scope, Scope]
      let listed = [a]
      const events: Array<string> = []
      const runner = yield* startRunner(storage, 1, {
        ...placed,
        scopes: Effect.sync(() => listed),
        follower: (scope) =>
          Effect.acquireRelease(
            Effect.sync(() => events.push(`+${scope}`)),
            () => Effect.sync(() => events.push(`-${scope}`))
          ).pipe(Effect.andThen(placed.follower(scope)))
      })
      yield* pass(4)
      assert.deepStrictEqual(yield* runner.here, [a])
      listed = [b]
      yield* pass(6)
      assert.deepStrictEqual(yield* runner.here, [b])
      yield* world.put({ x: "1" }, b)
      yield* pass(1)
      assert.deepStrictEqual(yield* world.indexed("search", b), { x: "1" })
      yield* runner.stop
      const of = (scope: Scope) => events.filter((event) => event.endsWith(`${scope}`))
      assert.deepStrictEqual(
        [of(a), of(b)],
        [a, b].map((scope) => [`+${scope}`, `-${scope}`])
      )
    })
  )

  test(
    "a follower that cannot be made, or dies of a bug, is made again and holds up no other",
    Effect.gen(function* () {
      const { indexed, placed, putAll, storage } = yield* makeCluster
      let made = 0
      const runner = yield* startRunner(storage, 1, {
        ...placed,
        follower: (scope): ReturnType<typeof placed.follower> =>
          Effect.suspend(() => {
            if (scope !== scopes[0]) return placed.follower(scope)
            made++
            if (made === 1) return Effect.die("a bug")
            return Effect.map(placed.follower(scope), (follower): Follower => {
              let ticks = 0
              return { ...follower, drain: (scope) => (ticks++ === 0 ? Effect.die("a bug") : follower.drain(scope)) }
            })
          })
      })
      yield* putAll("one")
      yield* pass(4)
      assert.sameMembers([...(yield* runner.here)], scopes)
      yield* pass(2)
      assert.strictEqual(made, 2)
      assert.deepStrictEqual(
        yield* indexed,
        scopes.map(() => "one")
      )
    })
  )

  test(
    "many scopes that come at once are taken up a few at a time",
    Effect.gen(function* () {
      const { placed, storage } = yield* makeCluster
      const making = { now: 0, most: 0 }
      const runner = yield* startRunner(storage, 1, {
        ...placed,
        follower: (scope) =>
          Effect.acquireUseRelease(
            Effect.sync(() => {
              making.now++
              making.most = Math.max(making.most, making.now)
            }),
            () => Effect.sleep("100 millis"),
            () => Effect.sync(() => making.now--)
          ).pipe(Effect.andThen(placed.follower(scope)))
      })
      yield* pass(4)
      assert.sameMembers([...(yield* runner.here)], scopes)
      assert.strictEqual(making.most, 8)
    })
  )

  test(
    "idle followers ask the queue once for all of them",
    Effect.gen(function* () {
      const { placed, storage, world } = yield* makeCluster
      const asked = { ready: 0, claim: 0 }
      const queue: DirtyQueue["Service"] = {
        ...world.queue,
        readyScopes: (options) =>
          Effect.andThen(
            Effect.sync(() => asked.ready++),
            world.queue.readyScopes(options)
          ),
        claim: (options) =>
          Effect.andThen(
            Effect.sync(() => asked.claim++),
            world.queue.claim(options)
          )
      }
      yield* startRunner(storage, 1, { ...placed, follower: (scope) => world.follower({ scope, queue }) })
      yield* pass(4)
      asked.ready = 0
      asked.claim = 0
      yield* pass(60)
      assert.deepStrictEqual(asked.claim, 0)
      assert.isAtMost(asked.ready, 12)
      assert.isAtLeast(asked.ready, 11)
    })
  )

  for (const [clock, offset] of [
    ["ahead", -3_600_000],
    ["behind", 3_600_000]
  ] as const) {
    test(
      `a runner whose clock is an hour ${clock} of the store's retries as the store says, and rests in between`,
      Effect.gen(function* () {
        const { placed, storage, world } = yield* makeCluster
        let claims = 0
        const queue: DirtyQueue["Service"] = {
          ...world.queue,
          nextReadyAt: (filter) =>
            Effect.map(
              world.queue.nextReadyAt(filter),
              Option.map((time) => time + offset)
            ),
          claim: (options) =>
            Effect.andThen(
              Effect.sync(() => claims++),
              world.queue.claim(options)
            )
        }
        yield* startRunner(storage, 1, { ...placed, follower: (scope) => world.follower({ scope, queue }) })
        yield* pass(4)
        let failed = 0
        world.bend.set("a", () => (failed++ < 4 ? Effect.fail(ProcessingError.transient("no")) : Effect.void))
        const [scope] = scopes as [Scope]
        yield* world.put({ a: "1" }, scope)
        claims = 0
        // Delays of 1, 2, 4 and 8 seconds, the backstop's 5 seconds after each.
        yield* pass(35)
        assert.deepStrictEqual(yield* world.indexed("search", scope), { a: "1" })
        assert.isAtMost(claims, 30)
      })
    )
  }

  test(
    "followers of one name are placed once by a process",
    Effect.gen(function* () {
      const { placed, storage } = yield* makeCluster
      const services = yield* Layer.build(Layer.provide(ClusterFollowers.layer(), Runners.layer(storage, 1)))
      const followers = ClusterFollowers.ClusterFollowers.use((followers) => followers.run(placed)).pipe(
        Effect.provideContext(services)
      )
      yield* Effect.scoped(followers)
      yield* followers
      const refused = yield* Effect.flip(followers)
      assert.deepStrictEqual(refused, new ClusterFollowers.AlreadyPlaced({ name: "search" }))
    })
  )
}
