/**
 * Brings the index up to date with its directories.
 *
 * @since 0.1.0
 */
import { Changelog } from "@strata/dirty-queue/Changelog"
import type { DirtyQueueError } from "@strata/dirty-queue/DirtyQueue"
import type { Scope } from "@strata/dirty-queue/Path"
import * as CatchUp from "@strata/follower/CatchUp"
import type * as Follower from "@strata/follower/Follower"
import type * as Scan from "@strata/search/Scan"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import type { Progress } from "./Progress.ts"
import * as Workspace from "./Workspace.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * What bringing an index up to date came to, in files.
 *
 * @since 0.1.0
 * @category models
 */
export interface Synced {
  /** Found, whatever came of them. */
  readonly found: number
  /** Whose passages were written. */
  readonly indexed: number
  readonly removed: number
}

// ---------------------------------------------------------------------------------------------------------------------
// operations
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Scans targets and brings the index up to date with what was found, whoever does the work: another process may be
 * draining the same queue.
 *
 * @since 0.1.0
 * @category operations
 */
export const sync = Effect.fn("Synchronising.sync")(function* (
  targets: ReadonlyArray<Workspace.Target>,
  options: Pick<Scan.ScanOptions, "force" | "guard"> & { readonly progress?: Progress } = {}
) {
  const { counts, follower, scan } = yield* Workspace.Workspace
  const before = yield* counts
  let found = 0
  let total = 0
  let done = 0
  const update = Effect.suspend(() => options.progress?.update({ done, total: Math.max(done, total) }) ?? Effect.void)
  for (const target of targets) {
    const known = total
    const scanned = yield* scan.run({
      ...target,
      force: options.force,
      guard: options.guard,
      onProgress: (progress) =>
        Effect.suspend(() => {
          total = known + progress.changed + progress.removed
          return update
        })
    })
    found += scanned.files + scanned.problems.length
    yield* tryAgain(follower, target)
    yield* settle(follower, target.scope, (tick) =>
      Effect.suspend(() => {
        done += tick
        return update
      })
    )
  }
  const after = yield* counts
  return {
    found,
    indexed: after.indexed - before.indexed,
    removed: after.removed - before.removed
  } satisfies Synced
})

/**
 * Gives what failed in a target all its attempts again, dead letters too, and waits until the last failure is long enough
 * ago for the next attempt: who asks for the index to be brought up to date may have mended the cause.
 *
 * @since 0.1.0
 * @category operations
 */
export const tryAgain = Effect.fn("Synchronising.tryAgain")(function* (
  follower: Follower.Follower,
  { scope, under }: Workspace.Target
) {
  const { queue } = yield* Workspace.Workspace
  const options = { follower: follower.name, scope, limit: rowLimit }
  const failed = [...(yield* queue.failing(options)), ...(yield* queue.deadLetters(options))]
  const paths = failed.map(({ path }) => path).filter((path) => path.startsWith(under))
  if (paths.length === 0) return
  yield* queue.enqueue({ follower: follower.name, scope, paths })
  const tried = new Set(paths)
  const last = (yield* queue.failing(options)).reduce(
    (latest, { path, readyAt }) => (tried.has(path) ? Math.max(latest, readyAt ?? 0) : latest),
    0
  )
  const wait = last - (yield* Clock.currentTimeMillis)
  yield* Effect.sleep(Math.min(Math.max(0, wait), longestWait))
})

/** More rows than anyone has failing paths. */
const rowLimit = 100_000

/** In milliseconds. What waits for longer is with another process, which tries it at this moment. */
const longestWait = 1000

/**
 * Drains a scope and waits for what other processes have claimed of it. Ends when everything is in the index but for
 * the paths that failed.
 *
 * @since 0.1.0
 * @category operations
 */
export const settle = Effect.fn("Synchronising.settle")(function* (
  follower: Follower.Follower,
  scope: Scope,
  onTick: (scanned: number) => Effect.Effect<void>
) {
  yield* drain(follower, scope, onTick)
  const takeOver = Effect.forever(Effect.delay(drain(follower, scope, onTick), Duration.millis(100)))
  yield* CatchUp.awaitCaughtUp(follower, { scope, timeout: Duration.hours(24) }).pipe(
    Effect.catchReason("NotCaughtUp", "PathsFailed", () => Effect.void),
    Effect.raceFirst(takeOver)
  )
})

const drain = (
  follower: Follower.Follower,
  scope: Scope,
  onTick: (scanned: number) => Effect.Effect<void>
): Effect.Effect<void, SqlError | DirtyQueueError> =>
  Effect.gen(function* () {
    for (;;) {
      // While a follower pauses, a tick does nothing and asks for more.
      const paused = (yield* follower.pausedUntil) - (yield* Clock.currentTimeMillis)
      if (paused > 0) yield* Effect.sleep(paused)
      const tick = yield* follower.drain(scope)
      yield* onTick(tick.scanned)
      if (!tick.hasMore) return
    }
  })

/**
 * Keeps the changelog from growing: dirty rows carry all that followers need of it.
 *
 * @since 0.1.0
 * @category operations
 */
export const pruneChangelog = Effect.fn("Synchronising.pruneChangelog")(function* () {
  const changelog = yield* Changelog
  const time = (yield* Clock.currentTimeMillis) - Duration.toMillis(Duration.days(7))
  while ((yield* changelog.prune({ before: { time } })) >= 10_000);
})
