/** A dirty queue in a database of its own, and what the benches of it do with one. */
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
import type * as SqlClient from "effect/sql/SqlClient"
import { join } from "node:path"
import { temporaryFolder } from "../Harness.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

export type Synchronous = "OFF" | "NORMAL" | "FULL"

export type Services = SqlClient.SqlClient | DurableWriter.DurableWriter | Changelog.Changelog | DirtyQueue.DirtyQueue

export interface Queue {
  readonly filename: string
  readonly context: Context.Context<Services>
}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

export const follower = FollowerName.make("search")
export const scope = Scope.make("docs")
export const batch = 500

/** A queue with one follower. */
export const make = (synchronous: Synchronous): Effect.Effect<Queue, unknown, LifeTime> =>
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
    return { filename, context }
  })

export const paths = (n: number): ReadonlyArray<Path> =>
  Array.from({ length: n }, (_, i) => Path.make(`docs/${i % 100}/page-${i}.md`))

export const batches = <A>(all: ReadonlyArray<A>, size: number): ReadonlyArray<ReadonlyArray<A>> =>
  Array.from({ length: Math.ceil(all.length / size) }, (_, i) => all.slice(i * size, (i + 1) * size))

// ---------------------------------------------------------------------------------------------------------------------
// work
// ---------------------------------------------------------------------------------------------------------------------

export const record = (paths: ReadonlyArray<Path>) =>
  DurableWriter.write(
    Changelog.Changelog.use((changelog) =>
      changelog.record(paths.map((path) => ({ scope, path, op: "put" as const, cid: undefined, mtime: undefined })))
    )
  )

export const recordAll = (paths: ReadonlyArray<Path>, size: number) =>
  Effect.forEach(batches(paths, size), record, { discard: true })

/** Claims `rows` rows, a batch at a time. */
export const claimAll = (rows: number) =>
  DirtyQueue.DirtyQueue.use((queue) =>
    Effect.forEach(batches(Array.from({ length: rows }), batch), ({ length }) =>
      Effect.filterOrElse(
        queue.claim({ follower, scope, limit: length }),
        (claims) => claims.length === length,
        (claims) => Effect.die(`claimed ${claims.length} of ${length}`)
      )
    )
  )

/** Claims and acks until nothing is left, and gives the number of paths. */
export const drain = Effect.gen(function* () {
  const queue = yield* DirtyQueue.DirtyQueue
  let processed = 0
  while (true) {
    const claims = yield* queue.claim({ follower, scope, limit: batch })
    if (claims.length === 0) return processed
    yield* queue.ack(claims)
    processed += claims.length
  }
})
