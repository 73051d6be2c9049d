/** Ours: changes recorded, claimed and acked. */
import * as PgClient from "@effect/sql-pg/PgClient"
import * as Changelog from "@strata/dirty-queue/Changelog"
import * as ChangeSignal from "@strata/dirty-queue/ChangeSignal"
import * as DirtyQueue from "@strata/dirty-queue/DirtyQueue"
import { FollowerName, Path, Scope } from "@strata/dirty-queue/Path"
import * as DurableWriter from "@strata/durable/DurableWriter"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { type Run, timed } from "../Harness.ts"
import { administer, pathOf, type QueueOptions, schemaName, shares } from "./server.ts"

const follower = FollowerName.make("search")
const scope = Scope.make("docs")

const record = ([from, to]: readonly [number, number]) =>
  DurableWriter.write(
    Changelog.Changelog.use((changelog) =>
      changelog.record(
        Array.from({ length: to - from }, (_, i) => Changelog.put({ scope, path: Path.make(pathOf(from + i)) }))
      )
    ),
    // As the rivals do, and as a write that only records changes can.
    { isolation: "read committed" }
  )

/** Claims and acks until nothing is left, and gives the number of paths. */
const drain = (batch: number) =>
  Effect.gen(function* () {
    const queue = yield* DirtyQueue.DirtyQueue
    let processed = 0
    while (true) {
      const claims = yield* queue.claim({ follower, scope, limit: batch })
      if (claims.length === 0) return processed
      yield* queue.ack(claims)
      processed += claims.length
    }
  })

export const pathsPerSecond = (options: QueueOptions): Run =>
  Effect.gen(function* () {
    const { batch, jobs, url, workers } = options
    const schema = yield* schemaName(url)
    yield* administer(url, `CREATE SCHEMA ${schema}`)
    const context = yield* Layer.build(
      Layer.mergeAll(DirtyQueue.layer(), Changelog.layer()).pipe(
        Layer.provideMerge(Layer.mergeAll(DurableWriter.layer(), ChangeSignal.layer)),
        Layer.provide(PgClient.layer({ url, maxConnections: workers + 1, startupParameters: { search_path: schema } }))
      )
    )
    const inParallel = { concurrency: "unbounded" } as const
    const work = Effect.gen(function* () {
      yield* Effect.forEach(shares(options), (share) => Effect.forEach(share, record, { discard: true }), inParallel)
      const processed = yield* Effect.all(
        Array.from({ length: workers }, () => drain(batch)),
        inParallel
      )
      const sum = processed.reduce((sum, n) => sum + n, 0)
      if (sum !== jobs) return yield* Effect.die(`drained ${sum} of ${jobs} paths`)
    })
    yield* DirtyQueue.DirtyQueue.use((queue) => queue.register({ follower, scope })).pipe(
      Effect.provideContext(context)
    )
    const ms = yield* timed(Effect.provideContext(work, context))
    return (jobs * 1000) / ms
  })
