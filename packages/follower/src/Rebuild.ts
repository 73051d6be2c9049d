/**
 * Fills a new index beside the one that serves, and switches over when it has caught up. The new follower is registered
 * before the content is listed, so that a change made at any time during the rebuild reaches both indexes; the switch
 * and the end of the old follower are one write. A rebuild that is interrupted goes on when it is run again.
 *
 * @since 0.1.0
 */
import type { DirtyRow } from "@strata/dirty-queue/DirtyQueue"
import type { FollowerName, Path, Scope } from "@strata/dirty-queue/Path"
import { DurableWriter } from "@strata/durable/DurableWriter"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as CatchUp from "./CatchUp.ts"
import type { Follower } from "./Follower.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * What is rebuilt, and from what.
 *
 * @since 0.1.0
 * @category models
 */
export interface RebuildOptions<E, E2, R2> {
  /** The follower that fills the new index. */
  readonly follower: Follower
  /** The name of the follower that serves until the switch; absent for a first index. */
  readonly replaces?: FollowerName | undefined
  /** The scopes to rebuild. */
  readonly scopes: ReadonlyArray<Scope>
  /** Every path of a scope that has content now. A path that is created while this is read may be missing from it. */
  readonly content: (scope: Scope) => Stream.Stream<Path, E>
  /** Makes readers use the new index. Runs in the write that ends the old follower. */
  readonly activate: Effect.Effect<void, E2, R2>
  /**
   * What to do about paths that fail: `refuse` (default) to switch to an index without them, or `accept` that. They stay
   * dirty for the new follower either way.
   */
  readonly failures?: "refuse" | "accept" | undefined
  /** How long the new index may take to catch up, once its content is listed. Default 1 hour. */
  readonly timeout?: Duration.Input | undefined
}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Runs a rebuild to its end. Something has to drain the new follower meanwhile, such as a `FollowerScheduler`. When
 * paths fail, and that is not accepted, nothing is switched: the error lists them, the old index serves on, and another
 * run goes on from where this one was.
 *
 * @since 0.1.0
 * @category constructors
 */
export const run = Effect.fn("Rebuild.run")(function* <E, E2, R2>(options: RebuildOptions<E, E2, R2>) {
  const { follower, scopes } = options
  const durable = yield* DurableWriter
  const deadline =
    (yield* Clock.currentTimeMillis) + Duration.toMillis(Duration.fromInputUnsafe(options.timeout ?? "1 hour"))
  yield* Effect.forEach(scopes, follower.register, { discard: true })
  yield* Effect.forEach(scopes, (scope) => backfill(follower, scope, options.content(scope)), { discard: true })
  const catchUp = Effect.flatMap(Clock.currentTimeMillis, (now) =>
    CatchUp.awaitCaughtUp(follower, { timeout: Math.max(deadline - now, 0) })
  )
  let switched = false
  while (!switched) {
    yield* options.failures === "accept"
      ? Effect.catchReason(catchUp, "NotCaughtUp", "PathsFailed", () => Effect.void)
      : catchUp
    switched = yield* durable.write(switchOver(options))
  }
})

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const backfillChunk = 500

const backfill = <E>(follower: Follower, scope: Scope, content: Stream.Stream<Path, E>) =>
  content.pipe(
    Stream.grouped(backfillChunk),
    Stream.runForEach((paths) => follower.queue.enqueue({ follower: follower.name, scope, paths }))
  )

/**
 * Switches, unless a change that the old index shows already has not reached the new one: readers must not see it
 * undone. Changes keep coming, so "the new one has nothing to do" would be too much to ask.
 */
const switchOver = Effect.fnUntraced(function* <E, E2, R2>(options: RebuildOptions<E, E2, R2>) {
  const { follower, replaces } = options
  if (replaces !== undefined) {
    const behind = yield* unprocessed(follower, follower.name)
    const old = new Set((yield* unprocessed(follower, replaces)).map(rowKey))
    if (behind.length === comparedRows || behind.some((row) => row.failedAt === undefined && !old.has(rowKey(row)))) {
      return false
    }
    const registrations = yield* follower.queue.registrations({ follower: replaces })
    yield* Effect.forEach(registrations, follower.queue.unregister, { discard: true })
  }
  yield* options.activate
  return true
})

/** An index that is further behind than this is not compared, but left to catch up. */
const comparedRows = 10_000

const unprocessed = (follower: Follower, name: FollowerName) =>
  follower.queue.pending({ follower: name, limit: comparedRows })

const rowKey = (row: DirtyRow): string => `${row.scope}\0${row.path}`
