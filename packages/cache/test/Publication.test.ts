import { assert, describe, it } from "@effect/vitest"
import * as Changelog from "@strata/dirty-queue/Changelog"
import * as ChangeSignal from "@strata/dirty-queue/ChangeSignal"
import * as DirtyQueue from "@strata/dirty-queue/DirtyQueue"
import * as MemoryStore from "@strata/dirty-queue/MemoryStore"
import * as DurableWriter from "@strata/durable/DurableWriter"
import * as Journal from "@strata/journal/Journal"
import * as SqliteClient from "@strata/sqlite/SqliteClient"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Cache from "../src/Cache.ts"
import type { PublicationOptions } from "../src/Publication.ts"
import { StepCache } from "../src/StepCache.ts"
import { combinedSuite } from "./support/combinedSuite.ts"
import { publicationSuite, remoteOf, shared } from "./support/publicationSuite.ts"
import { keyOf, makeEntry } from "./support/entries.ts"
import { hanging } from "./support/tiers.ts"

const memory = (remote: Cache.Remote | undefined, publication?: PublicationOptions) =>
  Cache.layerMemory({ remote, publication }).pipe(
    Layer.provideMerge(Layer.mergeAll(Changelog.layerMemory(), DirtyQueue.layerMemory(), Journal.layerMemory())),
    Layer.provide(MemoryStore.layer),
    Layer.provideMerge(Layer.mergeAll(DurableWriter.layerMemory(), ChangeSignal.layer))
  )

const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "strata-cache-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

const sqlite = (remote: Cache.Remote | undefined) =>
  Layer.unwrap(
    Effect.map(temporaryFolder, (folder) =>
      Cache.layerSql({ directory: join(folder, "blobs"), remote }).pipe(
        Layer.provideMerge(Layer.mergeAll(Changelog.layer(), DirtyQueue.layer(), Journal.layerSql())),
        Layer.provideMerge(Layer.mergeAll(DurableWriter.layer(), ChangeSignal.layer)),
        Layer.provideMerge(SqliteClient.layer({ filename: join(folder, "cache.db") }))
      )
    )
  )

publicationSuite("memory", { layer: (remote) => memory(remote), hours: 2 })

publicationSuite("SQLite", { layer: sqlite, hours: 1 })

combinedSuite("memory", (remote) => memory(remote))

combinedSuite("SQLite", sqlite)

describe("Publication", () => {
  it.live("the end of the layer waits no longer than it is told for a tier that never answers", () =>
    Effect.gen(function* () {
      const tier = shared()
      tier.steps.mood = hanging
      const [time] = yield* Effect.timed(
        Effect.gen(function* () {
          const entry = yield* makeEntry({ key: keyOf("a"), value: 1 })
          yield* StepCache.use((cache) => cache.put(entry))
          while (tier.steps.calls.length === 0) yield* Effect.sleep("1 millis")
        }).pipe(Effect.provide(memory(remoteOf(tier), { drainTimeout: "300 millis" })))
      )
      assert.isAtLeast(Duration.toMillis(time), 300)
      assert.isBelow(Duration.toMillis(time), 3000)
      // Once more, in the drain.
      assert.deepStrictEqual(tier.steps.calls, ["get", "get"])
    })
  )
})
