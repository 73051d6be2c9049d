import { assert, describe, it } from "@effect/vitest"
import * as Changelog from "@strata/dirty-queue/Changelog"
import type * as DirtyQueue from "@strata/dirty-queue/DirtyQueue"
import {
  ack,
  claim,
  claimOne,
  fail,
  home,
  numbered,
  path,
  putAll,
  type Recorder,
  register,
  rows
} from "@strata/dirty-queue/testing/fixture"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import * as Schema from "../src/internal/schema.ts"
import * as Statements from "../src/internal/statements.ts"
import * as Tiers from "./tiers.ts"

const trigger = Schema.migrationsSqlite.migrations["1_initial"]?.find((text) => text.includes("CREATE TRIGGER")) ?? ""

/** Statements and how many parameters they have. */
const hot: Record<string, readonly [statement: string, parameters: number]> = {
  // A plan does not show what triggers do.
  fanOut: [trigger.slice(trigger.indexOf("SELECT"), trigger.indexOf("ON CONFLICT")).replaceAll(/NEW\.\w+/g, "'x'"), 0],
  stats: [Statements.stats({ follower: false, scope: false }), 1],
  appendChanges: [Statements.appendChanges, 2],
  lastSeq: [Statements.lastSeq, 0],
  peek: [Statements.peek, 2],
  drawVersion: [Statements.drawVersion, 0],
  claim: [Statements.claim, 7],
  setCredit: [Statements.setCredit, 2],
  survey: [Statements.survey, 5],
  bury: [Statements.bury, 5],
  claimAsDrawn: [Statements.claimAsDrawn, 7],
  addCredit: [Statements.addCredit, 2],
  enqueueAsDrawn: [Statements.enqueueAsDrawn, 4],
  reviveAsDrawn: [Statements.reviveAsDrawn({ follower: true, scope: true, path: true }), 6],
  ack: [Statements.ack, 1],
  ackSuperseded: [Statements.ackSuperseded, 1],
  fail: [Statements.fail, 4],
  release: [Statements.release, 3],
  renew: [Statements.renew, 2],
  enqueue: [Statements.enqueue, 4],
  readyScopes: [Statements.readyScopes, 3],
  markServed: [Statements.markServed, 3],
  nextReadyAt: [Statements.nextReadyAt({ follower: true, scope: true }), 2],
  nextReadyAtOfFollower: [Statements.nextReadyAt({ follower: true, scope: false }), 1],
  pending: [Statements.listRows("all", { follower: true, scope: true }), 7],
  pendingOfAll: [Statements.listRows("all", { follower: false, scope: false }), 5],
  failing: [Statements.listRows("failing", { follower: true, scope: false }), 6],
  deadLetters: [Statements.listRows("dead", { follower: false, scope: false }), 5],
  revive: [Statements.revive({ follower: true, scope: true, path: true }), 6],
  readChanges: [Statements.readChanges(true), 4],
  firstSeqSince: [Statements.firstSeqSince, 1]
}

const planOf = (statement: string, parameters: number) =>
  SqlClient.SqlClient.use((sql) =>
    Effect.map(
      sql.unsafe(
        `EXPLAIN QUERY PLAN ${statement}`,
        Array.from({ length: parameters }, () => null)
      ).values,
      (steps) => steps.map((step) => String(step[3]))
    )
  )

/** Whether a plan visits dirty rows or changes that it does not need, or sorts. */
const isCostly = (step: string) =>
  /^SCAN (strata_dirty|d)\b(?!_)/.test(step) || /TEMP B-TREE|AUTOMATIC|ANY\(/.test(step)

const assertPlans = Effect.gen(function* () {
  for (const [name, [statement, parameters]] of Object.entries(hot)) {
    const steps = yield* planOf(statement, parameters)
    assert.deepStrictEqual(steps.filter(isCostly), [], `${name}: ${steps.join("; ")}`)
  }
  assert.match((yield* planOf(...hot.fanOut!)).join(), /SEARCH r USING INDEX strata_follower_scope/)
})

describe("SQLite", () => {
  it.effect("finds rows by index, and never sorts, before and after ANALYZE", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* register()
      yield* assertPlans
      yield* putAll(...numbered(3000))
      yield* ack(...(yield* claim(10)))
      yield* sql`ANALYZE`
      yield* assertPlans
      // The test itself has to tell a costly plan from a cheap one.
      const costly = yield* planOf("SELECT path FROM strata_dirty NOT INDEXED WHERE ready_at < 1 ORDER BY ready_at", 0)
      assert.strictEqual(costly.filter(isCostly).length, 2)
    }).pipe(Effect.provide(Tiers.sqlite()))
  )

  it.effect("writes nothing when nothing is ready", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const changes = Effect.map(sql`SELECT total_changes() AS n`.values, ([row]) => row?.[0])
      yield* register()
      yield* putAll("a")
      yield* claimOne
      const before = yield* changes
      assert.deepStrictEqual(yield* claim(), [])
      assert.strictEqual(yield* changes, before)
    }).pipe(Effect.provide(Tiers.sqlite()))
  )

  it.effect("keeps what a Schema would refuse out of the tables", () =>
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
        "UPDATE strata_dirty SET registration = 99",
        "INSERT INTO strata_dirty_version (id, value) VALUES (2, 0)"
      ]) {
        const error = yield* Effect.flip(sql.unsafe(statement))
        assert.strictEqual(error.reason._tag, "ConstraintError", statement)
      }
    }).pipe(Effect.provide(Tiers.sqlite()))
  )

  it.effect("marks paths dirty whoever writes the changelog", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* register()
      yield* sql`INSERT INTO strata_changelog (scope, path, op, recorded_at) VALUES (${home}, 'a', 'put', 5)`
      assert.deepInclude((yield* rows)[0], { path: path("a"), dirtyAt: 5 })
    }).pipe(Effect.provide(Tiers.sqlite()))
  )

  it.effect("advances hints only with a greater sequence number, and the version always", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* register()
      const insert = (seq: number, cid: string) =>
        sql`INSERT INTO strata_changelog (seq, scope, path, op, cid, recorded_at) VALUES (${seq}, ${home}, 'a', 'put', ${cid}, 0)`
      yield* insert(5, "new")
      const [before] = yield* rows
      yield* insert(4, "old")
      const [after] = yield* rows
      assert.deepInclude(after, { seq: 5, cid: "new" })
      assert.isAbove(after!.version, before!.version)
    }).pipe(Effect.provide(Tiers.sqlite()))
  )

  it.effect("goes on after a restart where it was, and old answers change nothing (Q9)", () =>
    Effect.gen(function* () {
      const filename = yield* Tiers.tempFile
      const start = <A, E>(effect: Effect.Effect<A, E, Changelog.Changelog | DirtyQueue.DirtyQueue | Recorder>) =>
        Effect.provide(effect, Layer.fresh(Tiers.sqlite(undefined, filename)))

      const old = yield* start(
        Effect.gen(function* () {
          const changelog = yield* Changelog.Changelog
          yield* register()
          yield* putAll("a", "b")
          const [a, b] = yield* claim()
          yield* fail(b!)
          yield* changelog.prune({ before: { seq: 1000 } })
          return a!
        })
      )
      yield* start(
        Effect.gen(function* () {
          const changelog = yield* Changelog.Changelog
          yield* putAll("a")
          assert.deepStrictEqual(
            (yield* changelog.read()).map((entry) => entry.seq),
            [3]
          )
          assert.deepStrictEqual(yield* ack(old), ["Superseded"])
          assert.deepStrictEqual(yield* ack(old), ["Lost"])
          assert.deepStrictEqual(
            (yield* rows).map((row) => [row.path, row.state, row.attempts]),
            [
              ["a", "ready", 0],
              ["b", "delayed", 1]
            ]
          )
        })
      )
    })
  )

  it.effect("never reads through a rename of columns", () =>
    Effect.gen(function* () {
      yield* register()
      yield* putAll("a")
      assert.strictEqual((yield* claimOne).path, "a")
    }).pipe(
      Effect.provide(
        Tiers.sqlite(undefined, ":memory:", {
          transformResultNames: (name) => name.toUpperCase(),
          transformQueryNames: (name) => name.toLowerCase()
        })
      )
    )
  )

  it("has one statement for what changes and backfills have in common", () => {
    assert.include(trigger, Schema.refreshed())
    assert.include(Statements.enqueue, Schema.refreshed())
  })
})
