/** Ours: changes recorded, claimed and acked. */
import * as PgClient from "@effect/sql-pg/PgClient"
import * as Changelog from "@strata/dirty-queue/Changelog"
import * as ChangeSignal from "@strata/dirty-queue/ChangeSignal"
import * as DirtyQueue from "@strata/dirty-queue/DirtyQueue"
import { FollowerName, Path, Scope } from "@strata/dirty-queue/Path"
import * as DurableWriter from "@strata/durable/DurableWriter"
import * as Clock from "effect/Clock"
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

/** Milliseconds that all workers have spent together on each kind of work. */
interface Spent {
  record: number
  claim: number
  ack: number
}

export type Phase = keyof Spent

const spend = <A, E, R>(spent: Spent, phase: Phase, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.gen(function* () {
    const start = yield* Clock.monotonicTimeNanos
    const result = yield* effect
    spent[phase] += Number((yield* Clock.monotonicTimeNanos) - start) / 1e6
    return result
  })

/** Claims and acks until nothing is left, and gives the number of paths. */
const drain = (batch: number, spent: Spent) =>
  Effect.gen(function* () {
    const queue = yield* DirtyQueue.DirtyQueue
    let processed = 0
    while (true) {
      const claims = yield* spend(spent, "claim", queue.claim({ follower, scope, limit: batch }))
      if (claims.length === 0) return processed
      yield* spend(spent, "ack", queue.ack(claims))
      processed += claims.length
    }
  })

const run = (options: QueueOptions) =>
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
    const spent: Spent = { record: 0, claim: 0, ack: 0 }
    const inParallel = { concurrency: "unbounded" } as const
    const work = Effect.gen(function* () {
      const recorded = (piece: readonly [number, number]) => spend(spent, "record", record(piece))
      yield* Effect.forEach(shares(options), (share) => Effect.forEach(share, recorded, { discard: true }), inParallel)
      const processed = yield* Effect.all(
        Array.from({ length: workers }, () => drain(batch, spent)),
        inParallel
      )
      const sum = processed.reduce((sum, n) => sum + n, 0)
      if (sum !== jobs) return yield* Effect.die(`drained ${sum} of ${jobs} paths`)
    })
    yield* DirtyQueue.DirtyQueue.use((queue) => queue.register({ follower, scope })).pipe(
      Effect.provideContext(context)
    )
    return { ms: yield* timed(Effect.provideContext(work, context)), spent }
  })

export const pathsPerSecond = (options: QueueOptions): Run =>
  Effect.map(run(options), ({ ms }) => (options.jobs * 1000) / ms)

/** What one kind of work adds to the time of the whole, for each path. */
export const microsecondsPerPath = (phase: Phase, options: QueueOptions): Run =>
  Effect.map(run(options), ({ spent }) => (spent[phase] * 1000) / options.jobs / options.workers)
