/** 36 and 37 between two caches that know nothing of each other, over one database. */
import { assert, describe, it } from "@effect/vitest"
import { ArtifactStore } from "@strata/cache/ArtifactStore"
import type { CacheEntry } from "@strata/cache/CacheEntry"
import * as CacheTable from "@strata/cache/CacheTable"
import * as Collector from "@strata/cache/Collector"
import * as StepCache from "@strata/cache/StepCache"
import { StepCacheStorage } from "@strata/cache/StepCacheStorage"
import * as DurableWriter from "@strata/durable/DurableWriter"
import * as Postgres from "@strata/durable/testing/postgres"
import { Journal } from "@strata/journal/Journal"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { keyOf, makeEntry, storeArtifact } from "./support/entries.ts"
import * as Local from "./support/local.ts"

type Built<A> = A extends Layer.Layer<infer S, infer _E, infer _R> ? S : never

type Services = StepCache.StepCache | Built<ReturnType<typeof Local.sqlite>>

/** Caches with connections of their own over one new database; they share the folder of their artifacts. */
type Connect = (count: number) => Effect.Effect<ReadonlyArray<Context.Context<Services>>, unknown, Scope.Scope>

const connectAll = <E>(count: number, layer: Layer.Layer<Services, E>) =>
  Effect.flatMap(Effect.all(Array.from({ length: count }, () => Layer.build(Layer.fresh(layer)))), (built) => {
    const artifacts = Context.get(built[0]!, ArtifactStore)
    // A cache takes its artifact store when it is built.
    return Effect.forEach(built, (context) =>
      Effect.map(Effect.provideContext(StepCache.make(), Context.add(context, ArtifactStore, artifacts)), (cache) =>
        Context.add(Context.add(context, ArtifactStore, artifacts), StepCache.StepCache, cache)
      )
    )
  })

const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "strata-cache-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

const onSqlite: Connect = (count) =>
  Effect.flatMap(temporaryFolder, (folder) =>
    connectAll(count, Layer.provideMerge(StepCache.layer(), Local.sqlite(join(folder, "cache.db"))))
  )

const onPostgres: Connect = (count) =>
  Effect.flatMap(Postgres.schema, (schema) =>
    connectAll(count, Layer.provideMerge(StepCache.layer(), Local.postgresIn(schema)))
  )

const put = (entry: CacheEntry) => StepCache.StepCache.use((cache) => cache.put(entry))

const sound: CacheTable.Verification = { missing: [], unexplained: [], unjoined: [], corrupt: [] }

const suite = (name: string, connect: Connect) => {
  describe(`two connections (${name})`, () => {
    it.live("36: of 16 different results that are put at once, 8 by each, one is inserted", () =>
      Effect.gen(function* () {
        const both = yield* connect(2)
        for (let round = 0; round < 5; round++) {
          const key = keyOf(`round ${round}`)
          const entries = yield* Effect.forEach(Array.from({ length: 16 }), (_, i) =>
            makeEntry({ key, value: { round, i }, by: `writer ${i}` })
          )
          const outcomes = yield* Effect.forEach(
            entries,
            (entry, i) => Effect.provideContext(put(entry), both[i % 2]!),
            { concurrency: "unbounded" }
          )
          const winner = outcomes.findIndex(({ _tag }) => _tag === "Inserted")
          assert.strictEqual(outcomes.filter(({ _tag }) => _tag === "Inserted").length, 1)
          for (const [i, outcome] of outcomes.entries()) {
            if (i === winner) continue
            assert.strictEqual(outcome._tag, "Conflict")
            assert.deepStrictEqual(outcome._tag === "Conflict" && outcome.entry, entries[winner])
          }
        }
        for (const one of both) {
          const journaled = yield* Effect.provideContext(
            Journal.use((journal) => journal.readAll()),
            one
          )
          assert.strictEqual(journaled.filter(({ type }) => type === "cache-recorded").length, 5)
          assert.strictEqual(journaled.filter(({ type }) => type === "cache-conflict").length, 5 * 15)
          assert.deepStrictEqual(yield* Effect.provideContext(CacheTable.verify(), one), sound)
        }
      })
    )

    it.live("36: a put waits for one that is not committed, and then knows it", () =>
      Effect.gen(function* () {
        const [here, there] = yield* connect(2)
        const key = keyOf("a")
        const first = yield* makeEntry({ key, value: 1 })
        const second = yield* makeEntry({ key, value: 2 })
        const inside = yield* Deferred.make<void>()
        const leave = yield* Deferred.make<void>()
        const writing = yield* DurableWriter.write(
          Effect.gen(function* () {
            const outcome = yield* put(first)
            yield* Deferred.succeed(inside, undefined)
            yield* Deferred.await(leave)
            return outcome
          })
        ).pipe(Effect.provideContext(here!), Effect.forkChild)
        yield* Deferred.await(inside)
        const waiting = yield* Effect.forkChild(Effect.provideContext(put(second), there!))
        yield* Effect.sleep("50 millis")
        yield* Deferred.succeed(leave, undefined)
        assert.strictEqual((yield* Fiber.join(writing))._tag, "Inserted")
        const outcome = yield* Fiber.join(waiting)
        assert.deepStrictEqual(outcome._tag === "Conflict" && outcome.entry, first)
      })
    )

    it.live("37: many puts and evictions from both leave tables that the journal explains", () =>
      Effect.gen(function* () {
        const both = yield* connect(2)
        const keys = ["a", "b", "c", "d"].map(keyOf)
        yield* Effect.forEach(
          Array.from({ length: 60 }, (_, i) => i),
          (i) =>
            Effect.gen(function* () {
              const key = keys[i % 4]!
              if (i % 5 === 4) return yield* Effect.asVoid(StepCache.StepCache.use((cache) => cache.evict(key)))
              yield* put(yield* makeEntry({ key, value: i % 3, by: `writer ${i}` }))
            }).pipe(Effect.provideContext(both[i % 2]!)),
          { concurrency: 8, discard: true }
        )
        const [here, there] = both
        const heads = StepCacheStorage.use((storage) => storage.heads("", 10))
        assert.deepStrictEqual(yield* Effect.provideContext(CacheTable.verify(), there!), sound)
        const before = yield* Effect.provideContext(heads, here!)
        yield* Effect.provideContext(CacheTable.rebuild(), here!)
        const after = yield* Effect.provideContext(heads, there!)
        assert.deepStrictEqual(
          after.map((head) => ({ ...head, usedAt: 0 })),
          before.map((head) => ({ ...head, usedAt: 0 }))
        )
      })
    )

    it.live("47: a blob that an entry is about to name is not collected", () =>
      Effect.gen(function* () {
        const [here, there] = yield* connect(2)
        for (let i = 0; i < 20; i++) {
          const artifact = yield* Effect.provideContext(storeArtifact("out", `blob ${i}`), here!)
          const entry = yield* makeEntry({ key: keyOf(`${i}`), value: i, artifacts: [artifact] })
          yield* Effect.sleep("2 millis")
          const [recorded] = yield* Effect.all(
            [
              Effect.provideContext(Effect.exit(put(entry)), here!),
              Effect.provideContext(Collector.collect({ grace: 0 }), there!)
            ],
            { concurrency: "unbounded" }
          )
          const found = yield* Effect.provideContext(
            StepCache.StepCache.use((cache) => cache.get(entry.key)),
            here!
          )
          // Either the collector came first, and the put was refused, or the blob has stayed.
          assert.strictEqual(found._tag, recorded._tag === "Success" ? "Hit" : "Miss")
          if (found._tag === "Miss") assert.strictEqual(found.reason._tag, "Absent")
        }
        assert.deepStrictEqual(yield* Effect.provideContext(CacheTable.verify(), here!), sound)
      })
    )
  })
}

suite("SQLite", onSqlite)

describe.skipIf(!Postgres.isAvailable())("Postgres", () => suite("Postgres", onPostgres))
