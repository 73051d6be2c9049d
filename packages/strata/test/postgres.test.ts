import { assert, describe, it } from "@effect/vitest"
import * as Postgres from "@strata/durable/testing/postgres"
import {
  Action,
  Artifacts,
  CatchUp,
  Changelog,
  ContentReader,
  DirtyQueue,
  DurableWriter,
  Follower,
  FollowerScheduler,
  type IndexWriter,
  Path,
  Strata
} from "@strata/strata"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as SqlClient from "effect/sql/SqlClient"
import * as Stream from "effect/Stream"

/** A database of its own, as an app names it. */
const database = Effect.map(Postgres.schema, (schema) =>
  Redacted.make(`${process.env["STRATA_TEST_POSTGRES"]}?schema=${schema}`)
)

const bundle = (url: Redacted.Redacted) =>
  Layer.fresh(Strata.layerCachePostgres({ url }).pipe(Layer.provideMerge(Strata.layerPostgres({ url }))))

const scope = Path.Scope.make("main")

describe.skipIf(!Postgres.isAvailable())("the bundle on Postgres", () => {
  it.live("wakes a follower here for a change that another machine recorded", () =>
    Effect.gen(function* () {
      const url = yield* database
      const here = yield* Layer.build(bundle(url))
      const there = yield* Layer.build(bundle(url))
      const seen: Array<string> = []
      const writer: IndexWriter.Idempotent<string> = {
        mode: "idempotent",
        write: ({ upserts }) => Effect.sync(() => void seen.push(...upserts.map(({ path }) => path)))
      }
      const start = Effect.gen(function* () {
        const follower = yield* Follower.make({
          name: "test",
          version: "1",
          scope,
          queue: yield* DirtyQueue.DirtyQueue,
          reader: ContentReader.fromLookup(({ path }) => Effect.succeedSome(`content of ${path}`)),
          writer
        })
        yield* FollowerScheduler.FollowerScheduler.use((scheduler) => scheduler.run(follower))
        return follower
      })
      const follower = yield* Effect.provideContext(start, here)
      const record = Effect.gen(function* () {
        const changelog = yield* Changelog.Changelog
        yield* DurableWriter.write(changelog.record([Changelog.put({ scope, path: Path.Path.make("from there") })]))
      })
      yield* Effect.provideContext(record, there)
      yield* CatchUp.awaitCaughtUp(follower, { scope, timeout: "10 seconds" })
      assert.deepStrictEqual(seen, ["from there"])
    })
  )

  it.live("gives another machine the result of an action, with its artifacts", () =>
    Effect.gen(function* () {
      const url = yield* database
      let runs = 0
      const action = Action.make({
        name: "shout",
        version: "1",
        input: Schema.String,
        success: Schema.Int,
        run: (text) =>
          Effect.gen(function* () {
            runs++
            yield* Artifacts.add("loud", Stream.succeed(new TextEncoder().encode(text.toUpperCase())))
            return text.length
          })
      })
      for (const decision of ["ran", "local-hit"] as const) {
        const outcome = yield* Effect.provide(Action.result(action, "hey"), bundle(url))
        assert.deepInclude(outcome, { value: 3, decision })
        assert.deepStrictEqual(
          outcome.artifacts.map(({ name, size }) => [name, size]),
          [["loud", 3]]
        )
      }
      assert.strictEqual(runs, 1)
    })
  )

  it.live("is what layerConfig gives for a URL", () =>
    Effect.gen(function* () {
      const url = yield* database
      const env = { STRATA_DATABASE: Redacted.value(url), STRATA_LEASE: "10 seconds" }
      const dialect = yield* Effect.provide(
        SqlClient.SqlClient.use((sql) =>
          Effect.succeed(sql.onDialectOrElse({ pg: () => "pg", orElse: () => "other" }))
        ),
        Strata.layerConfig.pipe(Layer.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env }))))
      )
      assert.strictEqual(dialect, "pg")
      const wrong = { STRATA_DATABASE: "postgres://user:hunter2@/db" }
      const error = yield* Effect.flip(
        Layer.build(
          Strata.layerConfig.pipe(Layer.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env: wrong }))))
        )
      )
      assert.strictEqual(error._tag, "PostgresClientError")
      assert.notInclude(error.message, "hunter2")
    })
  )
})
