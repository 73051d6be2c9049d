import { assert, describe, it } from "@effect/vitest"
import * as SqliteClient from "@strata/sqlite/SqliteClient"
import * as Effect from "effect/Effect"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as Statement from "effect/sql/Statement"
import * as Stream from "effect/Stream"
import * as Tracer from "effect/Tracer"

const open = (options?: Partial<SqliteClient.SqliteClientOptions>) =>
  Effect.provide(SqliteClient.make({ filename: ":memory:", ...options }), Reactivity.layer)

const opened = Effect.tap(open(), (sql) => sql`CREATE TABLE t (id INTEGER PRIMARY KEY, value TEXT)`)

describe("statements", () => {
  it.effect("take plain values of every type as parameters, from one template and again", () =>
    Effect.gen(function* () {
      const sql = yield* opened
      const get = (value: unknown) => Effect.map(sql`SELECT ${value} AS v`, (rows) => rows[0]?.v)
      assert.deepStrictEqual(
        yield* Effect.forEach(["text'", 1, 2n, null, undefined, true, new Date(5), new Uint8Array([1, 2])], get),
        ["text'", 1, 2, null, null, 1, 5, new Uint8Array([1, 2])]
      )
    })
  )

  it.effect("take fragments, identifiers and helpers beside plain values", () =>
    Effect.gen(function* () {
      const sql = yield* opened
      yield* sql`INSERT INTO ${sql("t")} ${sql.insert([
        { id: 1, value: "a" },
        { id: 2, value: "b" },
        { id: 3, value: "c" }
      ])}`
      const wanted = sql`id > ${1}`
      assert.isTrue(Statement.isFragment(wanted))
      assert.deepStrictEqual(yield* sql`SELECT value FROM t WHERE ${sql.and([wanted, sql.in("id", [1, 2])])}`, [
        { value: "b" }
      ])
      assert.deepStrictEqual(wanted.compile(), ["id > ?", [1]])
      assert.deepStrictEqual(sql`SELECT ${sql("a.b")}, ${wanted}`.compile(), ['SELECT "a"."b", id > ?', [1]])
    })
  )

  it.effect("can be run in every way, in a transaction and outside", () =>
    Effect.gen(function* () {
      const sql = yield* opened
      yield* sql`INSERT INTO t VALUES (1, 'a'), (2, 'b')`
      const statement = sql<{ readonly value: string }>`SELECT value FROM t WHERE id = ${2}`
      const all = Effect.all([
        statement,
        statement.withoutTransform,
        statement.unprepared,
        Stream.runCollect(statement.stream),
        statement.raw
      ])
      const values = Effect.all([statement.values, statement.valuesUnprepared])
      const rows = [{ value: "b" }]
      for (const around of [sql.withTransaction, sql.withGroupedTransaction, <A>(effect: A) => effect]) {
        assert.deepStrictEqual(yield* around(all), [rows, rows, rows, rows, rows])
        assert.deepStrictEqual(yield* around(values), [[["b"]], [["b"]]])
      }
    })
  )

  it.effect("rename columns of results unless told not to", () =>
    Effect.gen(function* () {
      const sql = yield* open({ transformResultNames: (name) => name.toUpperCase() })
      assert.deepStrictEqual(yield* sql`SELECT ${1} AS a`, [{ A: 1 }])
      assert.deepStrictEqual(yield* sql`SELECT ${1} AS a`.withoutTransform, [{ a: 1 }])
      const plain = sql.withoutTransforms()
      assert.deepStrictEqual(yield* plain`SELECT ${1} AS a`, [{ a: 1 }])
      assert.deepStrictEqual(yield* plain.unsafe("SELECT 1 AS a"), [{ a: 1 }])
      assert.strictEqual(plain.withoutTransforms(), plain)
    })
  )

  it.effect("are a span of a tracer that is there", () =>
    Effect.gen(function* () {
      const sql = yield* opened
      const spans: Array<Tracer.NativeSpan> = []
      const tracer = Tracer.make({
        span: (options) => {
          const span = new Tracer.NativeSpan(options)
          spans.push(span)
          return span
        }
      })
      yield* Effect.andThen(sql`SELECT ${1}`, Effect.exit(sql`SELECT * FROM missing`)).pipe(
        Effect.withSpan("parent"),
        Effect.provideService(Tracer.Tracer, tracer)
      )
      assert.deepStrictEqual(
        spans.map((span) => [span.name, span.attributes.get("db.query.text"), span.status._tag]),
        [
          ["parent", undefined, "Ended"],
          ["sqlite", "SELECT ?", "Ended"],
          ["sqlite", "SELECT * FROM missing", "Ended"]
        ]
      )
    })
  )

  it.effect("pass a transformer that is there", () =>
    Effect.gen(function* () {
      const sql = yield* opened
      const seen: Array<string> = []
      const rows = yield* sql`SELECT ${1} AS a`.pipe(
        Effect.provideService(Statement.CurrentTransformer, (statement, sql) =>
          Effect.sync(() => {
            seen.push(statement.compile()[0])
            return sql`SELECT ${2} AS a`
          })
        )
      )
      assert.deepStrictEqual(rows, [{ a: 2 }])
      assert.deepStrictEqual(seen, ["SELECT ? AS a"])
    })
  )
})
