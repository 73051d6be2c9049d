import type { DirtyQueue, DirtyQueueError, DirtyRow } from "@strata/dirty-queue/DirtyQueue"
import type * as Follower from "@strata/follower/Follower"
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { SqlError } from "effect/sql/SqlError"
import * as Stream from "effect/Stream"
import { Recording } from "../CacheEntry.ts"
import { CacheError, StorageFailed } from "../CacheError.ts"
import type { Publication, Refused, Report, Status } from "../Publication.ts"
import type { StoredRefusal } from "../PublicationStorage.ts"
import { Refusal } from "../Refusal.ts"
import type { StepCache } from "../StepCache.ts"
import { StepKey } from "../StepKey.ts"
import { cacheScope as scope } from "./cacheScope.ts"
import { pathOf } from "./publicationFollower.ts"
import * as Publisher from "./publisher.ts"

type Service = Publication["Service"]

export interface Options {
  readonly local: StepCache["Service"]
  readonly publisher: Publisher.Options
  readonly send: Publisher.Send
  readonly queue: DirtyQueue["Service"]
  readonly follower: Follower.Follower
  readonly concurrency: number
  readonly drainTimeout: Duration.Duration
}

// ---------------------------------------------------------------------------------------------------------------------
// publishing now
// ---------------------------------------------------------------------------------------------------------------------

export const publishNow = (options: Options): Service["publishNow"] => {
  const one = publishOne(options)
  return Effect.fn("Publication.publishNow")(function* (keys) {
    const outcomes = yield* (keys === undefined ? unpublished(options) : Stream.fromIterable(new Set(keys))).pipe(
      Stream.mapEffect(one, { concurrency: options.concurrency }),
      Stream.grouped(acknowledged),
      Stream.tap(remember(options)),
      Stream.runCollect
    )
    return toReport(outcomes.flat())
  })
}

/** How many outcomes are committed together. */
const acknowledged = 50

type Outcome =
  | { readonly _tag: "Published"; readonly key: StepKey; readonly recording: Recording }
  | { readonly _tag: "Refused"; readonly refused: Refused }
  | { readonly _tag: "Absent"; readonly key: StepKey }

const publishOne = ({ local, publisher, send }: Options) => {
  const journalRefusal = Publisher.journalRefusal(publisher)
  return Effect.fnUntraced(function* (key: StepKey): Effect.fn.Return<Outcome, SqlError | CacheError> {
    const found = yield* local.get(key)
    if (found._tag === "Miss") return { _tag: "Absent", key }
    const { recording } = found.entry.metadata
    const refusal = yield* send(found.entry)
    if (Option.isNone(refusal)) return { _tag: "Published", key, recording }
    yield* Effect.mapError(journalRefusal(found.entry, refusal.value), storageFailed)
    return { _tag: "Refused", refused: { key, recording, refusal: refusal.value } }
  })
}

/** The follower finds what is published, and has nothing left to do but to acknowledge it; dead letters come back for that. */
const remember =
  ({ follower, publisher, queue }: Options) =>
  (outcomes: ReadonlyArray<Outcome>): Effect.Effect<void, SqlError> => {
    const { storage, tier, writer } = publisher
    const published = outcomes.filter((outcome) => outcome._tag === "Published")
    const commit = Effect.gen(function* () {
      yield* storage.publish(yield* Clock.currentTimeMillis, tier, published)
      for (const { key } of published) {
        yield* queue.revive({ follower: follower.name, scope, path: pathOf(key) })
      }
    })
    return published.length === 0 ? Effect.void : writer.write(commit)
  }

const toReport = (outcomes: ReadonlyArray<Outcome>): Report => ({
  published: outcomes.flatMap((outcome) => (outcome._tag === "Published" ? [outcome.key] : [])),
  refused: outcomes.flatMap((outcome) => (outcome._tag === "Refused" ? [outcome.refused] : [])),
  absent: outcomes.flatMap((outcome) => (outcome._tag === "Absent" ? [outcome.key] : []))
})

const storageFailed = (cause: unknown): CacheError =>
  new CacheError({ reason: new StorageFailed({ tier: "local", cause }) })

const pageSize = 500

/** The keys of all dirty rows, page by page. */
const unpublished = ({ follower, queue }: Options): Stream.Stream<StepKey, SqlError> =>
  Stream.paginate(undefined, (after: DirtyRow | undefined) =>
    Effect.map(queue.pending({ follower: follower.name, scope, after, limit: pageSize }), (rows) => [
      rows.map((row) => StepKey.make(row.path)),
      rows.length < pageSize ? Option.none() : Option.fromUndefinedOr(rows.at(-1))
    ])
  )

// ---------------------------------------------------------------------------------------------------------------------
// status
// ---------------------------------------------------------------------------------------------------------------------

export const status = (options: Options): Service["status"] => {
  const { follower, publisher, queue } = options
  const { cache, storage, tier } = publisher
  return Effect.gen(function* (): Effect.fn.Return<Status, SqlError | CacheError> {
    const { total } = yield* queue.stats({ follower: follower.name, scope })
    const stored = yield* storage.refusals(tier, listedRefusals)
    return {
      tier,
      published: yield* storage.publishedCount(tier),
      pending: total.rows - total.dead,
      failing: total.failing,
      dead: total.dead,
      refusals: yield* Effect.forEach(stored, decodeRefusal),
      breaker: cache.guard === undefined ? undefined : yield* cache.guard.state
    }
  }).pipe(Effect.withSpan("Publication.status"))
}

const listedRefusals = 100

const decodeStored = Schema.decodeEffect(Schema.fromJsonString(Refusal))

const decodeRefusal = ({ key, recording, refusal, refusedAt }: StoredRefusal) =>
  Effect.mapBoth(decodeStored(refusal), {
    onSuccess: (refusal) => ({ key: StepKey.make(key), recording: Recording.make(recording), refusal, refusedAt }),
    onFailure: storageFailed
  })

// ---------------------------------------------------------------------------------------------------------------------
// draining
// ---------------------------------------------------------------------------------------------------------------------

export const drain = (options: Options): Service["drain"] => {
  const work = Effect.gen(function* () {
    while (yield* isHopeful(options)) {
      const tick = yield* options.follower.drain(scope)
      // What is left is claimed, by a tick that is under way.
      if (tick.scanned === 0) yield* Effect.sleep(lookAgainMs)
    }
  })
  return Effect.fn("Publication.drain")(function* (given) {
    yield* Effect.timeoutOption(work, given?.timeout ?? options.drainTimeout)
    const { total } = yield* options.queue.stats({ follower: options.follower.name, scope })
    return total.rows
  })
}

const lookAgainMs = 10

/** Whether anything can be published that was not tried in vain. */
const isHopeful = Effect.fnUntraced(function* ({
  follower,
  queue
}: Options): Effect.fn.Return<boolean, SqlError | DirtyQueueError> {
  if ((yield* follower.pausedUntil) > (yield* Clock.currentTimeMillis)) return false
  const { total } = yield* queue.stats({ follower: follower.name, scope })
  return total.rows - total.dead - total.failing > 0
})

// ---------------------------------------------------------------------------------------------------------------------
// revival
// ---------------------------------------------------------------------------------------------------------------------

export const revive = ({ follower, queue }: Options): Service["revive"] =>
  Effect.withSpan(queue.revive({ follower: follower.name, scope }), "Publication.revive")
