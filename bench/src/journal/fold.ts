/**
 * The tables of the step cache from a journal of a million entries, by `CacheTable.rebuild`: nine in ten record an entry,
 * of which some replace one that was evicted, one in ten evicts. The results are there, ledger and heads are not.
 */
import * as CacheEvents from "@strata/cache/CacheEvents"
import * as CacheTable from "@strata/cache/CacheTable"
import * as StepCacheStorage from "@strata/cache/StepCacheStorage"
import { sha256 } from "@strata/durable/Digest"
import * as DurableWriter from "@strata/durable/DurableWriter"
import * as JournalStorage from "@strata/journal/JournalStorage"
import * as SqliteClient from "@strata/sqlite/SqliteClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import { join } from "node:path"
import { type Case, type Run, temporaryFolder, timed } from "../Harness.ts"

const entries = 1_000_000

const batch = 10_000

const keyOf = (i: number): string => sha256(`key ${i}`)

const recordingOf = (i: number): string => sha256(`recording ${i}`).slice(0, 32)

const valueOf = (i: number): string => `{"result":${i}}`

/** The last entry of ten evicts what the first one recorded; the first of the next ten records that key again. */
const eventOf = (i: number): JournalStorage.StoredEvent => {
  const evicts = i % 10 === 9
  const subject = evicts ? i - 9 : i % 20 === 10 ? i - 10 : i
  const payload = evicts
    ? { key: keyOf(subject), recording: recordingOf(subject) }
    : {
        artifacts: [],
        digest: sha256(valueOf(i)),
        key: keyOf(subject),
        ledger: i + 1,
        metadata: {
          action: "extract",
          durationMs: 12.5,
          recordedAt: 1_700_000_000_000 + i,
          recordedBy: "builder-7",
          recording: recordingOf(i),
          version: "3"
        }
      }
  return {
    type: evicts ? "cache-evicted" : "cache-recorded",
    payload: JSON.stringify(payload),
    identity: null,
    digest: null
  }
}

const seed = Effect.gen(function* () {
  const journal = yield* JournalStorage.JournalStorage
  const sql = yield* SqlClient.SqlClient
  for (let start = 0; start < entries; start += batch) {
    const numbers = Array.from({ length: batch }, (_, i) => start + i)
    const results = numbers.flatMap((i) => (i % 10 === 9 ? [] : [[sha256(valueOf(i)), valueOf(i)]]))
    yield* DurableWriter.write(
      Effect.andThen(
        journal.append(1_700_000_000_000, CacheEvents.stream, numbers.map(eventOf)),
        sql.unsafe(
          "INSERT INTO strata_cache_result (digest, value) SELECT value ->> 0, value ->> 1 FROM json_each(?1)",
          [JSON.stringify(results)]
        )
      )
    )
  }
})

const layer = (filename: string) =>
  Layer.mergeAll(
    JournalStorage.layerSql,
    StepCacheStorage.layerSql,
    DurableWriter.layer({ slowWrite: "10 minutes" })
  ).pipe(Layer.provideMerge(SqliteClient.layer({ filename, synchronous: "FULL" })))

/** Entries per second. */
const rate = (millis: number): number => (entries * 1000) / millis

const forget = Effect.gen(function* () {
  const storage = yield* StepCacheStorage.StepCacheStorage
  yield* DurableWriter.write(storage.withRestoring(({ heads }) => heads(0)))
  yield* SqlClient.SqlClient.use((sql) => sql.unsafe("PRAGMA wal_checkpoint(TRUNCATE)"))
})

const rebuild = Effect.gen(function* () {
  yield* forget
  const millis = yield* timed(CacheTable.rebuild())
  const { heapUsed } = process.memoryUsage()
  const megabytes = (bytes: number) => Math.round(bytes / 1e6)
  console.error(
    `fold: heap ${megabytes(heapUsed)} MB after the rebuild, greatest resident set ${megabytes(process.resourceUsage().maxRSS * 1024)} MB`
  )
  return rate(millis)
})

/** Reads the pages, and does nothing with them. */
const readPages = Effect.gen(function* () {
  const journal = yield* JournalStorage.JournalStorage
  const millis = yield* timed(
    Effect.gen(function* () {
      let after = 0
      while (true) {
        const page = yield* journal.read({
          stream: CacheEvents.stream,
          after,
          upTo: Number.MAX_SAFE_INTEGER,
          types: undefined,
          limit: 5000
        })
        if (page.complete) return
        after = page.through
      }
    })
  )
  return rate(millis)
})

export const fold: Case = {
  name: "fold",
  about: "a cache table from 1,000,000 journal entries; wanted is 100,000 a second, read-pages only reads them",
  unit: "entries/s",
  better: "higher",
  maxRounds: 3,
  contenders: Effect.gen(function* () {
    const filename = join(yield* temporaryFolder, "fold.db")
    yield* Effect.provide(seed, layer(filename))
    const on = (
      effect: Effect.Effect<
        number,
        unknown,
        | StepCacheStorage.StepCacheStorage
        | JournalStorage.JournalStorage
        | DurableWriter.DurableWriter
        | SqlClient.SqlClient
      >
    ): Run => Effect.provide(effect, layer(filename))
    return { ours: on(rebuild), rivals: { wanted: Effect.succeed(100_000), "read-pages": on(readPages) } }
  })
}
