/**
 * The step cache. Its keys and the digests of its results are in no order by their nature, so that each lookup and each
 * entry is on pages of its own in the large one.
 */
import { ArtifactStore } from "@strata/cache/ArtifactStore"
import { type CacheEntry, Recording } from "@strata/cache/CacheEntry"
import * as StepCache from "@strata/cache/StepCache"
import * as StepCacheStorage from "@strata/cache/StepCacheStorage"
import { StepKey } from "@strata/cache/StepKey"
import * as Changelog from "@strata/dirty-queue/Changelog"
import * as ChangeSignal from "@strata/dirty-queue/ChangeSignal"
import { sha256 } from "@strata/durable/Digest"
import * as DurableWriter from "@strata/durable/DurableWriter"
import * as Journal from "@strata/journal/Journal"
import * as SqliteClient from "@strata/sqlite/SqliteClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import { join } from "node:path"
import type { Operation } from "../growth.ts"
import { temporaryFolder } from "../Harness.ts"
import { measuredRows, microsecondsPerRow } from "./database.ts"

const make = Effect.gen(function* () {
  const filename = join(yield* temporaryFolder, "cache.db")
  return yield* Layer.build(
    StepCache.layerSql().pipe(
      Layer.provide(Layer.mergeAll(StepCacheStorage.layerSql, Journal.layerSql(), Changelog.layer(), noArtifacts)),
      Layer.provideMerge(Layer.mergeAll(ChangeSignal.layer, DurableWriter.layer())),
      Layer.provideMerge(SqliteClient.layer({ filename, synchronous: "OFF" }))
    )
  )
})

/** No entry names an artifact. */
const noArtifacts = Layer.mock(ArtifactStore, { name: "none" })

const toKey = (i: number) => StepKey.make(sha256(`key ${i}`))

/** With a result of some 200 bytes. */
const toEntry = (i: number): CacheEntry => {
  const result = JSON.stringify({ index: i, text: "x".repeat(180) })
  return {
    key: toKey(i),
    result,
    digest: sha256(result),
    artifacts: [],
    metadata: {
      recording: Recording.make(i.toString(16).padStart(32, "0")),
      recordedBy: "bench",
      recordedAt: 0,
      action: "bench",
      version: "1",
      durationMs: 1
    }
  }
}

const filled = (rows: number) =>
  Effect.gen(function* () {
    const context = yield* make
    const atOnce = 1000
    const fill = Effect.forEach(
      Array.from({ length: rows / atOnce }, (_, batch) => batch * atOnce),
      (start) => DurableWriter.write(putAll(start, atOnce)),
      { discard: true }
    )
    yield* Effect.provideContext(fill, context)
    return context
  })

const putAll = Effect.fnUntraced(function* (start: number, count: number) {
  const cache = yield* StepCache.StepCache
  for (let i = start; i < start + count; i++) yield* cache.put(toEntry(i))
})

export const get: Operation = {
  name: "get",
  about: "lookups that hit, one after the other, of keys that were never looked up before",
  prepare: (rows) =>
    Effect.gen(function* () {
      const context = yield* filled(rows)
      let run = 0
      const work = Effect.suspend(() => {
        // The runs of the large one ask for keys of their own: it is not to profit from those of the last.
        const first = (run++ * measuredRows) % rows
        const keys = Array.from({ length: measuredRows }, (_, i) => toKey(first + i))
        return microsecondsPerRow(
          StepCache.StepCache.use((cache) =>
            Effect.gen(function* () {
              for (const key of keys) {
                const found = yield* cache.get(key)
                if (found._tag !== "Hit") return yield* Effect.die(`a miss: ${found.reason._tag}`)
              }
            })
          )
        )
      })
      return Effect.provideContext(work, context)
    })
}

export const put: Operation = {
  name: "put",
  about: "entries put, each in a write of its own",
  prepare: (rows) =>
    Effect.gen(function* () {
      const context = yield* filled(rows)
      let next = rows
      const work = Effect.gen(function* () {
        const first = next
        next += measuredRows
        const cost = yield* microsecondsPerRow(
          Effect.forEach(
            Array.from({ length: measuredRows }, (_, i) => first + i),
            (i) => putAll(i, 1),
            { discard: true }
          )
        )
        yield* forget
        return cost
      })
      /** Takes the entries out again that a run has put in. */
      const forget = SqlClient.SqlClient.use((sql) =>
        Effect.gen(function* () {
          yield* sql`DELETE FROM strata_cache WHERE ledger > ${rows}`
          yield* sql`DELETE FROM strata_cache_ledger WHERE id > ${rows}`
          yield* sql`DELETE FROM strata_cache_result WHERE id > ${rows}`
        })
      )
      return Effect.provideContext(work, context)
    })
}
