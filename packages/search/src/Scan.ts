/**
 * Finds out what changed in a directory and records it in the changelog. Size, times and inode of each file are compared
 * with what the last scan saw; no content is read. Where they cannot decide, as for a file that was written within the
 * clock tick of the scan, the path is recorded, and its digest decides when the follower reads it.
 *
 * Changes are recorded in batches, each in one write with what was seen. A scan that is interrupted anywhere leaves the
 * rest to the next one.
 *
 * @since 0.1.0
 */
import { type Change, Changelog, type ChangelogError } from "@strata/dirty-queue/Changelog"
import { Path, type Scope } from "@strata/dirty-queue/Path"
import * as Digest from "@strata/durable/Digest"
import { DurableWriter } from "@strata/durable/DurableWriter"
import * as Migrations from "@strata/durable/Migrations"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as Migrator from "effect/sql/Migrator"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import * as Stream from "effect/Stream"
import * as NodePath from "node:path"
import * as FileTree from "./FileTree.ts"
import { byDialect } from "./internal/byDialect.ts"
import * as Manifest from "./internal/manifest.ts"
import * as Problems from "./internal/problems.ts"
import { makeListing } from "./internal/listing.ts"
import * as PostgresSeen from "./internal/postgresSeen.ts"
import * as SqliteSeen from "./internal/sqliteSeen.ts"
import type { Folder, SeenStorage } from "./internal/storage.ts"
import { isUnknown, unknownIn } from "./internal/unknown.ts"
import * as Roots from "./Roots.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * What to scan.
 *
 * @since 0.1.0
 * @category models
 */
export interface ScanOptions {
  readonly scope: Scope
  /** Only this directory of the root, as `docs/api/`. Default: all of it. */
  readonly under?: string | undefined
  /**
   * What has to have a file, when it had one before: the `root`, so that a part of it can become empty, or the `part`
   * itself, which was meant to be there. Default `root`.
   */
  readonly guard?: "root" | "part" | undefined
  /** Takes what is suddenly empty for what it seems to be, and removes its documents. Default `false`. */
  readonly force?: boolean | undefined
  /** Called after each batch, with the counts so far. */
  readonly onProgress?: ((progress: Progress) => Effect.Effect<void>) | undefined
}

/**
 * Counts of files.
 *
 * @since 0.1.0
 * @category models
 */
export interface Progress {
  /** Files found. */
  readonly files: number
  /** Files recorded as new or changed. */
  readonly changed: number
  /** Files recorded as removed. */
  readonly removed: number
}

/**
 * What a scan came to.
 *
 * @since 0.1.0
 * @category models
 */
export interface Scanned extends Progress {
  /** Links that were not followed. */
  readonly links: number
  /** Entries that cannot be used. Files below a directory that cannot be read stay in the index. */
  readonly problems: ReadonlyArray<FileTree.Problem>
}

// ---------------------------------------------------------------------------------------------------------------------
// errors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A root, or a guarded part of one, that had files has none at all: more likely a disk that is not mounted than a wish
 * to empty the index. A scan of a part of an empty root, which would remove all of that part, is refused for the same
 * reason.
 *
 * @since 0.1.0
 * @category errors
 */
export class SuddenlyEmpty extends Schema.TaggedError<SuddenlyEmpty>("@strata/search/SuddenlyEmpty")("SuddenlyEmpty", {
  directory: Schema.String
}) {
  override get message(): string {
    return `${this.directory} is suddenly empty: nothing was removed from the index`
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// service
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Scans roots.
 *
 * @since 0.1.0
 * @category services
 */
export class Scan extends Context.Service<
  Scan,
  {
    /**
     * Records what changed since the last scan. A follower gets what is recorded after it was registered in the scope,
     * so register it first. Fails with `ChangelogError` when the scope is longer than the changelog takes.
     */
    readonly run: (
      options: ScanOptions
    ) => Effect.Effect<Scanned, FileTree.FileTreeError | SuddenlyEmpty | ChangelogError | SqlError>
    /** Whether the last scan saw a path: whether it is to be in the index. */
    readonly lists: (scope: Scope, path: Path) => Effect.Effect<boolean, SqlError>
    /** The paths that the last scan saw, folder by folder. */
    readonly paths: (scope: Scope) => Stream.Stream<Path, SqlError>
    /** What the last scans could not use of a root, or of a part of it as `docs/api/`, by path in byte order. */
    readonly problems: (scope: Scope, under?: string) => Effect.Effect<ReadonlyArray<FileTree.Problem>, SqlError>
    /** Forgets what was seen of a root, and records its files as removed. */
    readonly forget: (scope: Scope) => Effect.Effect<number, ChangelogError | SqlError>
  }
>()("@strata/search/Scan") {}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * How trees are walked: the options of `FileTree.walk`, and the base folder of the roots.
 *
 * @since 0.1.0
 * @category models
 */
export interface ScanSettings extends Omit<FileTree.WalkOptions, "under"> {
  /** Absolute. */
  readonly base: string
}

/**
 * Scans of the roots below a base folder, recorded in the database of the `SqlClient` in context.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = Effect.fnUntraced(function* (
  settings: ScanSettings
): Effect.fn.Return<
  Scan["Service"],
  SqlError | Migrator.MigrationError,
  SqlClient.SqlClient | DurableWriter | Changelog
> {
  const seen = byDialect(yield* SqlClient.SqlClient, { postgres: PostgresSeen.make, sqlite: SqliteSeen.make })
  const durable = yield* DurableWriter
  const changelog = yield* Changelog
  yield* Migrations.run(seen.migrations)
  const recorder = (options: ScanOptions) => new Recorder(seen, durable, changelog, options)
  return Scan.of({
    run: Effect.fn("Scan.run")((options) =>
      Effect.tap(run(seen, settings, options, recorder(options)), ({ problems }) =>
        Problems.replace(seen, durable, options.scope, options.under ?? "", problems)
      )
    ),
    lists: makeListing(seen),
    paths: (scope) => seenPaths(seen, scope),
    problems: (scope, under) => Problems.list(seen, scope, under ?? ""),
    forget: Effect.fn("Scan.forget")((scope) => forget(seen, durable, scope, recorder({ scope })))
  })
})

/**
 * Scans of the roots below a base folder.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  settings: ScanSettings
): Layer.Layer<Scan, SqlError | Migrator.MigrationError, SqlClient.SqlClient | DurableWriter | Changelog> =>
  Layer.effect(Scan, make(settings))

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const run = Effect.fnUntraced(function* (
  seen: SeenStorage,
  settings: ScanSettings,
  options: ScanOptions,
  recorder: Recorder
) {
  const root = Roots.folderOf(settings.base, options.scope)
  const under = options.under ?? ""
  const manifest = new Manifest.ManifestCursor(seen, options.scope, under)
  const problems: Array<FileTree.Problem> = []
  /** What is below these is not known, so it stays as it was. */
  const unknown: Array<string> = []
  let links = 0
  const visit = Effect.fnUntraced(function* (directory: FileTree.Directory) {
    links += directory.links
    problems.push(...directory.problems)
    const { entries, passed } = yield* manifest.advance(directory.path)
    recorder.vanished(passed, unknown)
    unknown.push(...unknownIn(directory))
    if (directory.complete) {
      recorder.visited(directory, entries ?? "", unreadableFiles(directory))
    }
    if (recorder.isFull) yield* recorder.flush
  })
  yield* Stream.runForEach(FileTree.walk(root, { ...settings, under }), visit)
  const { passed } = yield* manifest.advance(undefined)
  recorder.vanished(passed, unknown)
  if (recorder.holdsBack && options.force !== true) {
    const isGuarded = under === "" || options.guard === "part"
    if (isGuarded || !(yield* hasFiles(root, settings))) {
      return yield* new SuddenlyEmpty({ directory: isGuarded ? NodePath.join(root, under) : root })
    }
  }
  yield* recorder.finish
  return { ...recorder.progress, links, problems }
})

/** Whether a root has any file, when the part of it that was scanned has none. */
const hasFiles = (root: string, settings: ScanSettings): Effect.Effect<boolean, FileTree.FileTreeError> =>
  FileTree.walk(root, settings).pipe(
    Stream.filter((directory) => directory.files.length > 0),
    Stream.runHead,
    Effect.map(Option.isSome)
  )

/** A file that is there, but whose state cannot be read, has not been removed. */
const unreadableFiles = (directory: FileTree.Directory): ReadonlySet<string> =>
  new Set(
    directory.problems.flatMap(({ path, reason }) =>
      reason._tag === "Unreadable" ? [path.slice(directory.path.length)] : []
    )
  )

/** Changes of a batch. */
const batchChanges = 1000

/** Folders of a batch. */
const batchFolders = 500

/**
 * Collects changes with the state of their folders, and records both in one write. Removals are held back until the
 * first file is found: before that, everything may be gone because the root is.
 */
class Recorder {
  private changes: Array<Change> = []
  private folders: Array<Folder> = []
  private held: Array<{ readonly folder: Folder; readonly removed: ReadonlyArray<string> }> = []
  private files = 0
  private changed = 0
  private removed = 0
  private readonly seen: SeenStorage
  private readonly durable: DurableWriter["Service"]
  private readonly changelog: Changelog["Service"]
  private readonly options: ScanOptions

  constructor(
    seen: SeenStorage,
    durable: DurableWriter["Service"],
    changelog: Changelog["Service"],
    options: ScanOptions
  ) {
    this.seen = seen
    this.durable = durable
    this.changelog = changelog
    this.options = options
  }

  get progress(): Progress {
    return { files: this.files, changed: this.changed, removed: this.removed }
  }

  get isFull(): boolean {
    return this.changes.length >= batchChanges || this.folders.length >= batchFolders
  }

  /** Whether files were removed and none was found. */
  get holdsBack(): boolean {
    return this.files === 0 && this.held.length > 0
  }

  /** A folder that the walk has listed. */
  visited(directory: FileTree.Directory, before: string, unreadable: ReadonlySet<string>): void {
    this.files += directory.files.length
    if (this.files > 0) this.letGo()
    const entries = Manifest.toEntries(directory.files)
    if (entries === before) return
    const old = Manifest.parseEntries(before)
    const kept: Array<string> = []
    for (const file of directory.files) {
      // A racy file is remembered with a mark, which no signature equals.
      if (old.get(file.name) !== file.signature) this.put(file)
      old.delete(file.name)
    }
    for (const [name, signature] of old) {
      if (unreadable.has(name)) {
        kept.push(`${name}/${signature}`)
        old.delete(name)
      }
    }
    const all = kept.length === 0 ? entries : [...(entries === "" ? [] : [entries]), ...kept].join("\n")
    this.remember({ folder: directory.path, entries: all }, [...old.keys()])
  }

  /** Folders that the walk did not come to: gone, ignored, or below one that cannot be listed. */
  vanished(folders: ReadonlyArray<Folder>, unknown: ReadonlyArray<string>): void {
    for (const { entries, folder } of folders) {
      if (isUnknown(unknown, folder)) continue
      this.remember({ folder, entries: "" }, [...Manifest.parseEntries(entries).keys()])
    }
  }

  readonly flush: Effect.Effect<void, ChangelogError | SqlError> = Effect.suspend(() => {
    const { changes, folders } = this
    this.changes = []
    this.folders = []
    if (changes.length === 0 && folders.length === 0) return Effect.void
    const write = this.durable.write(Effect.andThen(this.changelog.record(changes), this.store(folders)))
    return Effect.andThen(write, this.options.onProgress?.(this.progress) ?? Effect.void)
  })

  readonly finish: Effect.Effect<void, ChangelogError | SqlError> = Effect.suspend(() => {
    this.letGo()
    return this.flush
  })

  private put(file: FileTree.FileEntry): void {
    this.changed++
    this.changes.push({
      op: "put",
      scope: this.options.scope,
      path: Path.make(file.path),
      mtime: Math.floor(file.mtimeMs)
    })
  }

  private remember(folder: Folder, removed: ReadonlyArray<string>): void {
    if (removed.length > 0 && this.files === 0) {
      this.held.push({ folder, removed })
    } else {
      this.add(folder, removed)
    }
  }

  private letGo(): void {
    for (const { folder, removed } of this.held.splice(0)) {
      this.add(folder, removed)
    }
  }

  private add(folder: Folder, removed: ReadonlyArray<string>): void {
    this.folders.push(folder)
    this.removed += removed.length
    for (const name of removed) {
      this.changes.push({ op: "delete", scope: this.options.scope, path: Path.make(folder.folder + name) })
    }
  }

  private store(folders: ReadonlyArray<Folder>): Effect.Effect<void, SqlError> {
    const gone = folders.flatMap(({ entries, folder }) => (entries === "" ? [folder] : []))
    const seen = folders.flatMap(({ entries, folder }) =>
      entries === "" ? [] : [{ folder, digest: Digest.sha256(entries), entries }]
    )
    return this.seen.replaceFolders(this.options.scope, gone, seen)
  }
}

const seenPaths = (seen: SeenStorage, scope: Scope): Stream.Stream<Path, SqlError> =>
  Stream.flatMap(Manifest.folders(seen, scope), ({ entries, folder }) =>
    Stream.fromIterable([...Manifest.parseEntries(entries).keys()].map((name) => Path.make(folder + name)))
  )

const forget = Effect.fnUntraced(function* (
  seen: SeenStorage,
  durable: DurableWriter["Service"],
  scope: Scope,
  recorder: Recorder
) {
  yield* Stream.runForEach(Manifest.folders(seen, scope), (folder) => {
    recorder.vanished([folder], [])
    return recorder.isFull ? recorder.flush : Effect.void
  })
  yield* recorder.finish
  yield* Problems.replace(seen, durable, scope, "", [])
  return recorder.progress.removed
})
