/**
 * @since 0.1.0
 */
import type { DirtyRow } from "@strata/dirty-queue/DirtyRow"
import type { Scope } from "@strata/dirty-queue/Path"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Database } from "../Database.ts"
import * as Directories from "../Directories.ts"
import * as Findings from "../Findings.ts"
import type { Progress } from "../Progress.ts"
import type { Listed, RetryResult } from "../Results.ts"
import type { SharedTier } from "../SharedTier.ts"
import * as Synchronising from "../Synchronising.ts"
import * as Workspace from "../Workspace.ts"
import { toResult } from "./Index.ts"

/**
 * Tries again what failed, and only that: files, dead letters included, and folders that could not be read, which are
 * scanned. Other changes that wait are indexed with them, as the queue is worked off.
 *
 * @since 0.1.0
 * @category operations
 */
export const retry = (options: {
  readonly database: Database
  readonly shared: SharedTier | undefined
  readonly progress: Progress
}) =>
  Effect.gen(function* () {
    const start = yield* Clock.currentTimeMillis
    const { counts, follower, queue, roots } = yield* Workspace.Workspace
    const before = yield* counts
    const scopes = yield* roots
    const unreadable = yield* unreadableFolders(scopes)
    const failing = yield* queue.failing({ follower: follower.name, limit: rowLimit })
    const dead = yield* queue.deadLetters({ follower: follower.name, limit: rowLimit })
    yield* Effect.forEach(scopes, (scope) => Synchronising.tryAgain(follower, { scope, under: "" }), { discard: true })
    const { found } = yield* Synchronising.sync(unreadable, options)
    yield* Effect.forEach(scopes, (scope) => Synchronising.settle(follower, scope, () => Effect.void), {
      discard: true
    })
    const after = yield* counts
    const synced = {
      found: found + failing.length + dead.length,
      indexed: after.indexed - before.indexed,
      removed: after.removed - before.removed
    }
    const listed = yield* listTried(scopes, [...failing, ...dead])
    const elapsedMs = (yield* Clock.currentTimeMillis) - start
    return { ...toResult(synced, listed, elapsedMs), revived: dead.length } satisfies RetryResult
  }).pipe(Effect.provide(Workspace.layerExisting(options.database, options.shared)))

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const rowLimit = 100_000

/** The folders that could not be listed, and those with entries that could not be looked at. */
const unreadableFolders = Effect.fnUntraced(function* (scopes: ReadonlyArray<Scope>) {
  const { scan } = yield* Workspace.Workspace
  const found = yield* Effect.forEach(scopes, (scope) =>
    Effect.map(scan.problems(scope), (problems) =>
      problems.flatMap(({ path, reason }): ReadonlyArray<Workspace.Target> =>
        reason._tag === "Unreadable" ? [{ scope, under: path.slice(0, path.lastIndexOf("/") + 1) }] : []
      )
    )
  )
  return Directories.outermost(found.flat())
})

/** What still fails anywhere, and what of the paths that were tried has nothing to search. */
const listTried = Effect.fnUntraced(function* (scopes: ReadonlyArray<Scope>, tried: ReadonlyArray<DirtyRow>) {
  const targets = scopes.map((scope) => ({ scope, under: "" }))
  const { failed, failures } = yield* Findings.list(targets)
  return { failed, failures, ...(yield* Findings.skippedAmong(tried)) } satisfies Listed
})
