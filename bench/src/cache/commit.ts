/**
 * What a commit of a cache entry costs while its publication has trouble: commits run one after the other, and each is a
 * `StepCache.put` in a write of its own, with its journal entry. The tier is a server in another process, which answers at
 * once or is a black hole: it accepts requests, and never answers.
 */
import { ArtifactStore } from "@strata/cache/ArtifactStore"
import { type CacheEntry, Recording } from "@strata/cache/CacheEntry"
import * as CacheSync from "@strata/cache/CacheSync"
import * as HttpCache from "@strata/cache/HttpCache"
import * as Publication from "@strata/cache/Publication"
import * as PublicationStorage from "@strata/cache/PublicationStorage"
import * as StepCache from "@strata/cache/StepCache"
import { StepKey } from "@strata/cache/StepKey"
import * as Changelog from "@strata/dirty-queue/Changelog"
import * as ChangeSignal from "@strata/dirty-queue/ChangeSignal"
import * as DirtyQueue from "@strata/dirty-queue/DirtyQueue"
import { sha256 } from "@strata/durable/Digest"
import * as DurableWriter from "@strata/durable/DurableWriter"
import * as Journal from "@strata/journal/Journal"
import * as SqliteClient from "@strata/sqlite/SqliteClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as References from "effect/References"
import type * as Scope from "effect/Scope"
import { type ChildProcess, fork } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { type Case, type Run, temporaryFolder, timed } from "../Harness.ts"

const commits = 1000

// ---------------------------------------------------------------------------------------------------------------------
// tiers
// ---------------------------------------------------------------------------------------------------------------------

interface Tier {
  readonly url: string
  /** Whether requests are left without an answer from now on. */
  readonly setHole: (hole: boolean) => Effect.Effect<void>
}

const startTier: Effect.Effect<Tier, never, Scope.Scope> = Effect.gen(function* () {
  const child = yield* Effect.acquireRelease(
    Effect.sync(() => fork(fileURLToPath(new URL("tierServer.ts", import.meta.url)))),
    (child) => Effect.sync(() => child.kill("SIGKILL"))
  )
  const { port } = yield* answer<{ readonly port: number }>(child)
  return {
    url: `http://127.0.0.1:${port}`,
    setHole: (hole) =>
      Effect.asVoid(
        Effect.zip(
          answer(child),
          Effect.sync(() => child.send({ hole })),
          { concurrent: true }
        )
      )
  }
})

const answer = <A>(child: ChildProcess): Effect.Effect<A> =>
  Effect.promise(async () => {
    const [message] = await once(child, "message")
    return message
  })

// ---------------------------------------------------------------------------------------------------------------------
// commits
// ---------------------------------------------------------------------------------------------------------------------

/** Deadlines and pauses are short, so that all of them run out while commits are measured. */
const sharing = (tier: Tier) =>
  CacheSync.layer(HttpCache.stepCache({ url: tier.url, deadlines: { response: "100 millis" } }), {
    guard: { openBase: "100 millis", openCap: "500 millis" }
  })

/** No entry names an artifact. */
const noArtifacts = Layer.mock(ArtifactStore, { name: "none" })

const layer = (folder: string, tier: Tier | undefined) =>
  Publication.layer({ pauseBase: "100 millis", pauseCap: "500 millis" }).pipe(
    Layer.provide(tier === undefined ? CacheSync.layerLocal : sharing(tier)),
    Layer.provideMerge(StepCache.layerSql()),
    Layer.provide(noArtifacts),
    Layer.provide(
      Layer.mergeAll(PublicationStorage.layerSql, DirtyQueue.layer(), Changelog.layer(), Journal.layerSql())
    ),
    Layer.provide(Layer.mergeAll(DurableWriter.layer(), ChangeSignal.layer)),
    Layer.provide(SqliteClient.layer({ filename: join(folder, "cache.db") }))
  )

let entries = 0

/** With a result of some 2 KB, unlike all others. */
const makeEntry = (): CacheEntry => {
  entries++
  const result = JSON.stringify({ n: entries, text: "x".repeat(2000) })
  return {
    key: StepKey.make(sha256(`${process.pid}/${entries}`)),
    result,
    digest: sha256(result),
    artifacts: [],
    metadata: {
      recording: Recording.make(entries.toString(16).padStart(32, "0")),
      recordedBy: "bench",
      recordedAt: 0,
      action: "bench",
      version: "1",
      durationMs: 1
    }
  }
}

const commit = Effect.gen(function* () {
  const cache = yield* StepCache.StepCache
  const entry = makeEntry()
  return yield* timed(cache.put(entry))
})

const measureCommits = Effect.forEach(Array.from({ length: commits }), () => commit)

/** A run that ends when everything is published. */
const withTier = (tier: Tier, hole: boolean): Run =>
  Effect.gen(function* () {
    yield* tier.setHole(hole)
    const values = yield* measureCommits
    yield* tier.setHole(false)
    yield* published
    return values
  }).pipe(
    (run) => Effect.flatMap(temporaryFolder, (folder) => Effect.provide(run, layer(folder, tier))),
    // That the tier is away is told again and again.
    Effect.provideService(References.MinimumLogLevel, "Error")
  )

const withoutTier: Run = Effect.flatMap(temporaryFolder, (folder) =>
  Effect.provide(measureCommits, layer(folder, undefined))
)

/** Fails unless every entry gets published. */
const published = Effect.gen(function* () {
  const publication = yield* Publication.Publication
  for (let i = 0; i < 600; i++) {
    const { dead, pending, published } = yield* publication.status
    if (published === commits && pending === 0) return
    if (dead > 0) return yield* Effect.die(`${dead} entries will not be published`)
    yield* Effect.sleep("100 millis")
  }
  return yield* Effect.die("entries were not published within a minute")
})

// ---------------------------------------------------------------------------------------------------------------------
// cases
// ---------------------------------------------------------------------------------------------------------------------

const about = `${commits} commits a round, one after the other, WAL, synchronous=FULL`

export const blackHoleCase: Case = {
  name: "commit-p99-black-hole",
  about: `p99 of ${about}, with a tier that never answers; instant-tier does at once. All is published afterwards`,
  unit: "ms",
  better: "lower",
  quantile: 0.99,
  minRounds: 12,
  contenders: Effect.map(startTier, (tier) => ({
    ours: withTier(tier, true),
    rivals: { "instant-tier": withTier(tier, false) }
  }))
}

export const medianCase: Case = {
  name: "commit-p50",
  about: `p50 of ${about}, with a tier that never answers; no-tier is the cache without a shared tier`,
  unit: "ms",
  better: "lower",
  quantile: 0.5,
  contenders: Effect.map(startTier, (tier) => ({
    ours: withTier(tier, true),
    rivals: { "no-tier": withoutTier }
  }))
}
