import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, describe, it } from "@effect/vitest"
import * as Changelog from "@strata/dirty-queue/Changelog"
import * as ChangeSignal from "@strata/dirty-queue/ChangeSignal"
import * as DirtyQueue from "@strata/dirty-queue/DirtyQueue"
import * as PostgresSignal from "@strata/dirty-queue/PostgresSignal"
import {
  ack,
  claim,
  claimOne,
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
import * as DurableWriter from "@strata/durable/DurableWriter"
import * as DurableMetrics from "@strata/durable/Metrics"
import * as Postgres from "@strata/durable/testing/postgres"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import * as SqlClient from "effect/sql/SqlClient"
import * as TestClock from "effect/testing/TestClock"
import * as Tiers from "./tiers.ts"

const change = (name: string) => Changelog.put({ scope: home, path: path(name) })

const record = (...names: ReadonlyArray<string>) => Changelog.Changelog.use((log) => log.record(names.map(change)))

const readCommitted = { isolation: "read committed" } as const

type Services = Layer.Success<ReturnType<typeof Tiers.postgres>>

/** A tier, and what runs on connections of its own in the same schema, outside of any transaction of the first. */
const withTwo = <A, E>(
  test: (
    elsewhere: <A, E>(effect: Effect.Effect<A, E, Services>) => Effect.Effect<A, E>
  ) => Effect.Effect<A, E, Services>
) =>
  Effect.gen(function* () {
    const schema = yield* Postgres.schema
    const here = yield* Layer.build(Tiers.postgres(undefined, schema))
    const there = yield* Layer.build(Tiers.postgres(undefined, schema))
    return yield* Effect.provideContext(
      test((effect) => Effect.provideContext(effect, there)),
      here
    )
  })

/** Ends when a connection of this schema waits for a lock. */
const someoneWaits = SqlClient.SqlClient.use(
  (sql) => sql`SELECT 1 FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid)
      WHERE NOT l.granted AND a.application_name = current_schema()`
).pipe(
  Effect.repeat({ until: (rows) => rows.length > 0, schedule: Schedule.spaced("5 millis") }),
  Effect.timeout("10 seconds")
)

describe.skipIf(!Postgres.isAvailable())("Postgres", () => {
  describe("commits out of the order of seq", () => {
    it.live("makes a path dirty again for a change with a lower seq that commits later (Q8)", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* register()
        const late = (before: Effect.Effect<void>, op: "put" | "delete", done: Deferred.Deferred<void>) =>
          DurableWriter.write(
            Effect.gen(function* () {
              const [drawn] = yield* sql`SELECT nextval('strata_changelog_seq')`.values
              yield* Deferred.succeed(done, undefined)
              yield* before
              yield* sql`INSERT INTO strata_changelog (seq, scope, path, op, recorded_at)
                VALUES (${String(drawn?.[0])}::bigint, ${home}, 'a', ${op}, 5)`
            }),
            readCommitted
          )
        const drawn = yield* Deferred.make<void>()
        const go = yield* Deferred.make<void>()
        const first = yield* Effect.forkChild(late(Deferred.await(go), "delete", drawn))
        yield* Deferred.await(drawn)
        yield* putAll("a")
        const second = yield* claimOne
        assert.deepStrictEqual(yield* ack(second), ["Done"])
        assert.deepStrictEqual(yield* rows, [])
        yield* Deferred.succeed(go, undefined)
        yield* Fiber.join(first)

        const again = yield* claimOne
        assert.isAbove(again.version, second.version)
        assert.isBelow(again.seq ?? 0, second.seq ?? 0)
        assert.deepStrictEqual(yield* ack(second), ["Lost"])
        assert.deepStrictEqual(yield* ack(again), ["Done"])
      }).pipe(Effect.provide(Tiers.postgres()))
    )

    it.live("supersedes a claim by a change with a lower seq, and keeps the hints of the greater one", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* register()
        const [drawn] = yield* sql`SELECT nextval('strata_changelog_seq')`.values
        yield* putAll("a")
        const claimed = yield* claimOne
        yield* sql`INSERT INTO strata_changelog (seq, scope, path, op, recorded_at)
          VALUES (${String(drawn?.[0])}::bigint, ${home}, 'a', 'delete', 5)`
        assert.deepStrictEqual(yield* ack(claimed), ["Superseded"])
        assert.deepInclude(yield* row, { state: "ready", op: "put", seq: claimed.seq })
      }).pipe(Effect.provide(Tiers.postgres()))
    )

    it.live("gives a change a version above a claim that came while it waited for the row", () =>
      withTwo((elsewhere) =>
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          yield* register()
          yield* putAll("a")
          const [claimed, waiting] = yield* DurableWriter.write(
            Effect.gen(function* () {
              yield* sql`SELECT 1 FROM strata_dirty FOR UPDATE`
              const waiting = yield* Effect.forkDetach(elsewhere(DurableWriter.write(record("a"), readCommitted)))
              yield* elsewhere(someoneWaits)
              return [yield* claimOne, waiting] as const
            }),
            readCommitted
          )
          yield* Fiber.join(waiting)
          assert.isAbove((yield* row).version, claimed.lease)
          assert.deepStrictEqual(yield* ack(claimed), ["Superseded"])
          assert.strictEqual((yield* row).state, "ready")
        })
      )
    )
  })

  describe("an answer that waits for a change", () => {
    const answers: Record<
      string,
      (claimed: DirtyQueue.Claim) => Effect.Effect<unknown, unknown, DirtyQueue.DirtyQueue>
    > = {
      ack: (claimed) => DirtyQueue.DirtyQueue.use((queue) => queue.ack([claimed])),
      release: (claimed) => DirtyQueue.DirtyQueue.use((queue) => queue.release([claimed])),
      renew: (claimed) => DirtyQueue.DirtyQueue.use((queue) => queue.renew([claimed])),
      fail: (claimed) => DirtyQueue.DirtyQueue.use((queue) => queue.fail([{ claim: claimed, error: "no" }]))
    }
    for (const [name, answer] of Object.entries(answers)) {
      it.live(`hears of it: ${name}`, () =>
        withTwo((elsewhere) =>
          Effect.gen(function* () {
            yield* register()
            yield* putAll("a")
            const claimed = yield* claimOne
            const answering = yield* DurableWriter.write(
              Effect.gen(function* () {
                yield* record("a")
                const answering = yield* Effect.forkDetach(elsewhere(answer(claimed)))
                yield* elsewhere(someoneWaits)
                return answering
              }),
              readCommitted
            )
            assert.deepStrictEqual(yield* Fiber.join(answering), ["Superseded"])
            // A fresh change does not make a path that fails run more often.
            assert.strictEqual((yield* row).state, name === "fail" ? "delayed" : "ready")
          })
        )
      )
    }

    it.live("finds its row where it is then, if it was moved only: ack", () =>
      withTwo((elsewhere) =>
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          yield* register()
          yield* putAll("a", "b")
          const claims = yield* claim(2)
          const answering = yield* DurableWriter.write(
            Effect.gen(function* () {
              yield* sql`UPDATE strata_dirty SET attempts = attempts`
              const answering = yield* Effect.forkDetach(elsewhere(ack(...claims)))
              yield* elsewhere(someoneWaits)
              return answering
            }),
            readCommitted
          )
          assert.deepStrictEqual(yield* Fiber.join(answering), ["Done", "Done"])
          assert.deepStrictEqual(yield* rows, [])
        })
      )
    )
  })

  describe("opposite orders", () => {
    for (const isolation of ["serializable", "read committed"] as const) {
      it.live(`lets no deadlock reach a caller, ${isolation} (Q14)`, () =>
        Effect.gen(function* () {
          yield* register()
          yield* putAll("a", "b")
          const both = [yield* Deferred.make<void>(), yield* Deferred.make<void>()] as const
          const opposite = (first: string, second: string, own: 0 | 1) =>
            DurableWriter.write(
              Effect.gen(function* () {
                yield* record(first)
                yield* Deferred.succeed(both[own], undefined)
                yield* Deferred.await(both[own === 0 ? 1 : 0])
                yield* record(second)
              }),
              { isolation }
            )
          yield* Effect.all([opposite("a", "b", 0), opposite("b", "a", 1)], { concurrency: 2 })
          const entries = yield* Changelog.Changelog.use((log) => log.read())
          assert.strictEqual(entries.length, 6)
          assert.deepStrictEqual(pathsOf(yield* rows), ["a", "b"])
        }).pipe(Effect.provide(Tiers.postgres()))
      )
    }

    it.live("meets no deadlock at all where each write records once, whatever the order it was given", () =>
      Effect.gen(function* () {
        yield* register()
        const names = numbered(40)
        const write = Effect.gen(function* () {
          const order = yield* Random.shuffle(names)
          yield* DurableWriter.write(record(...order), readCommitted)
        })
        const work = Effect.flatMap(claim(25), (claims) => ack(...claims))
        yield* Effect.all(
          Array.from({ length: 6 }, (_, i) =>
            i % 2 === 0 ? Effect.repeat(write, { times: 25 }) : Effect.repeat(work, { times: 25 })
          ),
          { concurrency: "unbounded", discard: true }
        )
        assert.strictEqual((yield* Metric.value(DurableMetrics.writeConflicts)).count, 0)
        while ((yield* Effect.flatMap(claim(100), (claims) => ack(...claims))).length > 0);
        assert.deepStrictEqual(yield* rows, [])
      }).pipe(
        Effect.provide(Tiers.postgres()),
        Random.withSeed("orders"),
        Effect.provideService(Metric.MetricRegistry, new Map())
      )
    )
  })

  describe("registration", () => {
    it.live("waits for changes that are recorded but not committed", () =>
      withTwo((elsewhere) =>
        Effect.gen(function* () {
          const queue = yield* DirtyQueue.DirtyQueue
          const recorded = yield* Deferred.make<void>()
          const go = yield* Deferred.make<void>()
          const writing = yield* Effect.forkChild(
            DurableWriter.write(
              record("a").pipe(
                Effect.andThen(Deferred.succeed(recorded, undefined)),
                Effect.andThen(Deferred.await(go))
              )
            )
          )
          yield* Deferred.await(recorded)
          const registering = yield* Effect.forkChild(register())
          yield* elsewhere(someoneWaits)
          assert.deepStrictEqual(yield* queue.registrations(), [])
          yield* Deferred.succeed(go, undefined)
          yield* Fiber.join(writing)
          yield* Fiber.join(registering)
          assert.deepStrictEqual(pathsOf(yield* Changelog.Changelog.use((log) => log.read())), ["a"])
          assert.deepStrictEqual(yield* rows, [])
        })
      )
    )

    it.live("is not missed by a write that began before it", () =>
      withTwo((elsewhere) =>
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          let bodies = 0
          yield* DurableWriter.write(
            Effect.gen(function* () {
              yield* sql`SELECT 1 FROM strata_follower`
              if (++bodies === 1) yield* elsewhere(register())
              yield* record("a")
            })
          )
          assert.strictEqual(bodies, 2)
          assert.strictEqual((yield* row).path, path("a"))
        })
      )
    )

    it.live("ends with its rows while changes come in", () =>
      Effect.gen(function* () {
        const queue = yield* DirtyQueue.DirtyQueue
        yield* Effect.all(
          [
            Effect.repeat(DurableWriter.write(record("a", "b"), readCommitted), { times: 30 }),
            Effect.repeat(Effect.andThen(register(), queue.unregister({ follower: search, scope: home })), {
              times: 15
            })
          ],
          { concurrency: 2 }
        )
        assert.deepStrictEqual(yield* queue.registrations(), [])
        assert.deepStrictEqual(yield* rows, [])
      }).pipe(Effect.provide(Tiers.postgres()))
    )
  })

  it.live("claims and acks what it needs to look at and no more, before and after ANALYZE", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* register()
      yield* putAll(...numbered(20_000))
      const looked = DurableWriter.write(
        Effect.gen(function* () {
          const count = Effect.map(
            sql`SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables
              WHERE relid = 'strata_dirty'::regclass`.values,
            ([row]) => Number(row?.[0] ?? 0)
          )
          const before = yield* count
          const claimed = yield* claim(10)
          assert.strictEqual(claimed.length, 10)
          assert.deepStrictEqual(new Set(yield* ack(...claimed)), new Set(["Done"]))
          yield* DirtyQueue.DirtyQueue.use((queue) => queue.nextReadyAt({ follower: search, scope: home }))
          yield* DirtyQueue.DirtyQueue.use((queue) => queue.readyScopes({ follower: search }))
          return (yield* count) - before
        }),
        readCommitted
      )
      assert.isBelow(yield* looked, 200)
      yield* sql`ANALYZE strata_dirty, strata_follower`
      assert.isBelow(yield* looked, 200)
    }).pipe(Effect.provide(Tiers.postgres()))
  )

  it.live("has room for every claimed row on its page", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const long = Array.from(numbered(500), (name) => `${"folder/".repeat(30)}${name}`)
      yield* register()
      yield* putAll(...numbered(1000), ...long)
      const updates = DurableWriter.write(
        Effect.gen(function* () {
          assert.lengthOf(yield* claim(1500), 1500)
          return yield* sql`SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_xact_user_tables
            WHERE relid = 'strata_dirty'::regclass`.values
        }),
        readCommitted
      )
      assert.deepStrictEqual(yield* updates, [[1500n, 1500n]])
    }).pipe(Effect.provide(Tiers.postgres()))
  )

  it.live("looks at few rows that others hold, however many they are", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const heldInPlace = Effect.map(
        sql`SELECT count(*) FROM strata_dirty WHERE held_until IS NOT NULL`.values,
        ([row]) => Number(row?.[0])
      )
      yield* register()
      yield* putAll(...numbered(400))
      const claimed: Array<string> = []
      for (let i = 0; i < 300; i++) {
        claimed.push(...pathsOf(yield* claim(1)))
        assert.isAtMost(yield* heldInPlace, 32)
      }
      assert.deepStrictEqual(claimed, [...numbered(300)])
      assert.lengthOf(yield* claim(), 100)
      assert.lengthOf(yield* claim(), 0)
      assert.strictEqual((yield* DirtyQueue.DirtyQueue.use((queue) => queue.stats())).total.claimed, 400)
    }).pipe(Effect.provide(Tiers.postgres()))
  )

  it.live("gives what leases have left in the order of their ends, behind what was ready before", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const queue = yield* DirtyQueue.DirtyQueue
      yield* register()
      yield* putAll("a", "b", "c")
      const ready = yield* Effect.map(rows, ([first]) => first?.readyAt)
      assert.deepStrictEqual(pathsOf(yield* claim(2)), ["a", "b"])
      const next = queue.nextReadyAt({ follower: search, scope: home })
      assert.deepStrictEqual(yield* next, Option.fromNullishOr(ready))
      yield* sql`UPDATE strata_dirty SET held_until = ready_at + CASE path WHEN 'a' THEN 2 ELSE 1 END
        WHERE held_until IS NOT NULL`
      assert.deepStrictEqual(yield* queue.readyScopes({ follower: search }), [home])
      const inTurn = yield* Effect.forEach([1, 1, 1, 1], (limit) => Effect.map(claim(limit), pathsOf))
      assert.deepStrictEqual(inTurn, [["c"], ["b"], ["a"], []])
      // All are held: the first lease that ends is the next time.
      yield* sql`UPDATE strata_dirty SET held_until = ready_at + CASE path WHEN 'b' THEN 10 ELSE 20 END`
      assert.deepStrictEqual(yield* next, Option.some((ready ?? 0) + 11))
    }).pipe(Effect.provide(Tiers.postgres()))
  )

  it.live("keeps what a Schema would refuse out of the tables", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* register()
      yield* putAll("a")
      for (const statement of [
        "INSERT INTO strata_changelog (scope, path, op, recorded_at) VALUES ('s', '', 'put', 0)",
        "INSERT INTO strata_changelog (scope, path, op, recorded_at) VALUES ('s', 'a', 'move', 0)",
        "INSERT INTO strata_changelog (scope, path, op, cid, recorded_at) VALUES ('s', 'a', 'delete', 'c', 0)",
        "UPDATE strata_dirty SET lane = 2",
        "UPDATE strata_dirty SET ready_at = NULL",
        "UPDATE strata_dirty SET lease = 1, ready_at = NULL, last_error = 'x', failed_at = 1",
        "UPDATE strata_dirty SET held_until = ready_at",
        "UPDATE strata_dirty SET lease = 1, held_until = ready_at - 1",
        "UPDATE strata_dirty SET registration = 99",
        "INSERT INTO strata_registry (id, epoch) VALUES (2, 0)"
      ]) {
        const error = yield* Effect.flip(sql.unsafe(statement))
        assert.strictEqual(error.reason._tag, "ConstraintError", statement)
      }
    }).pipe(Effect.provide(Tiers.postgres()))
  )

  it.live("keeps a dirty row with a registration that there is", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* register()
      yield* DurableWriter.write(record("a"))
      const [found] = yield* sql<{ readonly id: bigint }>`SELECT id FROM strata_follower`
      const registration = Number(found?.id)
      for (const [statement, parameters] of [
        [
          `INSERT INTO strata_dirty (registration, path, version, since, lane, ready_at, queued_at, dirty_at)
          VALUES ($1, 'b', 1, 1, 0, 0, 0, 0)`,
          [registration + 1]
        ],
        ["UPDATE strata_dirty SET registration = $1", [registration + 1]],
        ["DELETE FROM strata_follower WHERE id = $1", [registration]]
      ] as const) {
        const error = yield* Effect.flip(sql.unsafe(statement, parameters))
        assert.strictEqual(error.reason._tag, "ConstraintError", statement)
      }
    }).pipe(Effect.provide(Tiers.postgres()))
  )

  it.live("marks paths dirty whoever writes the changelog, and several changes of a path once", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* register()
      yield* sql`SET search_path TO pg_catalog`.pipe(
        Effect.andThen(
          sql.unsafe(`INSERT INTO ${yield* schemaOf}.strata_changelog (scope, path, op, recorded_at)
            VALUES ('home', 'a', 'put', 7), ('home', 'a', 'delete', 5), ('home', 'b', 'put', 6)`)
        ),
        sql.withTransaction
      )
      yield* sql`RESET search_path`
      assert.deepStrictEqual(
        (yield* rows).map((row) => [row.path, row.op, row.dirtyAt]),
        [
          [path("a"), "delete", 5],
          [path("b"), "put", 6]
        ]
      )
    }).pipe(Effect.provide(Tiers.postgres()))
  )

  it.live("goes by the clock of the database unless told otherwise", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const layer = Layer.mergeAll(DirtyQueue.layer(), Changelog.layer()).pipe(
        Tiers.withRecorder,
        Layer.provideMerge(Layer.mergeAll(DurableWriter.layer(), ChangeSignal.layer)),
        Layer.provideMerge(Layer.succeedContext(Context.make(SqlClient.SqlClient, sql)))
      )
      yield* Effect.gen(function* () {
        const before = Date.now() - 1000
        yield* register()
        yield* Effect.provide(putAll("a"), TestClock.layer())
        const claimed = yield* Effect.provide(claimOne, TestClock.layer())
        assert.isAbove(claimed.queuedAt, before)
        assert.isAbove((yield* row).readyAt ?? 0, before + 29_000)
      }).pipe(Effect.provide(layer))
    }).pipe(Effect.provide(Postgres.layer))
  )

  describe("PostgresSignal", () => {
    const tier = Layer.mergeAll(DirtyQueue.layer(), Changelog.layer()).pipe(
      Tiers.withRecorder,
      Layer.provideMerge(Layer.mergeAll(DurableWriter.layer(), PostgresSignal.layer({ reconnect: "10 millis" })))
    )
    const two = Effect.gen(function* () {
      const schema = yield* Postgres.schema
      const connect = Layer.build(Layer.provideMerge(Layer.fresh(tier), Layer.fresh(Postgres.layerSchema(schema))))
      return [yield* connect, yield* connect] as const
    })
    /** Ends when a signal was given after `effect` began. */
    const wokenBy = <A, E, R>(signal: ChangeSignal.ChangeSignal["Service"], effect: Effect.Effect<A, E, R>) =>
      Effect.gen(function* () {
        const seen = yield* signal.count
        yield* effect
        yield* Effect.timeout(signal.awaitAfter(seen), "5 seconds")
      })

    it.live("wakes other processes after the commit, and not after a rollback", () =>
      Effect.gen(function* () {
        const [here, there] = yield* two
        const signal = Context.get(there, ChangeSignal.ChangeSignal)
        yield* Effect.provideContext(
          Effect.gen(function* () {
            const queue = yield* DirtyQueue.DirtyQueue
            yield* register()
            yield* wokenBy(signal, putAll("a"))
            yield* wokenBy(signal, Effect.flatMap(claim(), queue.release))
            yield* wokenBy(signal, queue.enqueue({ follower: search, scope: home, paths: [path("b")] }))
            const seen = yield* signal.count
            yield* Effect.exit(DurableWriter.write(Effect.andThen(record("c"), Effect.fail("no"))))
            yield* Effect.sleep("100 millis")
            assert.strictEqual(yield* signal.count, seen)
          }),
          here
        )
      })
    )

    it.live("sends one notification a transaction", () =>
      Effect.gen(function* () {
        const [here] = yield* two
        const given = yield* Effect.provideContext(
          Effect.gen(function* () {
            const sql = yield* PgClient.PgClient
            yield* register()
            const heard = yield* sql.listen("strata_dirty")
            const schema = yield* schemaOf
            yield* DurableWriter.write(Effect.andThen(record("a", "b"), record("c")))
            yield* sql.notify("strata_dirty", `${schema} end`)
            const given: Array<string> = []
            while (!given.includes(`${schema} end`)) {
              given.push(...(yield* Queue.takeAll(heard)).map((notification) => notification.payload))
            }
            return given.filter((payload) => payload.startsWith(schema))
          }),
          here
        ).pipe(Effect.scoped)
        assert.strictEqual(given.length, 2)
      })
    )

    it.live("listens again, and wakes, when its connection was killed", () =>
      Effect.gen(function* () {
        const [here, there] = yield* two
        const signal = Context.get(there, ChangeSignal.ChangeSignal)
        yield* Effect.provideContext(
          Effect.gen(function* () {
            const sql = yield* SqlClient.SqlClient
            yield* register()
            const [listener] = yield* Effect.provideContext(
              SqlClient.SqlClient.use(
                (sql) =>
                  sql`SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND application_name = current_schema()`
                    .values
              ),
              there
            )
            assert.isDefined(listener)
            yield* wokenBy(
              signal,
              sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE query LIKE 'LISTEN%' AND application_name = current_schema()`
            )
            yield* wokenBy(signal, putAll("a"))
          }),
          here
        )
      })
    )
  })
})

const schemaOf = SqlClient.SqlClient.use((sql) =>
  Effect.map(sql`SELECT current_schema()`.values, ([row]) => String(row?.[0]))
)
