import { assert, describe, it } from "@effect/vitest"
import * as DurableWriter from "@strata/durable/DurableWriter"
import * as Migrations from "@strata/durable/Migrations"
import { Cells, durableWriterSuite } from "@strata/durable/testing"
import * as Postgres from "@strata/durable/testing/postgres"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"

const cells = Layer.effect(
  Cells,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* Migrations.run({
      name: "cells",
      migrations: { "1_initial": ["CREATE TABLE cell (name TEXT PRIMARY KEY, value INTEGER NOT NULL)"] }
    })
    return Cells.of({
      get: (name) => Effect.map(sql`SELECT value FROM cell WHERE name = ${name}`.values, ([row]) => toNumber(row?.[0])),
      set: (name, value) =>
        sql`INSERT INTO cell VALUES (${name}, ${value}) ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
      insert: (name, value) => sql`INSERT INTO cell VALUES (${name}, ${value})`
    })
  })
)

const toNumber = (value: unknown) => (value === undefined ? undefined : Number(value))

/** Ends a connection, from another one. */
const kill = Effect.fnUntraced(function* (pid: number) {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.provideContext(
    sql`SELECT pg_terminate_backend(${pid}::integer, 5000)`,
    Context.omit(sql.transactionService)(yield* Effect.context<never>())
  )
})

const tier = cells.pipe(Layer.provideMerge(DurableWriter.layer()))

describe.skipIf(!Postgres.isAvailable())("Postgres", () => {
  durableWriterSuite("postgres", {
    layer: () => Layer.provideMerge(tier, Postgres.layer),
    twoConnections: () =>
      Effect.gen(function* () {
        const schema = yield* Postgres.schema
        const connect = Layer.build(Layer.provideMerge(Layer.fresh(tier), Layer.fresh(Postgres.layerSchema(schema))))
        return [yield* connect, yield* connect] as const
      }),
    conflicts: true
  })

  const live = it.layer(Postgres.layer, { excludeTestServices: true })

  live("DurableWriter", (it) => {
    it.effect("runs serializable unless told otherwise, and leaves other clients their own", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const writer = yield* DurableWriter.make()
        const level = Effect.map(sql`SHOW transaction_isolation`.values, ([row]) => row?.[0])
        const begin = Effect.gen(function* () {
          return yield* SqlClient.BeginTransaction
        })
        assert.deepStrictEqual(yield* writer.write(Effect.all([level, begin])), ["serializable", undefined])
        const readCommitted = { isolation: "read committed" } as const
        assert.strictEqual(yield* writer.write(level, readCommitted), "read committed")
        assert.strictEqual(yield* writer.write(writer.write(level, readCommitted)), "serializable")
        const seen: Array<unknown> = []
        yield* writer.write(
          DurableWriter.afterCommit(Effect.ignore(Effect.map(writer.write(level), (level) => void seen.push(level)))),
          readCommitted
        )
        assert.deepStrictEqual(seen, ["serializable"])
      })
    )

    it.effect("replays after a deadlock and after a lock that was not to be had", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const writer = yield* DurableWriter.make()
        yield* sql`CREATE TABLE pair (name TEXT PRIMARY KEY, n INTEGER NOT NULL)`
        yield* sql`INSERT INTO pair VALUES ('a', 0), ('b', 0)`
        const both = [yield* Deferred.make<void>(), yield* Deferred.make<void>()] as const
        let bodies = 0
        const opposite = (first: string, second: string, own: 0 | 1) =>
          writer.write(
            Effect.gen(function* () {
              bodies++
              yield* sql`UPDATE pair SET n = n + 1 WHERE name = ${first}`
              yield* Deferred.succeed(both[own], undefined)
              yield* Deferred.await(both[own === 0 ? 1 : 0])
              yield* sql`UPDATE pair SET n = n + 1 WHERE name = ${second}`
            }),
            { isolation: "read committed" }
          )
        yield* Effect.all([opposite("a", "b", 0), opposite("b", "a", 1)], { concurrency: 2 })
        assert.deepStrictEqual(yield* sql`SELECT n FROM pair`, [{ n: 2 }, { n: 2 }])
        assert.strictEqual(bodies, 3)

        const held = yield* Deferred.make<void>()
        const done = yield* Deferred.make<void>()
        const holder = yield* Effect.forkChild(
          writer.write(
            sql`UPDATE pair SET n = 9`.pipe(
              Effect.andThen(Deferred.succeed(held, undefined)),
              Effect.andThen(Deferred.await(done))
            )
          )
        )
        yield* Deferred.await(held)
        let attempts = 0
        yield* writer.write(
          Effect.gen(function* () {
            if (++attempts === 3) yield* Deferred.succeed(done, undefined)
            yield* sql`SELECT 1 FROM pair FOR UPDATE NOWAIT`
          })
        )
        yield* Fiber.join(holder)
        assert.isAtLeast(attempts, 3)
      })
    )

    it.effect("does not replay a write whose connection was killed, and works again at once", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const writer = yield* DurableWriter.make()
        let bodies = 0
        const killed = yield* Effect.exit(
          writer.write(
            Effect.gen(function* () {
              bodies++
              const [row] = yield* sql`SELECT pg_backend_pid()`.values
              yield* kill(Number(row?.[0]))
              yield* sql`SELECT 1`
            })
          )
        )
        assert.isTrue(Exit.isFailure(killed))
        assert.strictEqual(bodies, 1)
        assert.deepStrictEqual(yield* writer.write(sql`SELECT 1 AS one`), [{ one: 1 }])
      })
    )

    it.effect("works again after a COMMIT that failed", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const writer = yield* DurableWriter.make()
        yield* sql`CREATE TABLE parent (id INTEGER PRIMARY KEY)`
        yield* sql`CREATE TABLE child (id INTEGER REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED)`
        const failed = yield* Effect.flip(writer.write(sql`INSERT INTO child VALUES (1)`))
        assert.strictEqual(failed.reason._tag, "ConstraintError")
        yield* writer.write(sql`INSERT INTO parent VALUES (1)`)
        assert.deepStrictEqual(yield* sql`SELECT * FROM child`, [])
      })
    )
  })

  live("Migrations", (it) => {
    const set: Migrations.MigrationSet = {
      name: "together",
      migrations: {
        "1_initial": ["CREATE TABLE one (id BIGINT PRIMARY KEY)"],
        "2_more": ["INSERT INTO one VALUES (1)"]
      }
    }

    it.effect("are applied once by clients that start together", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* Effect.all(
          Array.from({ length: 8 }, () => Migrations.run(set)),
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual(yield* sql`SELECT count(*)::integer AS n FROM one`, [{ n: 1 }])
        yield* Migrations.run(set)
        const older = yield* Effect.exit(Migrations.run({ name: "together", migrations: { "1_initial": [] } }))
        assert.isTrue(Exit.isFailure(older))
      })
    )

    it.effect("leave nothing of a set that failed", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const broken: Migrations.MigrationSet = {
          name: "broken",
          migrations: { "1_initial": ["CREATE TABLE half (id BIGINT)", "CREATE TABLE half (id BIGINT)"] }
        }
        assert.isTrue(Exit.isFailure(yield* Effect.exit(Migrations.run(broken))))
        const [row] = yield* sql`SELECT to_regclass('half'), to_regclass('strata_broken_migrations')`.values
        assert.deepStrictEqual(row, [null, null])
      })
    )
  })

  it.live("gives each suite tables of its own, and takes them away", () =>
    Effect.gen(function* () {
      const name = yield* Effect.scoped(
        Effect.gen(function* () {
          const schema = yield* Postgres.schema
          yield* Effect.provide(
            SqlClient.SqlClient.use((sql) => sql`CREATE TABLE own (id BIGINT)`),
            Postgres.layerSchema(schema)
          )
          return schema
        })
      )
      const sql = yield* SqlClient.SqlClient
      assert.deepStrictEqual(yield* sql`SELECT nspname FROM pg_namespace WHERE nspname = ${name}`, [])
    }).pipe(Effect.provide(Postgres.layer))
  )
})
