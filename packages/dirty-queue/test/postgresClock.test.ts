import { assert, describe, it } from "@effect/vitest"
import * as Changelog from "@strata/dirty-queue/Changelog"
import type { Claim } from "@strata/dirty-queue/DirtyQueue"
import * as DirtyQueue from "@strata/dirty-queue/DirtyQueue"
import {
  ack,
  claim,
  claimOne,
  home,
  path,
  pathsOf,
  putAll,
  register,
  row,
  search
} from "@strata/dirty-queue/testing/fixture"
import * as Postgres from "@strata/durable/testing/postgres"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import * as Tiers from "./tiers.ts"

const hour = 3_600_000

/** The clock of a machine that is `millis` ahead: it ticks and waits as others do. */
const aheadBy = (millis: number): Clock.Clock => {
  const clock = Clock.Clock.defaultValue()
  const nanos = BigInt(millis) * 1_000_000n
  return {
    currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() + millis,
    currentTimeMillis: Effect.map(clock.currentTimeMillis, (now) => now + millis),
    currentTimeNanosUnsafe: () => clock.currentTimeNanosUnsafe() + nanos,
    currentTimeNanos: Effect.map(clock.currentTimeNanos, (now) => now + nanos),
    monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe(),
    monotonicTimeNanos: clock.monotonicTimeNanos,
    sleep: (duration) => clock.sleep(duration)
  }
}

type Services = Layer.Success<ReturnType<typeof Tiers.postgres>>

const options: DirtyQueue.DirtyQueueOptions = {
  clock: "database",
  lease: "40 seconds",
  retryBase: "20 seconds",
  retryJitter: 0
}

/** Two workers of one schema, each on connections of its own; the clock of the second is wrong. */
const withSkewed = (
  skew: number,
  test: (
    skewed: <A, E>(effect: Effect.Effect<A, E, Services>) => Effect.Effect<A, E>
  ) => Effect.Effect<void, unknown, Services>
) =>
  Effect.gen(function* () {
    const schema = yield* Postgres.schema
    const right = yield* Layer.build(Tiers.postgres(options, schema))
    const clock = Effect.provideService(Clock.Clock, aheadBy(skew))
    const wrong = yield* clock(Layer.build(Tiers.postgres(options, schema)))
    yield* Effect.provideContext(
      test((effect) => clock(Effect.provideContext(effect, wrong))),
      right
    )
  })

const databaseTime = SqlClient.SqlClient.use((sql) =>
  Effect.map(sql`SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::BIGINT`.values, ([time]) =>
    Number(time?.[0])
  )
)

/** Runs `effect`, and tells that a time which it led to is `after` ms from when it ran, by the database. */
const within = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  after: number,
  time: (result: A) => Effect.Effect<number, unknown, Services>
) =>
  Effect.gen(function* () {
    const before = yield* databaseTime
    const result = yield* effect
    const now = yield* databaseTime
    const given = yield* time(result)
    assert.isAtLeast(given, before + after)
    assert.isAtMost(given, now + after)
    return result
  })

const readyAt = Effect.map(row, (row) => row.readyAt ?? 0)

/** The wait for the end of a lease or of a delay. */
const letTimePass = SqlClient.SqlClient.use(
  (sql) =>
    sql`UPDATE strata_dirty AS d SET
      ready_at = least(d.ready_at, t.now), held_until = CASE WHEN d.held_until IS NOT NULL THEN t.now END
      FROM (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::BIGINT AS now) AS t`
)

const failOne = (claimed: Claim) => DirtyQueue.DirtyQueue.use((queue) => queue.fail([{ claim: claimed, error: "no" }]))

const releaseLater = (claimed: Claim) =>
  DirtyQueue.DirtyQueue.use((queue) => queue.release([claimed], { delay: "10 seconds" }))

describe.skipIf(!Postgres.isAvailable())("a worker whose clock is wrong, on Postgres", () => {
  for (const [name, skew] of [
    ["one hour ahead", hour],
    ["one hour behind", -hour]
  ] as const) {
    describe(name, () => {
      it.live("gets, keeps and renews leases of the length that all others have", () =>
        withSkewed(skew, (skewed) =>
          Effect.gen(function* () {
            yield* register()
            yield* putAll("a")
            const theirs = yield* within(skewed(claimOne), 40_000, () => readyAt)
            assert.deepStrictEqual(yield* claim(1), [])
            yield* within(skewed(DirtyQueue.DirtyQueue.use((queue) => queue.renew([theirs]))), 40_000, () => readyAt)
            assert.deepStrictEqual(yield* claim(1), [])
            yield* letTimePass

            const ours = yield* within(claimOne, 40_000, () => readyAt)
            assert.isAbove(ours.lease, theirs.lease)
            assert.deepStrictEqual(yield* skewed(claim(1)), [])
            assert.deepStrictEqual(yield* skewed(ack(theirs)), ["Lost"])
            yield* letTimePass

            const again = yield* skewed(claimOne)
            assert.deepStrictEqual(yield* ack(ours), ["Lost"])
            assert.deepStrictEqual(yield* skewed(ack(again)), ["Done"])
          })
        )
      )

      it.live("backs off as long as all others do", () =>
        withSkewed(skew, (skewed) =>
          Effect.gen(function* () {
            yield* register()
            yield* putAll("a")
            yield* within(
              Effect.flatMap(skewed(claimOne), (claimed) => skewed(failOne(claimed))),
              20_000,
              () => readyAt
            )
            assert.deepStrictEqual([yield* claim(1), yield* skewed(claim(1))], [[], []])
            yield* letTimePass
            // The second failure waits twice as long, whoever had the first.
            yield* within(Effect.flatMap(claimOne, failOne), 40_000, () => readyAt)
            assert.deepStrictEqual([yield* claim(1), yield* skewed(claim(1))], [[], []])
            yield* letTimePass
            yield* within(
              Effect.flatMap(skewed(claimOne), (claimed) => skewed(releaseLater(claimed))),
              10_000,
              () => readyAt
            )
            assert.deepStrictEqual([yield* claim(1), yield* skewed(claim(1))], [[], []])
            yield* letTimePass
            assert.deepStrictEqual(yield* ack(yield* claimOne), ["Done"])
          })
        )
      )

      it.live("records changes that are ready at once, and in their turn", () =>
        withSkewed(skew, (skewed) =>
          Effect.gen(function* () {
            yield* register()
            yield* putAll("a")
            yield* within(skewed(putAll("b")), 0, () =>
              Effect.map(
                Changelog.Changelog.use((log) => log.read()),
                (entries) => entries.find((entry) => entry.path === path("b"))?.recordedAt ?? 0
              )
            )
            yield* Effect.sleep("5 millis")
            yield* putAll("c")
            const next = yield* skewed(
              DirtyQueue.DirtyQueue.use((queue) => queue.nextReadyAt({ follower: search, scope: home }))
            )
            assert.isAtMost(next._tag === "Some" ? next.value : Infinity, yield* databaseTime)
            const claims = yield* claim(2)
            assert.deepStrictEqual(pathsOf(claims), ["a", "b"])
            assert.deepStrictEqual(pathsOf(yield* skewed(claim(2))), ["c"])
          })
        )
      )
    })
  }
})
