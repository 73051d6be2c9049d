/**
 * @since 0.1.0
 */
import { SuddenlyEmpty } from "@strata/search/Scan"
import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Progress } from "../Progress.ts"
import type { Failure, IndexResult } from "../Results.ts"
import * as Workspace from "../Workspace.ts"

/**
 * The directory was not indexed, since that looks like an accident; `--force` says that it is none.
 *
 * @since 0.1.0
 * @category errors
 */
export class Refused extends Schema.TaggedError<Refused>("@strata/cli/Refused")("Refused", {
  reason: SuddenlyEmpty
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
  readonly database: string
  readonly directories: ReadonlyArray<string>
  readonly force: boolean
  readonly progress: Progress
}) =>
  Effect.gen(function* () {
    const start = yield* Clock.currentTimeMillis
    const { counts } = yield* Workspace.Workspace
    const before = yield* counts
    const targets = yield* Effect.forEach(options.directories, (directory) =>
      addOrRemove(directory, options.force)
    ).pipe(Effect.map(Arr.getSomes))
    const synced = yield* Effect.catchTag(Workspace.sync(targets, options), "SuddenlyEmpty", (error) =>
      Effect.fail(new Refused({ reason: error }))
    )
    yield* Workspace.mergeRoots(targets)
    yield* Workspace.pruneChangelog()
    const removed = (yield* counts).removed - before.removed
    return yield* report({ ...synced, removed }, start, targets)
  }).pipe(Effect.provide(Workspace.layer(options.database)))

/** A directory that is gone is an accident, unless that is said to be none: then it leaves the index. */
const addOrRemove = (directory: string, force: boolean) =>
  Effect.asSome(Workspace.addRoot(directory)).pipe(
    Effect.catchTag("FileTreeError", (error) =>
      Effect.flatMap(force ? Workspace.removeRoot(directory) : Effect.succeed(false), (removed) =>
        removed ? Effect.succeedNone : Effect.fail(error)
      )
    )
  )

/**
 * The result of a command that brought an index up to date, with what failed and what was passed over.
 *
 * @since 0.1.0
 * @category results
 */
export const report = Effect.fnUntraced(function* (
  synced: Workspace.Synced,
  start: number,
  targets: ReadonlyArray<Workspace.Target>
): Effect.fn.Return<
  { readonly result: IndexResult; readonly failures: ReadonlyArray<Failure> },
  Effect.Error<ReturnType<typeof Workspace.listSkipped>>,
  Workspace.Workspace
> {
  const skipped = yield* Workspace.listSkipped(targets.map((target) => target.scope))
  const failed = synced.failures.length
  return {
    result: {
      scanned: synced.scanned,
      indexed: synced.indexed,
      unchanged: Math.max(0, synced.scanned - synced.indexed - failed),
      removed: synced.removed,
      failed,
      elapsedMs: (yield* Clock.currentTimeMillis) - start,
      skipped
    },
    failures: synced.failures
  }
})
