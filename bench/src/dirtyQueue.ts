/**
 * The dirty queue on SQLite, with its changelog: whole against two job queues on
 * SQLite, and against itself in a state that should make no difference.
 */
import * as DirtyQueue from "@strata/dirty-queue/DirtyQueue"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Scope as LifeTime } from "effect/Scope"
import * as SqlClient from "effect/sql/SqlClient"
import { ack } from "./dirtyQueue/ack.ts"
import * as Queue from "./dirtyQueue/fixture.ts"
import { type Bench, type Case, type Run, timed } from "./Harness.ts"
import * as Liteque from "./rivals/liteque.ts"
import * as Plainjob from "./rivals/plainjob.ts"

const { batch, drain, follower, paths, recordAll, scope } = Queue

const expect = (expected: number) => (actual: number) =>
  actual === expected ? Effect.void : Effect.die(`drained ${actual} of ${expected} paths`)

// ---------------------------------------------------------------------------------------------------------------------
// cases
// ---------------------------------------------------------------------------------------------------------------------

const pathsPerSecond = (n: number, synchronous: "FULL" | "NORMAL"): Run =>
  Effect.gen(function* () {
    const { context } = yield* Queue.make(synchronous)
    const work = Effect.andThen(recordAll(paths(n), batch), drain)
    const ms = yield* timed(Effect.flatMap(work, expect(n))).pipe(Effect.provideContext(context))
    return (n * 1000) / ms
  })

/** Fewer jobs for the slower ones, whose rate does not depend on it. */
const endToEnd = (name: string, synchronous: "FULL" | "NORMAL"): Case => ({
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
    const { context } = yield* Queue.make("FULL")
    const all = paths(10_000)
    yield* Effect.replicateEffect(recordAll(all, 5000), times, { discard: true }).pipe(Effect.provideContext(context))
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
const makeFilled = (
  rows: number,
  analyzed: boolean
): Effect.Effect<Context.Context<Queue.Services>, unknown, LifeTime> =>
  Effect.gen(function* () {
    const { context } = yield* Queue.make("NORMAL")
    yield* recordAll(paths(rows), 10_000).pipe(Effect.provideContext(context))
    if (analyzed) yield* Context.get(context, SqlClient.SqlClient).unsafe("ANALYZE")
    return context
  })

/** Milliseconds for a claim of 100, which are given back after it: the mean of 50. */
const claimHundred = (context: Context.Context<Queue.Services>): Run =>
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
    ack("ack", "NORMAL"),
    ack("ack-full", "FULL"),
    coalesce,
    claim("claim-1m", true),
    claim("claim-1m-unanalyzed", false)
  ]
}
