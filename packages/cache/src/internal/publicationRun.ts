import { DirtyQueue, type DirtyQueueError } from "@strata/dirty-queue/DirtyQueue"
import * as Follower from "@strata/follower/Follower"
import * as FollowerScheduler from "@strata/follower/FollowerScheduler"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schedule from "effect/Schedule"
import * as LifeTime from "effect/Scope"
import type { SqlError } from "effect/sql/SqlError"
import type { Publication, PublicationOptions } from "../Publication.ts"
import { StepCache } from "../StepCache.ts"
import { StepCacheStorage } from "../StepCacheStorage.ts"
import * as Backfill from "./backfill.ts"
import { cacheScope } from "./cacheScope.ts"
import * as Service from "./publication.ts"
import * as PublicationFollower from "./publicationFollower.ts"
import * as Publisher from "./publisher.ts"

/** Registers the follower, runs it with a scheduler of its own, whose turns no other follower waits for, and backfills. */
export const start = Effect.fnUntraced(function* (publisher: Publisher.Options, options: PublicationOptions) {
  const local = yield* StepCache
  const queue = yield* DirtyQueue
  const send = yield* Publisher.makeSend(publisher)
  const concurrency = options.concurrency ?? 8
  const follower = yield* Follower.make({
    name: "publication",
    version: publisher.tier,
    scope: cacheScope,
    queue,
    reader: PublicationFollower.reader(local, publisher, send),
    writer: PublicationFollower.writer(publisher),
    batchSize: options.batchSize ?? 50,
    concurrency,
    // A process that was killed leaves its claims behind for as long.
    lease: "10 seconds",
    pauseBase: options.pauseBase,
    pauseCap: options.pauseCap ?? "30 seconds"
  })
  const drainTimeout = Duration.fromInputUnsafe(options.drainTimeout ?? "5 seconds")
  const service = { local, publisher, send, queue, follower, concurrency, drainTimeout }
  const drain = Service.drain(service)
  const { heads } = yield* StepCacheStorage
  const backfill = { publisher, queue, follower: follower.name, heads }
  const after = yield* Backfill.start(backfill)
  yield* runUntilDrained(follower, drain)
  yield* runBeside(Backfill.finish(backfill, after))
  const started: Publication["Service"] = {
    publishNow: Service.publishNow(service),
    status: Service.status(service),
    drain,
    revive: Service.revive(service)
  }
  return started
})

/** At the end of the scope the follower is stopped, which gives its claims back, and then drained. */
const runUntilDrained = Effect.fnUntraced(function* (
  follower: Follower.Follower,
  drain: Publication["Service"]["drain"]
) {
  const scheduler = yield* FollowerScheduler.make({ concurrency: 1 })
  const running = yield* LifeTime.make()
  yield* Effect.addFinalizer(() =>
    Effect.andThen(
      LifeTime.close(running, Exit.void),
      Effect.interruptible(drain()).pipe(
        Effect.tap((left) => (left === 0 ? Effect.void : Effect.logInfo(`${left} entries are left to be published`))),
        Effect.ignore({ log: true })
      )
    )
  )
  yield* LifeTime.provide(scheduler.run(follower), running)
})

/** Enqueues the rest of the older entries: a store that fails meanwhile is asked again. */
const runBeside = (older: Effect.Effect<void, SqlError | DirtyQueueError>) =>
  older.pipe(
    Effect.tapError((error) => Effect.logError("Older entries could not be enqueued for publication", error)),
    Effect.retry(Schedule.spaced("5 seconds")),
    Effect.forkScoped
  )
