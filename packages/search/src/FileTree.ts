/**
 * Walks the files of a directory.
 *
 * {@link walk} answers one {@link Directory} after another, each with a short
 * signature for every file that changes whenever the file does. It costs little
 * more than asking the system for the names and states of the same tree, looks
 * at about 1,000 entries at a time before it lets other fibers run, and holds
 * one directory in memory. Whatever cannot be used is a {@link Problem} of its
 * directory, and the walk goes on.
 *
 * @since 0.1.0
 */
import { maxPathBytes } from "@strata/dirty-queue/Path"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as NodePath from "node:path"
import { type FileSystem, isDirectory, isFailure, isGone, nodeFileSystem } from "./internal/fileSystem.ts"
import { Walker, type WalkerOptions } from "./internal/walker.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A regular file. Paths are from the walk's root and separated by slashes.
 *
 * @since 0.1.0
 * @category models
 */
export interface FileEntry {
  readonly name: string
  readonly path: string
  /** In bytes. */
  readonly size: number
  /** When the content last changed, in ms since the epoch. */
  readonly mtimeMs: number
  /**
   * Size, time of modification, time of change (both to the microsecond) and inode, as one string to compare. It
   * differs after any change, except one that `racy` warns of.
   */
  readonly signature: string
  /**
   * The file changed so shortly before the walk that it may change again within the same tick of the file system's
   * clock: another walk that finds the same signature should look at the content.
   */
  readonly racy: boolean
}

/**
 * Why an entry is not used.
 *
 * - `DanglingLink`, `LinkLoop`: a link that leads nowhere, or to a directory above it (both only where links are
 *   followed)
 * - `SpecialFile`: a FIFO, a socket or a device
 * - `Unreadable`: with the system's code, as `EACCES`; for a directory, nothing is known of what is below it
 * - `NotUtf8`, `ControlCharacter`: a name that cannot be a path; the problem's path then shows it escaped
 * - `PathTooLong`: a path of more bytes than the queue takes; for a directory, all that is below it has one
 *
 * @since 0.1.0
 * @category models
 */
export const ProblemReason = Schema.TaggedUnion({
  DanglingLink: {},
  LinkLoop: {},
  SpecialFile: { kind: Schema.Literals(["FIFO", "socket", "device", "unknown"]) },
  Unreadable: { code: Schema.String },
  NotUtf8: {},
  ControlCharacter: {},
  PathTooLong: {}
})

/**
 * @since 0.1.0
 * @category models
 */
export type ProblemReason = typeof ProblemReason.Type

/**
 * A reason in words for people.
 *
 * @since 0.1.0
 * @category models
 */
export const describe: (reason: ProblemReason) => string = ProblemReason.match({
  DanglingLink: () => "the link leads nowhere",
  LinkLoop: () => "the link leads to a directory above it",
  SpecialFile: ({ kind }) => (kind === "unknown" ? "it is no regular file" : `it is a ${kind}, not a regular file`),
  Unreadable: ({ code }) => `it cannot be read (${code})`,
  NotUtf8: () => "the name is not UTF-8",
  ControlCharacter: () => "the name has a control character",
  PathTooLong: () => `the path has more than ${maxPathBytes} bytes`
})

/**
 * Whether an entry was meant to be indexed and could not: a name or a state that cannot be read, a path that is too
 * long. What is no file, as a FIFO, is only passed over.
 *
 * @since 0.1.0
 * @category models
 */
export const isFault = ({ _tag }: ProblemReason): boolean =>
  _tag === "Unreadable" || _tag === "NotUtf8" || _tag === "ControlCharacter" || _tag === "PathTooLong"

/**
 * An entry that is not used, and why.
 *
 * @since 0.1.0
 * @category models
 */
export interface Problem {
  readonly path: string
  readonly reason: ProblemReason
}

/**
 * What a directory holds, in the order of UTF-8 bytes.
 *
 * @since 0.1.0
 * @category models
 */
export interface Directory {
  /** From the root, as `a/b/`; empty for the root itself. */
  readonly path: string
  readonly files: ReadonlyArray<FileEntry>
  /** The paths of the directories in it that the walk comes to next, as `a/b/c/`. */
  readonly directories: ReadonlyArray<string>
  /** How many links are not followed: all, or those to what the walk meets anyway. */
  readonly links: number
  readonly problems: ReadonlyArray<Problem>
  /** `false` when the directory could not be listed: its entries may still be there. */
  readonly complete: boolean
}

/**
 * @since 0.1.0
 * @category models
 */
export interface WalkOptions {
  /**
   * The directory to start at, from the root, as `docs/api/`. The `.gitignore` files above it count. There is nothing
   * to walk when it does not exist or the walk of the root would not come to it. Default: the root.
   */
  readonly under?: string | undefined
  /**
   * Follows links to what is outside the root; the first in the walk's order wins where several lead to the same file.
   * Links to what is below the root are never followed, since the walk meets it anyway. Default `false`.
   */
  readonly followSymlinks?: boolean | undefined
  /** Leaves out what the `.gitignore` files at and below the root ignore, as git would. Default `true`. */
  readonly gitignore?: boolean | undefined
  /** Names left out wherever they are. Default `.git` and `.strata`. */
  readonly skip?: ReadonlyArray<string> | undefined
  /**
   * Absolute files that are left out, by whatever path the walk comes to their folder: those of the index itself, say.
   * They need not exist. Default: none.
   */
  readonly exclude?: ReadonlyArray<string> | undefined
  /**
   * How long before the walk's start a change makes a file racy. Default 2 seconds, the coarsest clock of a file system
   * in use (FAT).
   */
  readonly racyWindow?: Duration.Input | undefined
}

// ---------------------------------------------------------------------------------------------------------------------
// errors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Why a root cannot be walked.
 *
 * @since 0.1.0
 * @category errors
 */
export const FileTreeReason = Schema.TaggedUnion({
  RootMissing: {},
  RootNotDirectory: {},
  RootUnreadable: { code: Schema.String }
})

/**
 * @since 0.1.0
 * @category errors
 */
export type FileTreeReason = typeof FileTreeReason.Type

/**
 * A root that cannot be walked.
 *
 * @since 0.1.0
 * @category errors
 */
export class FileTreeError extends Schema.TaggedError<FileTreeError>("@strata/search/FileTreeError")("FileTreeError", {
  root: Schema.String,
  reason: FileTreeReason
}) {
  override get message(): string {
    return FileTreeReason.match(this.reason, {
      RootMissing: () => `${this.root} does not exist`,
      RootNotDirectory: () => `${this.root} is not a directory`,
      RootUnreadable: ({ code }) => `${this.root} cannot be read (${code})`
    })
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The directories of a tree, parents first, in the order of the UTF-8 bytes of
 * their paths; so their sequence can be merged with any list in that order.
 * Hidden files count as others. A directory that disappears under the walk is
 * not reported.
 *
 * @since 0.1.0
 * @category constructors
 */
export const walk = (root: string, options?: WalkOptions): Stream.Stream<Directory, FileTreeError> =>
  walkWith(nodeFileSystem, root, options)

/**
 * {@link walk} on another file system.
 *
 * @internal
 */
export const walkWith = (
  fileSystem: FileSystem,
  root: string,
  options?: WalkOptions
): Stream.Stream<Directory, FileTreeError> =>
  Stream.fromPull(
    Effect.gen(function* () {
      yield* checkRoot(fileSystem, root)
      const walker = new Walker(fileSystem, walkerOptions(fileSystem, root, options, yield* Clock.currentTimeMillis))
      walker.start(directoryPath(options?.under ?? ""))
      return pull(fileSystem, root, walker)
    })
  ).pipe(Stream.withSpan("FileTree.walk", { attributes: { root, under: options?.under } }))

/**
 * Whether {@link walk} would pass over `path` for its name: because of a
 * `.gitignore` or as one of `skip` or `exclude`. The path is from the root, need not exist,
 * and ends with a slash if it is that of a directory. Reads the `.gitignore`
 * files on the way; one that cannot be read has no rules.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isIgnored = Effect.fn("FileTree.isIgnored")((root: string, path: string, options?: WalkOptions) =>
  Effect.sync(() => new Walker(nodeFileSystem, walkerOptions(nodeFileSystem, root, options, 0)).ignores(path))
)

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/** How many entries are looked at before other fibers get their turn: some milliseconds. */
const entriesPerStep = 1_000

const pull = Effect.fnUntraced(function* (fileSystem: FileSystem, root: string, walker: Walker) {
  while (!walker.done) {
    const large = walker.large
    const listed = large === undefined ? [] : walker.supply(yield* Effect.promise(() => fileSystem.listAsync(large)))
    const [first, ...rest] = [...listed, ...walker.step(entriesPerStep)]
    const unlisted = first?.path === "" ? first.problems.find(({ path }) => path === "") : undefined
    if (unlisted !== undefined) return yield* refuse(root, rootUnreadable(unlisted))
    yield* Effect.yieldNow
    if (first !== undefined) return [first, ...rest] as const
  }
  return yield* Cause.done()
})

const rootUnreadable = ({ reason }: Problem): FileTreeReason => ({
  _tag: "RootUnreadable",
  code: reason._tag === "Unreadable" ? reason.code : "UNKNOWN"
})

const checkRoot = (fileSystem: FileSystem, root: string): Effect.Effect<void, FileTreeError> =>
  Effect.suspend(() => {
    const stat = fileSystem.stat(root)
    if (!isFailure(stat)) return isDirectory(stat) ? Effect.void : refuse(root, { _tag: "RootNotDirectory" })
    if (isGone(stat)) return refuse(root, { _tag: "RootMissing" })
    return refuse(root, { _tag: "RootUnreadable", code: stat.code })
  })

const refuse = (root: string, reason: FileTreeReason) => Effect.fail(new FileTreeError({ root, reason }))

const walkerOptions = (
  fileSystem: FileSystem,
  root: string,
  options: WalkOptions | undefined,
  now: number
): WalkerOptions => ({
  root: directoryPath(root),
  followSymlinks: options?.followSymlinks ?? false,
  gitignore: options?.gitignore ?? true,
  skip: new Set(options?.skip ?? [".git", ".strata"]),
  exclude: byName(fileSystem, options?.exclude ?? []),
  racySince: now - Duration.toMillis(options?.racyWindow ?? "2 seconds")
})

const byName = (fileSystem: FileSystem, files: ReadonlyArray<string>): ReadonlyMap<string, ReadonlySet<string>> => {
  const folders = new Map<string, Set<string>>()
  for (const file of files) {
    const real = fileSystem.realPath(NodePath.dirname(file))
    const name = NodePath.basename(file)
    folders.set(name, (folders.get(name) ?? new Set<string>()).add(isFailure(real) ? NodePath.dirname(file) : real))
  }
  return folders
}

const directoryPath = (path: string): string => (path === "" || path.endsWith("/") ? path : `${path}/`)
