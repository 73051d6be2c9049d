/** Publication and lookups through a real nginx, on SQLite and the file system: C1, C2, C4, C8, and what restarts need. */
import { assert, describe, it } from "@effect/vitest"
import * as Changelog from "@strata/dirty-queue/Changelog"
import * as ChangeSignal from "@strata/dirty-queue/ChangeSignal"
import * as DirtyQueue from "@strata/dirty-queue/DirtyQueue"
import { FollowerName, Scope } from "@strata/dirty-queue/Path"
import * as DurableWriter from "@strata/durable/DurableWriter"
import * as Journal from "@strata/journal/Journal"
import * as SqliteClient from "@strata/sqlite/SqliteClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as ArtifactStore from "../src/ArtifactStore.ts"
import * as Cache from "../src/Cache.ts"
import * as CacheEvents from "../src/CacheEvents.ts"
import * as HttpCache from "../src/HttpCache.ts"
import { Publication, queueOptions } from "../src/Publication.ts"
import { StepCache } from "../src/StepCache.ts"
import * as Nginx from "../src/testing/nginx.ts"
import { keyOf, makeEntry, storeArtifact } from "./support/entries.ts"

const isInstalled = Effect.runSync(Nginx.isInstalled)

const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "strata-cache-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

/** A machine that keeps its state in a folder, so that it can be started again. */
const machine = (folder: string, url: string | undefined, options?: Pick<Cache.CacheOptions, "publication">) =>
  Cache.layerSql({
    directory: join(folder, "blobs"),
    remote:
      url === undefined
        ? undefined
        : {
            steps: HttpCache.stepCache({ url, name: "http" }),
            artifacts: HttpCache.artifactStore({ url, name: "http" })
          },
    sharing: { guard: { openBase: "100 millis", openCap: "200 millis" } },
    publication: { pauseBase: "50 millis", pauseCap: "200 millis", ...options?.publication }
  }).pipe(
    Layer.provideMerge(Layer.mergeAll(Changelog.layer(), Journal.layerSql())),
    Layer.provideMerge(Layer.mergeAll(DurableWriter.layer(), ChangeSignal.layer)),
    Layer.provideMerge(SqliteClient.layer({ filename: join(folder, "cache.db") }))
  )

const record = (name: string, texts: ReadonlyArray<string> = []) =>
  Effect.gen(function* () {
    const artifacts = yield* Effect.forEach(texts, (text, i) => storeArtifact(`${i}`, text))
    const entry = yield* makeEntry({ key: keyOf(name), value: { name }, artifacts })
    const outcome = yield* StepCache.use((cache) => cache.put(entry))
    assert.strictEqual(outcome._tag, "Inserted")
    return entry
  })

const status = Publication.use((publication) => publication.status)

const awaitPublished = (count: number) =>
  Effect.gen(function* () {
    for (let i = 0; i < 1000; i++) {
      const { pending, published } = yield* status
      if (published === count && pending === 0) return
      yield* Effect.sleep("10 millis")
    }
    return yield* Effect.die(`in vain: ${JSON.stringify(yield* status)}`)
  })

const refusals = Effect.map(
  Journal.Journal.use((journal) => journal.read({ stream: CacheEvents.stream, types: ["cache-publication-refused"] })),
  (entries) => entries.length
)

const find = (name: string) => StepCache.use((cache) => cache.get(keyOf(name)))

describe.skipIf(!isInstalled)("Publication to nginx", () => {
  it.live("what one machine records another one finds, with its artifacts (C2, C8)", () =>
    Effect.gen(function* () {
      const { url } = yield* Nginx.make()
      const [a, b] = [yield* temporaryFolder, yield* temporaryFolder]
      const onB = yield* Layer.build(machine(b, url))
      assert.deepStrictEqual(yield* Effect.provideContext(find("x"), onB), { _tag: "Miss", reason: { _tag: "Absent" } })
      const entry = yield* Effect.provide(
        Effect.tap(record("x", ["some text", "", "x".repeat(100_000)]), () => awaitPublished(1)),
        machine(a, url)
      )
      const found = yield* Effect.provideContext(find("x"), onB)
      assert.deepStrictEqual(found, { _tag: "Hit", entry, tier: "http" })
      const bytes = yield* Effect.provideContext(ArtifactStore.bytes(entry.artifacts[2]!), onB)
      assert.strictEqual(bytes.length, 100_000)
    }).pipe(Effect.scoped)
  )

  it.live("what was not published when a machine was switched off is published after a restart", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const { url } = yield* Nginx.make()
      const away = "http://127.0.0.1:9/"
      // The name of the tier is the same, so that it is the same server to the machine.
      const refused = yield* Effect.provide(
        Effect.gen(function* () {
          yield* Effect.forEach(["a", "b", "c"], (name) => record(name, [name]))
          yield* Effect.sleep("300 millis")
          const { dead, pending, published } = yield* status
          assert.deepStrictEqual({ dead, pending, published }, { dead: 0, pending: 3, published: 0 })
          return yield* refusals
        }),
        machine(folder, away)
      )
      assert.isAtLeast(refused, 1)
      yield* Effect.provide(awaitPublished(3), machine(folder, url))
      const other = yield* temporaryFolder
      const found = yield* Effect.provide(Effect.forEach(["a", "b", "c"], find), machine(other, url))
      assert.deepStrictEqual(
        found.map((lookup) => lookup._tag),
        ["Hit", "Hit", "Hit"]
      )
    }).pipe(Effect.scoped)
  )

  it.live("entries from before there was a shared tier are published, those that came from it are not", () =>
    Effect.gen(function* () {
      const { root, url } = yield* Nginx.make()
      const [first, second] = [yield* temporaryFolder, yield* temporaryFolder]
      yield* Effect.provide(
        Effect.forEach(["a", "b"], (name) => record(name, [name])),
        machine(first, undefined)
      )
      yield* Effect.provide(awaitPublished(2), machine(first, url))
      assert.isTrue(existsSync(join(root, "ac", keyOf("a"))))
      yield* Effect.provide(
        Effect.gen(function* () {
          assert.strictEqual((yield* find("a"))._tag, "Hit")
          yield* record("c")
          yield* awaitPublished(1)
        }),
        machine(second, url)
      )
    }).pipe(Effect.scoped)
  )

  it.live("the end of a machine publishes what it can, within its time", () =>
    Effect.gen(function* () {
      const { root, url } = yield* Nginx.make()
      const folder = yield* temporaryFolder
      const names = Array.from({ length: 40 }, (_, i) => `entry-${i}`)
      yield* Effect.provide(
        Effect.forEach(names, (name) => record(name, [name])),
        machine(folder, url)
      )
      for (const name of names) assert.isTrue(existsSync(join(root, "ac", keyOf(name))), name)
    }).pipe(Effect.scoped)
  )

  it.live("what was on its way each time that a process was killed is published all the same", () =>
    Effect.gen(function* () {
      const { url } = yield* Nginx.make()
      const folder = yield* temporaryFolder
      const follower = FollowerName.make("publication@http")
      const scope = Scope.make("~cache")
      // There is nothing to backfill any more, which would send the entry too.
      yield* Effect.provide(status, machine(folder, url))
      // As processes do that die with their claims.
      yield* Effect.provide(
        Effect.gen(function* () {
          const queue = yield* DirtyQueue.DirtyQueue
          yield* queue.register({ follower, scope })
          yield* record("x")
          for (let kills = 0; kills < 50; kills++) {
            assert.lengthOf(yield* queue.claim({ follower, scope, limit: 1, lease: "1 millis" }), 1)
            yield* Effect.sleep("2 millis")
          }
          assert.deepStrictEqual(yield* queue.deadLetters(), [])
        }),
        Layer.provideMerge(DirtyQueue.layer(queueOptions), machine(folder, undefined))
      )
      yield* Effect.provide(awaitPublished(1), machine(folder, url))
    }).pipe(Effect.scoped)
  )

  it.live("a result that is too large for the server is a dead letter, and told once", () =>
    Effect.gen(function* () {
      const { url } = yield* Nginx.make({ maxBodySize: 50_000 })
      const folder = yield* temporaryFolder
      yield* Effect.provide(
        Effect.gen(function* () {
          yield* record("small", ["small"])
          yield* record("large", ["x".repeat(100_000)])
          for (let i = 0; i < 500 && (yield* status).dead === 0; i++) yield* Effect.sleep("10 millis")
          const {
            dead,
            refusals: [refusal]
          } = yield* status
          assert.strictEqual(dead, 1)
          assert.deepInclude(refusal?.refusal, { stage: "artifact", kind: "TooLarge", size: 100_000, outlook: "never" })
          assert.strictEqual(yield* refusals, 1)
          assert.strictEqual((yield* find("large"))._tag, "Hit")
        }),
        machine(folder, url)
      )
    }).pipe(Effect.scoped)
  )

  it.live("a blob that the server lost is a miss, and is sent again by who records it anew (C1)", () =>
    Effect.gen(function* () {
      const { root, url } = yield* Nginx.make()
      const [a, b, c] = [yield* temporaryFolder, yield* temporaryFolder, yield* temporaryFolder]
      const entry = yield* Effect.provide(
        Effect.tap(record("x", ["blob"]), () => awaitPublished(1)),
        machine(a, url)
      )
      const { digest } = entry.artifacts[0]!
      rmSync(join(root, "cas", digest))
      yield* Effect.provide(
        Effect.gen(function* () {
          assert.deepStrictEqual(yield* find("x"), {
            _tag: "Miss",
            reason: { _tag: "ArtifactMissing", digests: [digest] }
          })
          yield* record("x", ["blob"])
          yield* awaitPublished(1)
        }),
        machine(b, url)
      )
      assert.strictEqual((yield* Effect.provide(find("x"), machine(c, url)))._tag, "Hit")
    }).pipe(Effect.scoped)
  )
})
