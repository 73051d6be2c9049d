import { assert, describe, it } from "@effect/vitest"
import {
  CatchUp,
  Changelog,
  ContentReader,
  DirtyQueue,
  DurableWriter,
  Follower,
  FollowerScheduler,
  type IndexWriter,
  Path,
  type PostgresClient,
  SqliteClient,
  Strata
} from "@strata/strata"
import type * as Config from "effect/Config"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import type * as Migrator from "effect/sql/Migrator"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import * as TestClock from "effect/testing/TestClock"
import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expectTypeOf } from "vitest"

const scope = Path.Scope.make("main")

const record = (path: string) =>
  Effect.gen(function* () {
    const changelog = yield* Changelog.Changelog
    const writer = yield* DurableWriter.DurableWriter
    yield* writer.write(changelog.record([Changelog.put({ scope, path: Path.Path.make(path) })]))
  })

const remember = () => {
  const seen: Array<string> = []
  const writer: IndexWriter.Idempotent<string> = {
    mode: "idempotent",
    write: ({ upserts }) => Effect.sync(() => void seen.push(...upserts.map((upsert) => upsert.path)))
  }
  return { seen, writer }
}

const startFollower = (writer: IndexWriter.Idempotent<string>) =>
  Effect.gen(function* () {
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

const tempFile = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "strata-bundle-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  ),
  (folder) => join(folder, "test.db")
)

describe("Strata", () => {
  it.effect("layerTest obeys TestClock and starts empty", () =>
    Effect.gen(function* () {
      const { seen, writer } = remember()
      const follower = yield* startFollower(writer)
      yield* record("a")
      const caughtUp = yield* Effect.forkChild(CatchUp.awaitCaughtUp(follower))
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(caughtUp)
      assert.deepStrictEqual(seen, ["a"])
    }).pipe(Effect.provide(Strata.layerTest))
  )

  it.live("wakes a follower for a change that another connection recorded", () =>
    Effect.gen(function* () {
      const filename = yield* tempFile
      const here = yield* Layer.build(Strata.layerSqlite({ filename, pollInterval: "20 millis" }))
      const there = yield* Layer.build(Layer.fresh(Strata.layerSqlite({ filename })))
      const { seen, writer } = remember()
      yield* Effect.provideContext(startFollower(writer), here)
      yield* Effect.sleep("100 millis")
      yield* Effect.provideContext(record("from there"), there)
      const start = performance.now()
      while (seen.length === 0 && performance.now() - start < 3_000) yield* Effect.sleep("5 millis")
      assert.deepStrictEqual(seen, ["from there"])
      assert.isBelow(performance.now() - start, 1_000)
    })
  )

  it.live("reads through the reader while a write holds the client", () =>
    Effect.gen(function* () {
      const filename = yield* tempFile
      yield* Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const reader = yield* SqliteClient.SqliteReader
        yield* sql`CREATE TABLE t (id INTEGER)`
        yield* sql.withTransaction(
          Effect.gen(function* () {
            yield* sql`INSERT INTO t VALUES (1)`
            assert.deepStrictEqual(yield* Effect.timeout(reader`SELECT * FROM t`, "1 second"), [])
          })
        )
        assert.strictEqual((yield* reader`SELECT * FROM t`).length, 1)
      }).pipe(Effect.provide(Strata.layerSqlite({ filename })))
    })
  )

  it.live("layerConfig reads the environment, and refuses what makes no sense", () =>
    Effect.gen(function* () {
      const filename = yield* tempFile
      const configured = (env: Record<string, string>) =>
        Effect.provide(
          Effect.gen(function* () {
            const sql = yield* SqlClient.SqlClient
            return (yield* sql.unsafe("PRAGMA synchronous").values)[0]?.[0]
          }),
          Layer.fresh(Strata.layerConfig).pipe(Layer.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env }))))
        )
      const synchronous = yield* configured({
        STRATA_DATABASE: filename,
        STRATA_SYNCHRONOUS: "NORMAL",
        STRATA_LEASE: "10 seconds",
        STRATA_MAX_ATTEMPTS: "3"
      })
      assert.strictEqual(synchronous, 1)
      assert.isTrue(existsSync(filename))
      const error = yield* Effect.flip(configured({ STRATA_DATABASE: filename, STRATA_SYNCHRONOUS: "SOMETIMES" }))
      assert.strictEqual(error._tag, "ConfigError")
      const other = yield* Effect.flip(configured({ STRATA_DATABASE: "mysql://root:secret@localhost/app" }))
      assert.strictEqual(other._tag, "PostgresClientError")
      assert.notInclude(String(other), "secret")
      assert.isFalse(existsSync("mysql:"))
    })
  )

  it.effect("is ready unless a change has waited for too long", () =>
    Effect.gen(function* () {
      const queue = yield* DirtyQueue.DirtyQueue
      yield* queue.register({ follower: Path.FollowerName.make("test@1"), scope })
      yield* Strata.ready()
      yield* record("a")
      yield* TestClock.adjust("59 seconds")
      yield* Strata.ready()
      yield* TestClock.adjust("2 seconds")
      const error = yield* Effect.flip(Strata.ready())
      assert.strictEqual(error._tag, "NotReady")
      assert.strictEqual(error.message, "The oldest change has waited 61000 ms, more than 60000 ms")
      yield* Strata.ready({ maxAge: "2 minutes" })
    }).pipe(Effect.provide(Strata.layerTest))
  )

  it("infers what layers and operations need and how they fail", () => {
    expectTypeOf(Strata.layerTest).toEqualTypeOf<Layer.Layer<Strata.Services>>()
    expectTypeOf(Strata.layerConfig).toEqualTypeOf<
      Layer.Layer<
        Strata.Services | SqlClient.SqlClient,
        Config.ConfigError | SqlError | Migrator.MigrationError | PostgresClient.PostgresClientError
      >
    >()
    const inside = Changelog.Changelog.use((changelog) => changelog.record([]))
    expectTypeOf<Effect.Services<typeof inside>>().toEqualTypeOf<Changelog.Changelog | DurableWriter.WriteTransaction>()
    const outside = DurableWriter.write(inside)
    expectTypeOf<Effect.Services<typeof outside>>().toEqualTypeOf<Changelog.Changelog | DurableWriter.DurableWriter>()
    assert.isTrue(Context.isContext(Context.empty()))
  })
})
