/**
 * @since 0.1.0
 */
import type { Path, Scope } from "@strata/dirty-queue/Path"
import type * as Follower from "@strata/follower/Follower"
import * as Rebuilding from "@strata/follower/Rebuild"
import * as FileTree from "@strata/search/FileTree"
import { SuddenlyEmpty } from "@strata/search/Scan"
import type * as SearchIndex from "@strata/search/SearchIndex"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { Database } from "../Database.ts"
import * as Findings from "../Findings.ts"
import type { Progress } from "../Progress.ts"
import type { RebuildResult } from "../Results.ts"
import type { SharedTier } from "../SharedTier.ts"
import * as Synchronising from "../Synchronising.ts"
import * as Workspace from "../Workspace.ts"
import { toResult } from "./Index.ts"

// ---------------------------------------------------------------------------------------------------------------------
// errors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A directory is gone, cannot be read or is suddenly empty: an index without its documents was not built.
 *
 * @since 0.1.0
 * @category errors
 */
export class NotRebuilt extends Schema.TaggedError<NotRebuilt>("@strata/cli/NotRebuilt")("NotRebuilt", {
  reason: Schema.Union([SuddenlyEmpty, FileTree.FileTreeError])
}) {
  override get message(): string {
    const directory = this.reason._tag === "SuddenlyEmpty" ? this.reason.directory : this.reason.root
    return `${this.reason.message}; the index was not rebuilt. If it is gone for good, strata index ${directory} --force takes it out`
  }
}

/**
 * Paths that the serving index has text of cannot be read now.
 *
 * @since 0.1.0
 * @category errors
 */
class WouldLose extends Schema.TaggedError<WouldLose>("@strata/cli/WouldLose")("WouldLose", { paths: Schema.Int }) {}

// ---------------------------------------------------------------------------------------------------------------------
// operations
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Builds the index anew beside the one that serves, and switches when it has caught up, unless text would be lost that
 * the old one has, as its file cannot be read now: then the old one serves on. A rebuild that was interrupted, or did not
 * switch, goes on.
 *
 * @since 0.1.0
 * @category operations
 */
export const rebuild = (options: {
  readonly database: Database
  readonly shared: SharedTier | undefined
  readonly progress: Progress
}) =>
  Effect.gen(function* () {
    const start = yield* Clock.currentTimeMillis
    const workspace = yield* Workspace.Workspace
    // Asked before: afterwards the roots are those of the follower of the new index.
    const targets = (yield* workspace.roots).map((scope) => ({ scope, under: "" }))
    yield* Effect.forEach(targets, ({ scope }) => workspace.scan.run({ scope }), { discard: true }).pipe(
      Effect.catchTag(["FileTreeError", "SuddenlyEmpty"], (reason) => Effect.fail(new NotRebuilt({ reason })))
    )
    const { follower, lost } = yield* run(options.progress)
    const { indexed, removed } = yield* workspace.counts
    const listed = yield* Effect.provideService(
      Findings.list(targets),
      Workspace.Workspace,
      Workspace.Workspace.of({ ...workspace, follower })
    )
    const elapsedMs = (yield* Clock.currentTimeMillis) - start
    const written = lost === 0 ? (yield* workspace.index.documents).indexed : indexed
    const found = written + listed.skipped + listed.failed
    return { ...toResult({ found, indexed, removed }, listed, elapsedMs), lost } satisfies RebuildResult
  }).pipe(Effect.scoped, Effect.provide(Workspace.layerExisting(options.database, options.shared)))

/**
 * Rebuilds the index of the workspace, whose roots were scanned just before. Gives the follower of the new one, and how
 * many documents would have been lost: when there is one, nothing was switched.
 *
 * @since 0.1.0
 * @category operations
 */
export const run = Effect.fnUntraced(function* (progress: Progress) {
  const { counts, follower: old, index, makeFollower, queue, roots, scan } = yield* Workspace.Workspace
  const scopes = yield* roots
  const serving = yield* index.active
  const generation = yield* index.begin
  const follower = yield* makeFollower(generation)
  const { indexed, skipped } = yield* index.documents
  // What a rebuild before this one could not read is tried first, as only that may be what keeps it from switching.
  for (const { scope } of yield* queue.registrations({ follower: follower.name })) {
    yield* Synchronising.tryAgain(follower, { scope, under: "" })
    yield* Synchronising.settle(follower, scope, () => Effect.void)
  }
  const drainAll = Effect.gen(function* () {
    for (const scope of scopes) {
      // It may not be registered yet: that is done beside, and done for one scope after the other.
      yield* Effect.catchReason(follower.drain(scope), "DirtyQueueError", "NotRegistered", () => Effect.void)
      const written = yield* counts
      yield* progress.update({ done: written.indexed + written.skipped, total: indexed + skipped })
    }
  })
  const lost = yield* Rebuilding.run({
    follower,
    replaces: old.name,
    scopes,
    content: (scope) => scan.paths(scope),
    activate: Effect.andThen(refuseLoss(follower, serving, generation), index.activate(generation)),
    // A file that could not be read before cannot keep the index from being mended.
    failures: "accept"
  }).pipe(
    Effect.raceFirst(Effect.forever(Effect.delay(drainAll, "10 millis"))),
    Effect.as(0),
    Effect.catchTag("WouldLose", ({ paths }) => Effect.succeed(paths))
  )
  if (lost === 0) yield* index.dropRetired
  return { follower, lost }
})

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/** Fails when paths that could not be processed have passages in the index that serves, and none in the new one. */
const refuseLoss = Effect.fnUntraced(function* (
  follower: Follower.Follower,
  serving: Option.Option<SearchIndex.Generation>,
  generation: SearchIndex.Generation
) {
  if (Option.isNone(serving)) return
  const { queue } = yield* Workspace.Workspace
  const options = { follower: follower.name, limit: rowLimit }
  const failed = [...(yield* queue.failing(options)), ...(yield* queue.deadLetters(options))]
  let paths = 0
  for (const scope of new Set(failed.map((row) => row.scope))) {
    const ofScope = failed.filter((row) => row.scope === scope).map((row) => row.path)
    const held = yield* searchable(serving.value, scope, ofScope)
    const built = yield* searchable(generation, scope, ofScope)
    paths += [...held].filter((path) => !built.has(path)).length
  }
  if (paths > 0) return yield* new WouldLose({ paths })
})

/** More rows than anyone has failing paths. */
const rowLimit = 100_000

/** Those of some paths that a generation has passages of. */
const searchable = Effect.fnUntraced(function* (
  generation: SearchIndex.Generation,
  scope: Scope,
  paths: ReadonlyArray<Path>
) {
  const { index } = yield* Workspace.Workspace
  const weights = yield* index.writer(generation).weights?.(scope, paths) ?? Effect.succeed(new Map<Path, number>())
  return new Set([...weights].flatMap(([path, weight]) => (weight > 0 ? [path] : [])))
})
