/**
 * A read barrier: waits until an index holds everything that was recorded before. It always ends, since a path that
 * keeps failing is named instead of waited for.
 *
 * @since 0.1.0
 */
import type { DirtyRow } from "@strata/dirty-queue/DirtyQueue"
import { Path, Scope } from "@strata/dirty-queue/Path"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { SqlError } from "effect/sql/SqlError"
import type { Follower } from "./Follower.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A path that the index does not hold as it was recorded.
 *
 * @since 0.1.0
 * @category models
 */
export const Behind = Schema.Struct({
  scope: Scope,
  path: Path,
  /** Deliveries since the last change. */
  attempts: Schema.Int,
  error: Schema.UndefinedOr(Schema.String)
})

/**
 * @since 0.1.0
 * @category models
 */
export type Behind = typeof Behind.Type

/**
 * What to wait for.
 *
 * @since 0.1.0
 * @category models
 */
export interface CatchUpOptions {
  /** Default: every scope that the follower is registered in. */
  readonly scope?: Scope | undefined
  /** Default 30 seconds. */
  readonly timeout?: Duration.Input | undefined
}

// ---------------------------------------------------------------------------------------------------------------------
// errors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Paths failed: nothing else was left to wait for.
 *
 * @since 0.1.0
 * @category reasons
 */
export class PathsFailed extends Schema.TaggedError<PathsFailed>("@strata/follower/CatchUp/PathsFailed")(
  "PathsFailed",
  {}
) {}

/**
 * The time was up.
 *
 * @since 0.1.0
 * @category reasons
 */
export class TimedOut extends Schema.TaggedError<TimedOut>("@strata/follower/CatchUp/TimedOut")("TimedOut", {
  timeoutMs: Schema.Finite
}) {}

/** How many paths an error names in its message; it has them all. */
const namedPaths = 5

/**
 * The index is behind, and for which paths: those that are still being retried, and the dead letters.
 *
 * @since 0.1.0
 * @category errors
 */
export class NotCaughtUp extends Schema.TaggedError<NotCaughtUp>("@strata/follower/CatchUp/NotCaughtUp")(
  "NotCaughtUp",
  {
    reason: Schema.Union([PathsFailed, TimedOut]),
    failing: Schema.Array(Behind),
    dead: Schema.Array(Behind)
  }
) {
  override get message(): string {
    const paths = [...this.dead, ...this.failing]
    const named = paths.slice(0, namedPaths).map(({ error, path }) => `${path} (${error ?? "no error"})`)
    const rest = paths.length > namedPaths ? [`and ${paths.length - namedPaths} more`] : []
    const what = paths.length === 0 ? "" : `; failed: ${[...named, ...rest].join(", ")}`
    return this.reason._tag === "TimedOut"
      ? `The index is still behind after ${this.reason.timeoutMs} ms${what}`
      : `The index is behind${what}`
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Waits until everything that was recorded for `follower` before this call is in its index. What changed before the
 * follower was registered was not recorded for it, see `Rebuild`. Something has to drain the follower meanwhile, here or
 * in another process. Fails with `NotCaughtUp` when only failing paths are left, or when
 * the time is up.
 *
 * @since 0.1.0
 * @category constructors
 */
export const awaitCaughtUp = Effect.fn("CatchUp.awaitCaughtUp")(function* (
  follower: Follower,
  options: CatchUpOptions = {}
): Effect.fn.Return<void, NotCaughtUp | SqlError> {
  const timeout = Duration.toMillis(Duration.fromInputUnsafe(options.timeout ?? "30 seconds"))
  const deadline = (yield* Clock.currentTimeMillis) + timeout
  const barrier = yield* follower.queue.currentVersion
  let delay = firstLookMs
  while (true) {
    const behind = yield* lookBehind(follower, options.scope, barrier)
    if (!behind.hopeful && behind.failed.length === 0) {
      return
    }
    const left = deadline - (yield* Clock.currentTimeMillis)
    if (!behind.hopeful || left <= 0) {
      return yield* new NotCaughtUp({
        reason: behind.hopeful ? new TimedOut({ timeoutMs: timeout }) : new PathsFailed(),
        failing: behind.failed.filter((row) => row.state !== "dead").map(toBehind),
        dead: behind.failed.filter((row) => row.state === "dead").map(toBehind)
      })
    }
    yield* Effect.sleep(Math.min(delay, left))
    delay = Math.min(delay * 2, lastLookMs)
  }
})

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const firstLookMs = 5

const lastLookMs = 100

/** How many paths an error lists at most. */
const listedPaths = 1000

/** Whether any path is on its way still, and the paths that failed, which nobody should wait for. */
const lookBehind = Effect.fnUntraced(function* (
  follower: Follower,
  scope: Scope | undefined,
  barrier: number
): Effect.fn.Return<{ readonly hopeful: boolean; readonly failed: ReadonlyArray<DirtyRow> }, SqlError> {
  const failed: Array<DirtyRow> = []
  let after: DirtyRow | undefined
  while (true) {
    const rows = yield* follower.queue.pending({
      follower: follower.name,
      scope,
      after,
      versionAtMost: barrier,
      limit: listedPaths
    })
    for (const row of rows) {
      if (row.failedAt === undefined) return { hopeful: true, failed }
      if (failed.length < listedPaths) failed.push(row)
    }
    if (rows.length < listedPaths) return { hopeful: false, failed }
    after = rows.at(-1)
  }
})

const toBehind = (row: DirtyRow): Behind => ({
  scope: row.scope,
  path: row.path,
  attempts: row.attempts,
  error: row.lastError
})
