import type { DirtyQueue, DirtyQueueError } from "@strata/dirty-queue/DirtyQueue"
import { type FollowerName, Path } from "@strata/dirty-queue/Path"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import type * as Publisher from "./publisher.ts"
import { cacheScope as scope } from "./cacheScope.ts"

/** An entry of the local cache, as far as the backfill wants to know it. */
export interface Head {
  readonly key: string
  readonly recording: string
  /** The tier it was read from. */
  readonly from: string | null
}

export interface Options {
  readonly publisher: Publisher.Options
  readonly queue: DirtyQueue["Service"]
  readonly follower: FollowerName
  /** Entries by key, behind a key. */
  readonly heads: (after: string, limit: number) => Effect.Effect<ReadonlyArray<Head>, SqlError>
}

const pageSize = 500

/**
 * Enqueues the entries that are older than the registration of the follower, a page at a time. Done once for each tier:
 * one that was interrupted begins again, and finds its first part published or pending. This is the first page; it gives
 * the key behind which {@link finish} goes on, if there is anything left.
 */
export const start = Effect.fnUntraced(function* (
  options: Options
): Effect.fn.Return<string | undefined, SqlError | DirtyQueueError> {
  const { storage, tier } = options.publisher
  return (yield* storage.isBackfilled(tier)) ? undefined : yield* page(options, "")
})

/** Enqueues the entries behind a key. */
export const finish = Effect.fnUntraced(function* (
  options: Options,
  after: string | undefined
): Effect.fn.Return<void, SqlError | DirtyQueueError> {
  while (after !== undefined) {
    after = yield* page(options, after)
  }
})

/** Enqueues a page, and gives its last key, or writes down that it was the last page. */
const page = Effect.fnUntraced(function* (
  { follower, heads, publisher, queue }: Options,
  after: string
): Effect.fn.Return<string | undefined, SqlError | DirtyQueueError> {
  const { storage, tier, writer } = publisher
  const entries = yield* heads(after, pageSize)
  const paths = yield* unpublished(publisher, entries)
  if (paths.length > 0) yield* queue.enqueue({ follower, scope, paths })
  if (entries.length === pageSize) return entries[pageSize - 1]!.key
  yield* writer.write(Effect.flatMap(Clock.currentTimeMillis, (now) => storage.setBackfilled(now, tier)))
  return undefined
})

/** What was read from the tier is there. */
const unpublished = Effect.fnUntraced(function* ({ storage, tier }: Publisher.Options, page: ReadonlyArray<Head>) {
  const own = page.filter((head) => head.from !== tier)
  const rows = yield* storage.published(
    tier,
    own.map((head) => head.key)
  )
  const published = new Map(rows.map((row) => [row.key, row.recording]))
  return own.filter((head) => published.get(head.key) !== head.recording).map((head) => Path.make(head.key))
})
