/** What a lookup that hits costs over the bare read of its row, and what it costs to make sure of its artifacts. */
import * as ArtifactStore from "@strata/cache/ArtifactStore"
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
import * as Stream from "effect/Stream"
import { join } from "node:path"
import { type Case, type Contenders, temporaryFolder, timed } from "../Harness.ts"

const entries = 1000

const lookups = 20_000

const keys = Array.from({ length: entries }, (_, i) => StepKey.make(sha256(`key ${i}`)))

/** The row of a hit as the cache reads it. */
const readRow = `
SELECT l.id, l.key, l.recording, r.digest, l.artifacts, l.recorded_by, l.recorded_at, l.action, l.version,
  l.duration_ms, l.from_tier, h.used_at, r.value
FROM strata_cache AS h
CROSS JOIN strata_cache_ledger AS l ON l.id = h.ledger
CROSS JOIN strata_cache_result AS r ON r.id = l.result
WHERE h.key = ?1`

const layer = (filename: string) =>
  Layer.mergeAll(StepCacheStorage.layerSql, Journal.layerSql(), Changelog.layer(), ArtifactStore.layerMemory()).pipe(
    Layer.provideMerge(Layer.mergeAll(ChangeSignal.layer, DurableWriter.layer())),
    Layer.provideMerge(SqliteClient.layer({ filename }))
  )

/** A result of 200 bytes, and as many artifacts as are asked for, of 1,000 bytes each. */
const record = (artifactCount: number) =>
  Effect.gen(function* () {
    const cache = yield* StepCache.make()
    const store = yield* ArtifactStore.ArtifactStore
    for (const [i, key] of keys.entries()) {
      const artifacts: Array<CacheEntry["artifacts"][number]> = []
      for (let n = 0; n < artifactCount; n++) {
        const blob = yield* store.add(Stream.make(new TextEncoder().encode(`${i} ${n} `.padEnd(1000, "."))))
        artifacts.push({ name: `out/${n}.txt`, ...blob })
      }
      const result = JSON.stringify({ index: i, text: "x".repeat(180) })
      yield* cache.put({
        key,
        result,
        digest: sha256(result),
        artifacts,
        metadata: {
          recording: Recording.make(sha256(`recording ${i}`).slice(0, 32)),
          recordedBy: "bench",
          recordedAt: 0,
          action: "bench",
          version: "1",
          durationMs: 1
        }
      })
    }
  })

/** Lookups per second, one after the other. */
const rate = <E, R>(lookup: (key: StepKey) => Effect.Effect<unknown, E, R>): Effect.Effect<number, E, R> =>
  Effect.map(
    timed(
      Effect.gen(function* () {
        for (let i = 0; i < lookups; i++) yield* lookup(keys[i % entries]!)
      })
    ),
    (millis) => (lookups * 1000) / millis
  )

const hit = (options: StepCache.StepCacheOptions) =>
  Effect.flatMap(StepCache.make(options), (cache) =>
    rate((key) =>
      Effect.tap(cache.get(key), (found) => (found._tag === "Hit" ? Effect.void : Effect.die(`a miss: ${key}`)))
    )
  )

const bareRead = SqlClient.SqlClient.use((sql) => rate((key) => sql.unsafe(readRow, [key]).values))

const onEntries = (
  artifactCount: number,
  contenders: (services: Layer.Layer<Layer.Success<ReturnType<typeof layer>>>) => Contenders
): Case["contenders"] =>
  Effect.gen(function* () {
    const filename = join(yield* temporaryFolder, "hit.db")
    const context = yield* Layer.build(layer(filename))
    yield* Effect.provideContext(record(artifactCount), context)
    return contenders(Layer.succeedContext(context))
  })

/** Artifacts are not looked at. */
export const localHit: Case = {
  name: "local-hit",
  about: "lookups that hit, results of 200 bytes and no artifacts; sql-read reads the same row by the same client",
  unit: "lookups/s",
  better: "higher",
  contenders: onEntries(0, (services) => ({
    ours: Effect.provide(hit({ artifacts: "trust" }), services),
    rivals: { "sql-read": Effect.provide(bareRead, services) }
  }))
}

/** The cost of looking after artifacts. */
export const localHitArtifacts: Case = {
  name: "local-hit-artifacts",
  about: "lookups that hit, two artifacts of 1,000 bytes in memory, unchecked; rivals ask for them, or hash them",
  unit: "lookups/s",
  better: "higher",
  contenders: onEntries(2, (services) => ({
    ours: Effect.provide(hit({ artifacts: "trust" }), services),
    rivals: {
      "sql-read": Effect.provide(bareRead, services),
      exists: Effect.provide(hit({ artifacts: "exists" }), services),
      verify: Effect.provide(hit({ artifacts: "verify" }), services)
    }
  }))
}
