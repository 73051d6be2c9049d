/**
 * @since 0.1.0
 */
import { SuddenlyEmpty } from "@strata/search/Scan"
import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Database } from "../Database.ts"
import * as Directories from "../Directories.ts"
import * as Findings from "../Findings.ts"
import type { Progress } from "../Progress.ts"
import type { IndexResult, Listed } from "../Results.ts"
import type { SharedTier } from "../SharedTier.ts"
import * as Synchronising from "../Synchronising.ts"
import * as Workspace from "../Workspace.ts"
import * as Unpublished from "../internal/unpublished.ts"

/**
 * The directory was not indexed, since that looks like an accident; `--force` says that it is none.
 *
 * @since 0.1.0
 * @category errors
 */
export class Refused extends Schema.TaggedError<Refused>("@strata/cli/Refused")("Refused", {
  reason: Schema.Union([SuddenlyEmpty, Directories.InnerRootMissing])
}) {
  override get message(): string {
    return `${this.reason.message}; with --force its documents are removed`
  }
}

/**
 * Brings the index of directories, given as absolute paths, up to date.
 *
 * @since 0.1.0
 * @category operations
 */
export const index = (options: {
  readonly database: Database
  readonly directories: ReadonlyArray<string>
  readonly force: boolean
  readonly shared: SharedTier | undefined
  readonly progress: Progress
  /** How many files are known to wait when the run is interrupted. */
  readonly onInterrupted: (waiting: number) => Effect.Effect<void>
}) =>
  Effect.gen(function* () {
    const start = yield* Clock.currentTimeMillis
    const { counts, extraction } = yield* Workspace.Workspace
    const before = yield* counts
    const named = yield* Effect.forEach(options.directories, (directory) => addOrRemove(directory, options.force))
    const targets = Directories.outermost(Arr.getSomes(named))
    const synced = yield* Effect.catchTag(
      syncGuarded(targets, options),
      ["SuddenlyEmpty", "InnerRootMissing"],
      (reason) => Effect.fail(new Refused({ reason }))
    )
    const moved = yield* Directories.mergeRoots(targets)
    yield* Synchronising.pruneChangelog()
    const removed = (yield* counts).removed - before.removed - moved
    const elapsedMs = (yield* Clock.currentTimeMillis) - start
    const result = toResult({ ...synced, removed }, yield* Findings.list(targets), elapsedMs)
    return { ...result, cache: yield* extraction, ...(yield* Unpublished.left(options.shared)) }
  }).pipe(
    Effect.onInterrupt(() => Effect.flatMap(countWaiting, options.onInterrupted)),
    Effect.provide(Workspace.layer(options.database, options.shared))
  )

/**
 * Whether something of a directory, which does not exist, is in the index of a database.
 *
 * @since 0.1.0
 * @category operations
 */
export const isIndexed = (database: Database, directory: string) =>
  Directories.isIndexed(directory).pipe(
    Effect.provide(Workspace.layerExisting(database)),
    // What is wrong with the database is for a command to tell that needs it.
    Effect.orElseSucceed(() => false)
  )

/** None where the database does not tell at once: who interrupts a command does not want to wait. */
const countWaiting = Effect.gen(function* () {
  const { follower, queue } = yield* Workspace.Workspace
  const { total } = yield* queue.stats({ follower: follower.name })
  return total.rows - total.dead
}).pipe(
  Effect.interruptible,
  Effect.timeout("500 millis"),
  Effect.orElseSucceed(() => 0)
)

/** Each directory was named, now or before, because it has something: an empty one is an accident. */
const syncGuarded = (
  targets: ReadonlyArray<Workspace.Target>,
  options: { readonly force: boolean; readonly progress: Progress }
) =>
  Effect.andThen(
    options.force ? Effect.void : Directories.guardInner(targets),
    Synchronising.sync(targets, { ...options, guard: "part" })
  )

/** A directory that is gone is an accident, unless that is said to be none: then it leaves the index. */
const addOrRemove = (directory: string, force: boolean) =>
  Effect.asSome(Directories.addRoot(directory)).pipe(
    Effect.catchTag("FileTreeError", (error) =>
      force ? Directories.removeMissing(directory, error) : Effect.fail(error)
    )
  )

/**
 * The result of a command that brought an index up to date. What else was found is unchanged; where other processes
 * changed the index or the files meanwhile, more may have been looked at than was found.
 *
 * @since 0.1.0
 * @category results
 */
export const toResult = (
  { found, indexed, removed }: Synchronising.Synced,
  listed: Listed,
  elapsedMs: number
): IndexResult => {
  const unchanged = Math.max(0, found - indexed - listed.skipped - listed.failed)
  return {
    scanned: indexed + unchanged + listed.skipped + listed.failed,
    indexed,
    unchanged,
    removed,
    elapsedMs,
    ...listed
  }
}
