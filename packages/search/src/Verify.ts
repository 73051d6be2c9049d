/**
 * Compares the index with the directory it was made from, file by file and digest by digest, and records what does not
 * fit, so that the follower mends it.
 *
 * @since 0.1.0
 */
import { type Change, Changelog, type ChangelogError } from "@strata/dirty-queue/Changelog"
import { Path, type Scope } from "@strata/dirty-queue/Path"
import { DurableWriter } from "@strata/durable/DurableWriter"
import type { ContentReader } from "@strata/follower/ContentReader"
import type { ProcessingError } from "@strata/follower/ProcessingError"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { SqlError } from "effect/sql/SqlError"
import * as Stream from "effect/Stream"
import * as FileTree from "./FileTree.ts"
import { isUnknown, unknownIn } from "./internal/unknown.ts"
import * as Roots from "./Roots.ts"
import { type Indexed, SearchIndex } from "./SearchIndex.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * What to compare.
 *
 * @since 0.1.0
 * @category models
 */
export interface VerifyOptions extends Omit<FileTree.WalkOptions, "under"> {
  /** The absolute base folder of the roots. */
  readonly base: string
  readonly scope: Scope
  /** Reads every file that is there, whether a scan has listed it or not. */
  readonly reader: ContentReader<Indexed>
}

/**
 * What cannot be compared, and why. The path of a name that is none shows it escaped.
 *
 * @since 0.1.0
 * @category models
 */
export interface Unreadable {
  readonly path: string
  readonly reason: string
}

/**
 * Where index and directory differ.
 *
 * @since 0.1.0
 * @category models
 */
export interface Differences {
  /** Files that are not in the index. */
  readonly missing: ReadonlyArray<Path>
  /** Files whose content is not what the index was made from. */
  readonly stale: ReadonlyArray<Path>
  /** Documents whose file is gone, or is not to be indexed any more. */
  readonly orphaned: ReadonlyArray<Path>
  /** Files and directories that cannot be read, or have no path that can be indexed: nothing can be said of them. */
  readonly unreadable: ReadonlyArray<Unreadable>
}

// ---------------------------------------------------------------------------------------------------------------------
// operations
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Compares the active generation with a root. Reads every file; changes nothing. What is dirty at the time differs too,
 * so let the index catch up first.
 *
 * @since 0.1.0
 * @category operations
 */
export const compare = Effect.fn("Verify.compare")(function* (
  options: VerifyOptions
): Effect.fn.Return<Differences, FileTree.FileTreeError | SqlError, SearchIndex> {
  const index = yield* SearchIndex
  const held = yield* allDigests(index, options.scope)
  const missing: Array<Path> = []
  const stale: Array<Path> = []
  const unreadable: Array<Unreadable> = []
  const unknown: Array<string> = []
  const visit = Effect.fnUntraced(function* (directory: FileTree.Directory) {
    unknown.push(...unknownIn(directory))
    unreadable.push(...unreadableEntries(directory))
    for (const file of directory.files) {
      const path = Path.make(file.path)
      const digest = held.get(path)
      held.delete(path)
      const found = yield* Effect.result(readDigest(options, path))
      if (found._tag === "Failure") {
        unreadable.push({ path, reason: found.failure.message })
      } else if (Option.isSome(found.success)) {
        if (digest === undefined) missing.push(path)
        else if (digest !== found.success.value) stale.push(path)
      } else if (digest !== undefined) {
        held.set(path, digest)
      }
    }
  })
  yield* Stream.runForEach(FileTree.walk(Roots.folderOf(options.base, options.scope), options), visit)
  const orphaned = [...held.keys()].filter((path) => !isUnknown(unknown, path))
  return { missing, stale, orphaned, unreadable }
})

/**
 * Records the differences as changes, for the follower to mend. A follower goes by what the last scan listed, so scan
 * first.
 *
 * @since 0.1.0
 * @category operations
 */
export const repair = Effect.fn("Verify.repair")(function* (
  scope: Scope,
  differences: Differences
): Effect.fn.Return<void, ChangelogError | SqlError, Changelog | DurableWriter> {
  const changelog = yield* Changelog
  const durable = yield* DurableWriter
  const changes: ReadonlyArray<Change> = [
    ...[...differences.missing, ...differences.stale].map((path): Change => ({ op: "put", scope, path })),
    ...differences.orphaned.map((path): Change => ({ op: "delete", scope, path }))
  ]
  yield* durable.write(changelog.record(changes))
})

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const unreadableEntries = ({ problems }: FileTree.Directory): ReadonlyArray<Unreadable> =>
  problems.flatMap(({ path, reason }) =>
    FileTree.isFault(reason) ? [{ path, reason: FileTree.describe(reason) }] : []
  )

const allDigests = Effect.fnUntraced(function* (index: SearchIndex["Service"], scope: Scope) {
  const digests = new Map<Path, string>()
  let after: string | undefined
  while (true) {
    const page = yield* index.digests(scope, { after })
    for (const { digest, path } of page) digests.set(path, digest)
    after = page.at(-1)?.path
    if (after === undefined) return digests
  }
})

const readDigest = (
  { reader, scope }: VerifyOptions,
  path: Path
): Effect.Effect<Option.Option<string>, ProcessingError> =>
  Effect.map(
    reader.read({ scope, path }),
    Option.map((content) => content.digest)
  )
