import { assert, describe, it } from "@effect/vitest"
import { SqliteClient } from "@strata/sqlite"
import * as Metrics from "@strata/sqlite/Metrics"
import { transactionEnded } from "@strata/sqlite/TransactionObserver"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Metric from "effect/Metric"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as Schema from "effect/Schema"
import type { SqlError } from "effect/sql/SqlError"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"

const open = Effect.provide(SqliteClient.make({ filename: ":memory:" }), Reactivity.layer)

const opened = Effect.tap(open, (sql) => sql`CREATE TABLE t (id INTEGER PRIMARY KEY, value TEXT)`)

const ids = (sql: SqliteClient.SqliteClient) =>
  Effect.map(sql<{ readonly id: number }>`SELECT id FROM t ORDER BY rowid`, (rows) => rows.map((row) => row.id))

const insert = (sql: SqliteClient.SqliteClient, id: number) => sql`INSERT INTO t (id) VALUES (${id})`

const commits = Effect.map(Metric.value(Metrics.groupSize), (state) => state.count)

describe("withGroupedTransaction", () => {
  it.effect("shares a COMMIT among those that wait, in the order of their arrival", () =>
    Effect.gen(function* () {
      const sql = yield* opened
      const before = yield* commits
      const order: Array<number> = []
      yield* Effect.forEach(
        Array.from({ length: 64 }, (_, i) => i),
        (i) =>
          sql.withGroupedTransaction(
            Effect.andThen(
              Effect.sync(() => void order.push(i)),
              insert(sql, i)
            )
          ),
        { concurrency: "unbounded", discard: true }
      )
      assert.deepStrictEqual(
        order,
        Array.from({ length: 64 }, (_, i) => i)
      )
      assert.strictEqual((yield* ids(sql)).length, 64)
      assert.isAtMost((yield* commits) - before, 3)
    })
  )

  it.effect("finds a crowd soon after a time without one", () =>
    Effect.gen(function* () {
      const sql = yield* opened
      yield* Effect.forEach([-1, -2, -3], (id) => sql.withGroupedTransaction(insert(sql, id)))
      const before = yield* commits
      yield* Effect.forEach(
        Array.from({ length: 640 }, (_, i) => i),
        (i) => sql.withGroupedTransaction(insert(sql, i)),
        { concurrency: 64, discard: true }
      )
      // The first eight at most are taken for lone ones.
      assert.isAtMost((yield* commits) - before, 8 + 12)
    })
  )

  it.effect("fails a transaction that went on after SQLite had rolled it back, and no other", () =>
    Effect.gen(function* () {
      const sql = yield* opened
      const pages = Number((yield* sql.unsafe("PRAGMA page_count").values)[0]?.[0])
      yield* sql.unsafe(`PRAGMA max_page_count = ${pages + 4}`)
      const runs: Array<number> = []
      const exits = yield* Effect.forEach(
        [1, 2, 3],
        (i) =>
          Effect.exit(
            sql.withGroupedTransaction(
              Effect.andThen(
                Effect.sync(() => void runs.push(i)),
                i === 1
                  ? Effect.ignore(sql`INSERT INTO t VALUES (9, zeroblob(1000000))`)
                  : Effect.asVoid(insert(sql, i))
              )
            )
          ),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(exits.map(Exit.isSuccess), [false, true, true])
      assert.deepStrictEqual(runs.toSorted(), [1, 2, 3])
      assert.deepStrictEqual((yield* ids(sql)).toSorted(), [2, 3])
    })
  )

  it.effect("is bounded in members", () =>
    Effect.gen(function* () {
      const sql = yield* Effect.provide(SqliteClient.make({ filename: ":memory:", groupSize: 4 }), Reactivity.layer)
      yield* sql`CREATE TABLE t (id INTEGER PRIMARY KEY)`
      const before = yield* commits
      yield* Effect.forEach(
        Array.from({ length: 40 }, (_, i) => i),
        (i) => sql.withGroupedTransaction(insert(sql, i)),
        { concurrency: "unbounded", discard: true }
      )
      assert.isAtLeast((yield* commits) - before, 10)
    })
  )

  const Step = Schema.Struct({
    rows: Schema.Array(Schema.Literals([1, 2, 3])).check(Schema.isMaxLength(3)),
    end: Schema.Literals(["succeed", "succeed", "fail", "die", "interrupt", "clash", "nested", "async"])
  })

  it.effect.prop(
    "leaves what a model without groups would, whatever fails, dies or is interrupted",
    { steps: Schema.Array(Step).check(Schema.isMinLength(1), Schema.isMaxLength(40)) },
    ({ steps }) =>
      Effect.gen(function* () {
        const sql = yield* opened
        yield* insert(sql, -1)
        const expected: Array<number> = [-1]
        const hooks: Array<number> = []
        const expectedHooks: Array<number> = []
        const fibers = yield* Effect.forEach(steps, (step, i) => {
          const own = step.rows.map((_, j) => i * 10 + j)
          const write = Effect.andThen(
            Effect.forEach(own, (id) => insert(sql, id), { discard: true }),
            sql.afterCommit(Effect.sync(() => void hooks.push(i)))
          )
          const lost = sql.withTransaction(Effect.andThen(insert(sql, 100_000 + i), Effect.fail("savepoint")))
          const bodies: Record<typeof step.end, Effect.Effect<unknown, unknown>> = {
            succeed: write,
            nested: Effect.andThen(Effect.exit(lost), sql.withTransaction(write)),
            async: Effect.andThen(write, Effect.yieldNow),
            fail: Effect.andThen(write, Effect.fail("no")),
            die: Effect.andThen(write, Effect.die("bug")),
            interrupt: Effect.andThen(write, Effect.interrupt),
            clash: Effect.andThen(write, insert(sql, -1))
          }
          const body = bodies[step.end]
          if (["succeed", "nested", "async"].includes(step.end)) {
            expected.push(...own)
            expectedHooks.push(i)
          }
          return Effect.forkChild(Effect.exit(sql.withGroupedTransaction(body)))
        })
        const exits = yield* Effect.forEach(fibers, Fiber.join)
        exits.forEach((exit, i) => {
          assert.strictEqual(Exit.isSuccess(exit), ["succeed", "nested", "async"].includes(steps[i]!.end))
        })
        assert.deepStrictEqual(
          (yield* ids(sql)).toSorted((a, b) => a - b),
          expected.toSorted((a, b) => a - b)
        )
        assert.deepStrictEqual(
          hooks.toSorted((a, b) => a - b),
          expectedHooks
        )
      }),
    { arbitrary: { runs: 150, seed: 7 } }
  )

  it.effect("reports no success when the COMMIT fails, and works again", () =>
    Effect.gen(function* () {
      const sql = yield* opened
      yield* sql`CREATE TABLE child (id INTEGER REFERENCES t (id) DEFERRABLE INITIALLY DEFERRED)`
      const ran: Array<string> = []
      const exits = yield* Effect.forEach(
        [1, 2, 3, 4],
        (i) =>
          Effect.exit(
            sql.withGroupedTransaction(
              Effect.andThen(
                i === 3 ? sql`INSERT INTO child VALUES (77)` : insert(sql, i),
                sql.afterCommit(Effect.sync(() => void ran.push(`hook ${i}`)))
              )
            )
          ),
        { concurrency: "unbounded" }
      )
      assert.isTrue(exits.every(Exit.isFailure))
      assert.deepStrictEqual(ran, [])
      assert.deepStrictEqual(yield* ids(sql), [])
      yield* sql.withGroupedTransaction(insert(sql, 5))
      assert.deepStrictEqual(yield* ids(sql), [5])
    })
  )

  it.effect("runs the others again when SQLite has rolled back everything, as on a full disk", () =>
    Effect.gen(function* () {
      const sql = yield* opened
      const pages = Number((yield* sql.unsafe("PRAGMA page_count").values)[0]?.[0])
      yield* sql.unsafe(`PRAGMA max_page_count = ${pages + 4}`)
      const runs: Array<number> = []
      const exits = yield* Effect.forEach(
        [1, 2, 3, 4],
        (i) =>
          Effect.exit(
            sql.withGroupedTransaction(
              Effect.andThen(
                Effect.sync(() => void runs.push(i)),
                i === 3 ? sql`INSERT INTO t VALUES (3, zeroblob(1000000))` : insert(sql, i)
              )
            )
          ),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(exits.map(Exit.isSuccess), [true, true, false, true])
      assert.deepStrictEqual((yield* ids(sql)).toSorted(), [1, 2, 4])
      assert.strictEqual(runs.filter((i) => i === 3).length, 1)
    })
  )

  it.effect("passes a turn on when its fiber is interrupted while it waits", () =>
    Effect.gen(function* () {
      const sql = yield* opened
      const started = yield* Deferred.make<void>()
      const finish = yield* Deferred.make<void>()
      const first = yield* Effect.forkChild(
        sql.withGroupedTransaction(
          Effect.andThen(Deferred.succeed(started, undefined), Effect.andThen(Deferred.await(finish), insert(sql, 1)))
        )
      )
      yield* Deferred.await(started)
      const waiting = yield* Effect.forEach([2, 3, 4, 5], (i) =>
        Effect.forkChild(sql.withGroupedTransaction(insert(sql, i)))
      )
      yield* Effect.yieldNow
      yield* Fiber.interrupt(waiting[1]!)
      yield* Deferred.succeed(finish, undefined)
      yield* Fiber.interrupt(waiting[3]!)
      yield* Effect.forEach([first, waiting[0]!, waiting[2]!], Fiber.join)
      yield* Effect.exit(Fiber.join(waiting[3]!))
      const found = yield* ids(sql)
      assert.deepStrictEqual(
        [1, 2, 4].filter((id) => !found.includes(id)),
        []
      )
      assert.isFalse(found.includes(3))
      yield* sql.withGroupedTransaction(insert(sql, 6))
    })
  )

  it.effect("goes on after any number of transactions that fail one after the other, at once", () =>
    Effect.gen(function* () {
      const sql = yield* opened
      const started = yield* Deferred.make<void>()
      const finish = yield* Deferred.make<void>()
      const first = yield* Effect.forkChild(
        Effect.exit(
          sql.withGroupedTransaction(
            Effect.andThen(
              Deferred.succeed(started, undefined),
              Effect.andThen(Deferred.await(finish), Effect.fail("no"))
            )
          )
        )
      )
      yield* Deferred.await(started)
      const others = yield* Effect.forEach(Array.from({ length: 5_000 }), () =>
        Effect.forkChild(Effect.exit(sql.withGroupedTransaction(Effect.fail("no"))))
      )
      yield* Effect.yieldNow
      yield* Deferred.succeed(finish, undefined)
      assert.deepStrictEqual(yield* Fiber.join(first), Exit.fail("no"))
      for (const fiber of others) assert.deepStrictEqual(yield* Fiber.join(fiber), Exit.fail("no"))
      yield* sql.withGroupedTransaction(insert(sql, 1))
      assert.deepStrictEqual(yield* ids(sql), [1])
    })
  )

  it.live("goes on after a peer held the file, whoever waited", () =>
    Effect.gen(function* () {
      const folder = yield* Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(join(tmpdir(), "strata-group-"))),
        (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
      )
      const filename = join(folder, "test.db")
      const sql = yield* Effect.provide(SqliteClient.make({ filename }), Reactivity.layer)
      yield* sql`CREATE TABLE t (id INTEGER PRIMARY KEY)`
      const peer = new DatabaseSync(filename)
      yield* Effect.addFinalizer(() => Effect.sync(() => peer.close()))
      for (let round = 0; round < 20; round++) {
        peer.exec("BEGIN IMMEDIATE")
        const exits = yield* Effect.forEach(
          Array.from({ length: 8 }, (_, i) => round * 10 + i),
          (id) => Effect.exit(sql.withGroupedTransaction(insert(sql, id))),
          { concurrency: "unbounded" }
        )
        assert.isTrue(exits.every(Exit.isFailure))
        peer.exec("ROLLBACK")
        yield* sql.withGroupedTransaction(insert(sql, round))
      }
    })
  )

  it.effect("interrupts a transaction that waits for the connection", () =>
    Effect.gen(function* () {
      const sql = yield* opened
      const started = yield* Deferred.make<void>()
      const holder = yield* Effect.forkChild(
        sql.withTransaction(Effect.andThen(Deferred.succeed(started, undefined), Effect.never))
      )
      yield* Deferred.await(started)
      const fiber = yield* Effect.forkChild(sql.withGroupedTransaction(insert(sql, 1)))
      yield* Effect.yieldNow
      yield* Fiber.interrupt(fiber)
      yield* Fiber.interrupt(holder)
      yield* sql.withGroupedTransaction(insert(sql, 2))
      assert.deepStrictEqual(yield* ids(sql), [2])
    })
  )

  it.effect("rolls back a savepoint that is open when its transaction ends, and refuses what is tried in it", () =>
    Effect.gen(function* () {
      const sql = yield* opened
      const [started, goOn] = yield* Effect.all([Deferred.make<void>(), Deferred.make<void>()])
      const open = Effect.gen(function* () {
        yield* insert(sql, 2)
        yield* sql.afterCommit(Effect.die("not committed"))
        yield* Deferred.succeed(started, undefined)
        yield* Deferred.await(goOn)
        const tried: ReadonlyArray<Effect.Effect<unknown, SqlError>> = [
          insert(sql, 3),
          sql.withTransaction(insert(sql, 4)),
          sql`SELECT 1`.values
        ]
        for (const one of tried) assert.strictEqual(yield* Effect.flip(one), transactionEnded)
      })
      const body = Effect.gen(function* () {
        yield* insert(sql, 1)
        const fiber = yield* Effect.forkDetach(sql.withTransaction(open))
        yield* Deferred.await(started)
        const waiting = yield* Effect.forkDetach(sql.withTransaction(insert(sql, 5)), { startImmediately: true })
        return { fiber, waiting }
      })
      const { fiber, waiting } = yield* sql.withGroupedTransaction(body)
      yield* Fiber.join(waiting)
      assert.deepStrictEqual(yield* ids(sql), [1, 5])
      // Not in the transaction of another one either.
      yield* sql.withGroupedTransaction(Effect.andThen(Deferred.succeed(goOn, undefined), Fiber.await(fiber)))
      assert.deepStrictEqual(yield* Fiber.await(fiber), Exit.fail(transactionEnded))
      assert.deepStrictEqual(yield* ids(sql), [1, 5])
    })
  )

  it.effect("keeps invalidations until the commit, and drops those of a transaction that failed", () =>
    Effect.gen(function* () {
      const sql = yield* opened
      const reactivity = yield* Reactivity.Reactivity
      const seen: Array<string> = []
      for (const key of ["kept", "dropped"]) reactivity.registerUnsafe([key], () => void seen.push(key))
      yield* Effect.all(
        [
          sql.withGroupedTransaction(
            Effect.gen(function* () {
              yield* Reactivity.invalidate(["kept"])
              assert.deepStrictEqual(seen, [])
            })
          ),
          Effect.exit(sql.withGroupedTransaction(Effect.andThen(Reactivity.invalidate(["dropped"]), Effect.fail("no"))))
        ],
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(seen, ["kept"])
    }).pipe(Effect.provide(Reactivity.layer))
  )
})
