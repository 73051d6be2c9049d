/**
 * The dirty queue on SQLite, with its changelog: whole against two job queues on
 * SQLite, and against itself in a state that should make no difference.
 */
import * as Changelog from "@strata/dirty-queue/Changelog"
import * as ChangeSignal from "@strata/dirty-queue/ChangeSignal"
import * as DirtyQueue from "@strata/dirty-queue/DirtyQueue"
import { FollowerName, Path, Scope } from "@strata/dirty-queue/Path"
import * as DurableWriter from "@strata/durable/DurableWriter"
import * as SqliteClient from "@strata/sqlite/SqliteClient"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Scope as LifeTime } from "effect/Scope"
import * as SqlClient from "effect/sql/SqlClient"
import { join } from "node:path"
import { type Bench, type Case, type Run, temporaryFolder, timed } from "./Harness.ts"
import * as Liteque from "./rivals/liteque.ts"
import * as Plainjob from "./rivals/plainjob.ts"

type Synchronous = "FULL" | "NORMAL"

type Services = SqlClient.SqlClient | DurableWriter.DurableWriter | Changelog.Changelog | DirtyQueue.DirtyQueue

const follower = FollowerName.make("search")
const scope = Scope.make("docs")
const batch = 500

const paths = (n: number): ReadonlyArray<Path> =>
  Array.from({ length: n }, (_, i) => Path.make(`docs/${i % 100}/page-${i}.md`))

const batches = <A>(all: ReadonlyArray<A>, size: number): ReadonlyArray<ReadonlyArray<A>> =>
  Array.from({ length: Math.ceil(all.length / size) }, (_, i) => all.slice(i * size, (i + 1) * size))

/** A queue in a database of its own, with one follower. */
const makeQueue = (synchronous: Synchronous): Effect.Effect<Context.Context<Services>, unknown, LifeTime> =>
  Effect.gen(function* () {
    const filename = join(yield* temporaryFolder, "queue.db")
    const context = yield* Layer.build(
      Layer.mergeAll(DirtyQueue.layer(), Changelog.layer()).pipe(
        Layer.provide(ChangeSignal.layer),
        Layer.provideMerge(DurableWriter.layer()),
        Layer.provideMerge(SqliteClient.layer({ filename, synchronous }))
      )
    )
    yield* Context.get(context, DirtyQueue.DirtyQueue).register({ follower, scope })
    return context
  })

const record = (paths: ReadonlyArray<Path>) =>
  DurableWriter.write(
    Changelog.Changelog.use((changelog) =>
      changelog.record(paths.map((path) => ({ scope, path, op: "put" as const, cid: undefined, mtime: undefined })))
    )
  )

/** Claims and acks until nothing is left, and gives the number of paths. */
const drain = Effect.gen(function* () {
  const queue = yield* DirtyQueue.DirtyQueue
  let processed = 0
  while (true) {
    const claims = yield* queue.claim({ follower, scope, limit: batch })
    if (claims.length === 0) return processed
    yield* queue.ack(claims)
    processed += claims.length
  }
})

const expect = (expected: number) => (actual: number) =>
  actual === expected ? Effect.void : Effect.die(`drained ${actual} of ${expected} paths`)

// ---------------------------------------------------------------------------------------------------------------------
// cases
// ---------------------------------------------------------------------------------------------------------------------

const pathsPerSecond = (n: number, synchronous: Synchronous): Run =>
  Effect.gen(function* () {
    const context = yield* makeQueue(synchronous)
    const all = paths(n)
    const work = Effect.andThen(Effect.forEach(batches(all, batch), record, { discard: true }), drain)
    const ms = yield* timed(Effect.flatMap(work, expect(n))).pipe(Effect.provideContext(context))
    return (n * 1000) / ms
  })

/** Fewer jobs for the slower ones, whose rate does not depend on it. */
const endToEnd = (name: string, synchronous: Synchronous): Case => ({
  name,
  about: `paths recorded, claimed and acked, batches of ${batch}, WAL, synchronous=${synchronous}; ours 10,000, plainjob 5,000, liteque 1,000 of them`,
  unit: "paths/s",
  better: "higher",
  contenders: Effect.succeed({
    ours: pathsPerSecond(10_000, synchronous),
    rivals: {
      plainjob: Plainjob.jobsPerSecond({ jobs: 5000, batch, synchronous }),
      liteque: Liteque.jobsPerSecond({ jobs: 1000, synchronous })
    }
  })
})

/** Milliseconds to drain 10,000 paths, each written `times` times. */
const drainWritten = (times: number): Run =>
  Effect.gen(function* () {
    const context = yield* makeQueue("FULL")
    const all = paths(10_000)
    const rounds = Array.from({ length: times }, () => batches(all, 5000)).flat()
    yield* Effect.forEach(rounds, record, { discard: true }).pipe(Effect.provideContext(context))
    return yield* timed(Effect.flatMap(drain, expect(all.length))).pipe(Effect.provideContext(context))
  })

const coalesce: Case = {
  name: "coalesce",
  about: "draining 10,000 paths that were written 100 times each, synchronous=FULL",
  unit: "ms",
  better: "lower",
  contenders: Effect.succeed({ ours: drainWritten(100), rivals: { once: drainWritten(1) } }),
  maxRounds: 5
}

/** A queue with `rows` dirty rows, whose planner has statistics if `analyzed`. */
const makeFilled = (rows: number, analyzed: boolean): Effect.Effect<Context.Context<Services>, unknown, LifeTime> =>
  Effect.gen(function* () {
    const context = yield* makeQueue("NORMAL")
    yield* Effect.forEach(batches(paths(rows), 10_000), record, { discard: true }).pipe(Effect.provideContext(context))
    if (analyzed) yield* Context.get(context, SqlClient.SqlClient).unsafe("ANALYZE")
    return context
  })

/** Milliseconds for a claim of 100, which are given back after it: the mean of 50. */
const claimHundred = (context: Context.Context<Services>): Run =>
  Effect.gen(function* () {
    const queue = Context.get(context, DirtyQueue.DirtyQueue)
    let ms = 0
    for (let i = 0; i < 50; i++) {
      let claims: ReadonlyArray<DirtyQueue.Claim> = []
      ms += yield* timed(
        Effect.map(queue.claim({ follower, scope, limit: 100 }), (claimed) => {
          claims = claimed
        })
      )
      if (claims.length !== 100) return yield* Effect.die(`claimed ${claims.length} of 100`)
      yield* queue.release(claims)
    }
    return ms / 50
  })

const claim = (name: string, analyzed: boolean): Case => ({
  name,
  about: `a claim of 100 with 1,000,000 dirty rows, ${analyzed ? "after" : "without"} ANALYZE, synchronous=NORMAL: no fsync hides the difference`,
  unit: "ms",
  better: "lower",
  contenders: Effect.gen(function* () {
    const million = yield* makeFilled(1_000_000, analyzed)
    const thousand = yield* makeFilled(1000, analyzed)
    return { ours: claimHundred(million), rivals: { "claim-1k": claimHundred(thousand) } }
  })
})

export const dirtyQueue: Bench = {
  name: "dirty-queue",
  cases: [
    endToEnd("end-to-end", "FULL"),
    endToEnd("end-to-end-normal", "NORMAL"),
    coalesce,
    claim("claim-1m", true),
    claim("claim-1m-unanalyzed", false)
  ]
}
