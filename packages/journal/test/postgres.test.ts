import { afterAll, assert, describe, it } from "@effect/vitest"
import * as DurableWriter from "@strata/durable/DurableWriter"
import * as Postgres from "@strata/durable/testing/postgres"
import * as Compaction from "@strata/journal/Compaction"
import * as Event from "@strata/journal/Event"
import * as Fold from "@strata/journal/Fold"
import * as Journal from "@strata/journal/Journal"
import { JournalStorage } from "@strata/journal/JournalStorage"
import * as Harness from "@strata/journal/testing/harness"
import * as Lockstep from "@strata/journal/testing/lockstep"
import type { StreamName } from "@strata/journal/StreamName"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import * as Stream from "effect/Stream"
import * as Tiers from "./tiers.ts"

afterAll(await Postgres.forThisFile())

const operations = Number(process.env.LOCKSTEP_OPERATIONS ?? 150)

const { count, other, stream } = Harness

const readCommitted = { isolation: "read committed" } as const

const connect = (schema: string) =>
  Layer.build(
    Layer.fresh(
      Harness.services({ pageSize: 2, pollInterval: "5 millis", folds: [Harness.Story, Harness.Ledger] }).pipe(
        Layer.provideMerge(Tiers.onPostgres),
        Layer.provideMerge(Postgres.layerSchema(schema))
      )
    )
  )

/** Two independent journals in one schema: the test runs on the first, `elsewhere` on the second. */
const withTwo = <A, E>(
  test: (
    elsewhere: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, Exclude<R, Provided>>
  ) => Effect.Effect<A, E, Provided>
) =>
  Effect.gen(function* () {
    const schema = yield* Postgres.schema
    const here = yield* connect(schema)
    const there = yield* connect(schema)
    return yield* Effect.provideContext(
      test((effect) => Effect.provideContext(effect, there)),
      here
    )
  })

type Provided = Harness.Services | SqlClient.SqlClient

const append = (name: StreamName, ...amounts: ReadonlyArray<number>) =>
  Journal.Journal.use((journal) =>
    journal.append(
      name,
      amounts.map((amount) => Harness.Counted.make({ amount }))
    )
  )

const amountsOf = (entries: ReadonlyArray<Journal.Entry>) => entries.map(({ payload }) => payload)

const all = Effect.map(
  Journal.Journal.use((journal) => journal.readAll()),
  amountsOf
)

/** Gives the write its transaction id. */
const begun = SqlClient.SqlClient.use((sql) => sql`SELECT pg_current_xact_id()::text`)

describe.skipIf(!Postgres.isAvailable())("Postgres", () => {
  it.live("11: shows nothing behind a transaction that still runs, and skips none that commits late", () =>
    withTwo((elsewhere) =>
      Effect.gen(function* () {
        const journal = yield* Journal.Journal
        const expected = [1, 2, 3, 4, 5].map((amount) => ({ amount }))
        const follower = yield* Effect.forkChild(
          journal.followAll().pipe(Stream.take(5), Stream.runCollect, Effect.map(amountsOf))
        )
        yield* count(stream, 1)
        const ready = yield* Deferred.make<void>()
        const go = yield* Deferred.make<void>()
        const late = yield* Effect.forkChild(
          DurableWriter.write(
            Effect.gen(function* () {
              yield* begun
              yield* Deferred.succeed(ready, undefined)
              yield* Deferred.await(go)
              yield* append(other, 2, 3)
            }),
            readCommitted
          )
        )
        yield* Deferred.await(ready)
        yield* elsewhere(count(stream, 4, 5))
        assert.deepStrictEqual(yield* Harness.seqs(stream), [1, 2, 3])
        assert.deepStrictEqual(yield* all, [{ amount: 1 }])
        yield* Effect.sleep("50 millis")
        yield* Deferred.succeed(go, undefined)
        yield* Fiber.join(late)

        const entries = yield* journal.readAll()
        assert.deepStrictEqual(amountsOf(entries), expected)
        // The late one has the greater ordinals, and comes first all the same.
        assert.isAbove(entries[1]!.ordinal, entries[3]!.ordinal)
        assert.isBelow(entries[1]!.transaction, entries[3]!.transaction)
        assert.deepStrictEqual(yield* Fiber.join(follower), expected)
      })
    )
  )

  it.live("11: is not held up by a transaction that was rolled back or killed", () =>
    withTwo((elsewhere) =>
      Effect.gen(function* () {
        yield* elsewhere(Effect.exit(DurableWriter.write(Effect.andThen(append(stream, 1), Effect.fail("no")))))
        yield* count(stream, 2)
        assert.deepStrictEqual(yield* all, [{ amount: 2 }])
        const sql = yield* SqlClient.SqlClient
        yield* elsewhere(
          Effect.exit(
            DurableWriter.write(
              Effect.gen(function* () {
                yield* append(stream, 3)
                const there = yield* SqlClient.SqlClient
                const [row] = yield* there`SELECT pg_backend_pid()`.values
                yield* sql`SELECT pg_terminate_backend(${Number(row?.[0])}::integer, 5000)`
                yield* there`SELECT 1`
              })
            )
          )
        )
        yield* count(other, 4)
        assert.deepStrictEqual(yield* all, [{ amount: 2 }, { amount: 4 }])
      })
    )
  )

  it.live("11: appends to a stream in the order of transactions, whatever the isolation", () =>
    withTwo((elsewhere) =>
      Effect.gen(function* () {
        const journal = yield* Journal.Journal
        let bodies = 0
        yield* DurableWriter.write(
          Effect.gen(function* () {
            yield* begun
            if (++bodies === 1) yield* elsewhere(count(stream, 1))
            yield* append(stream, 2)
          }),
          readCommitted
        )
        assert.strictEqual(bodies, 2)
        assert.deepStrictEqual(amountsOf(yield* journal.read({ stream })), yield* all)
      })
    )
  )

  it.live("12: keeps an identity once between writes that do not see each other", () =>
    withTwo((elsewhere) =>
      Effect.gen(function* () {
        const once = Journal.Journal.use((journal) =>
          journal.append(stream, [Event.json("note", 1, { identity: "once" })])
        )
        const ready = yield* Deferred.make<void>()
        const first = yield* Effect.forkChild(
          DurableWriter.write(
            once.pipe(Effect.tap(Deferred.succeed(ready, undefined)), Effect.tap(Effect.sleep("50 millis"))),
            readCommitted
          )
        )
        yield* Deferred.await(ready)
        const [second] = yield* elsewhere(DurableWriter.write(once, readCommitted))
        const [one] = yield* Fiber.join(first)
        assert.deepStrictEqual({ ...one, duplicate: true }, second)
        assert.strictEqual((yield* all).length, 1)
      })
    )
  )

  it.live("14: folds up to an entry only when nothing can come before it any more", () =>
    withTwo((elsewhere) =>
      Effect.gen(function* () {
        const storage = yield* JournalStorage
        const ready = yield* Deferred.make<void>()
        const go = yield* Deferred.make<void>()
        const late = yield* Effect.forkChild(
          DurableWriter.write(
            Effect.gen(function* () {
              yield* begun
              yield* Deferred.succeed(ready, undefined)
              yield* Deferred.await(go)
              yield* append(other, 1)
            }),
            readCommitted
          )
        )
        yield* Deferred.await(ready)
        yield* elsewhere(count(stream, 2, 3))
        const compacting = yield* Effect.forkChild(
          elsewhere(Compaction.Compaction.use((compaction) => compaction.compact({ stream, seq: 2 })))
        )
        yield* Effect.sleep("60 millis")
        assert.deepStrictEqual(yield* storage.globalStates, [])
        yield* Deferred.succeed(go, undefined)
        yield* Fiber.join(late)
        assert.deepStrictEqual(yield* Fiber.join(compacting), { deleted: 1, floor: 2 })
        const [saved] = yield* storage.globalStates
        assert.include(saved?.state, `"entries":2`)
        assert.strictEqual((yield* Fold.runAll(Harness.Ledger)).state.entries, 3)
      })
    )
  )

  it.live("14: compacts in the write that appended", () =>
    withTwo(() =>
      Effect.gen(function* () {
        yield* count(stream, 1)
        yield* DurableWriter.write(
          Effect.gen(function* () {
            yield* append(stream, 2, 3)
            yield* Compaction.Compaction.use((compaction) => compaction.compact({ stream, seq: 3 }))
          })
        )
        assert.deepStrictEqual(yield* Harness.seqs(stream, 2), [3])
        assert.strictEqual((yield* Fold.runAll(Harness.Ledger)).state.entries, 3)
      })
    )
  )

  it.effect(
    `agrees with memory, SQLite and the model on ${operations} random operations`,
    () =>
      Effect.gen(function* () {
        const answers = yield* Lockstep.run({
          seed: 1,
          operations,
          tiers: [
            { name: "memory", layer: Tiers.memory.layer },
            { name: "sqlite", layer: Tiers.sqlite.layer },
            { name: "postgres", layer: Tiers.postgresInLockstep }
          ]
        })
        for (const operation of ["append", "compact", "rewind", "follow", "fold"]) {
          assert.isAbove(answers.get(`${operation}:ok`) ?? 0, 0, operation)
        }
        for (const operation of ["append", "compact", "rewind"]) {
          assert.isAbove(answers.get(`${operation}:rolled back`) ?? 0, 0, operation)
        }
      }),
    3_600_000
  )
})
