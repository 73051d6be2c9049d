/**
 * @since 0.1.0
 */
import type { Scope } from "@strata/dirty-queue/Path"
import * as FollowerScheduler from "@strata/follower/FollowerScheduler"
import * as FileTree from "@strata/search/FileTree"
import * as Roots from "@strata/search/Roots"
import type * as Scan from "@strata/search/Scan"
import { type FSWatcher, watch as watchFiles } from "chokidar"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { existsSync } from "node:fs"
import * as NodePath from "node:path"
import type { Database } from "../Database.ts"
import * as Directories from "../Directories.ts"
import * as Findings from "../Findings.ts"
import * as FreshFailures from "../internal/freshFailures.ts"
import * as LastingDatabase from "../internal/lastingDatabase.ts"
import { sqlDetail } from "../internal/sqlDetail.ts"
import * as WatchedFolder from "../internal/watchedFolder.ts"
import { type Failure, listLimit, type WatchResult } from "../Results.ts"
import type { SharedTier } from "../SharedTier.ts"
import * as Synchronising from "../Synchronising.ts"
import * as Workspace from "../Workspace.ts"

/**
 * What to watch.
 *
 * @since 0.1.0
 * @category models
 */
export interface WatchOptions {
  /** Its tables are created when they are missing. */
  readonly database: Database
  /** Absolute. */
  readonly directories: ReadonlyArray<string>
  readonly shared: SharedTier | undefined
  /** Told once that every change from now on is seen. */
  readonly onReady: Effect.Effect<void>
  /** Told what the first scan came to, and then what each piece of work did. */
  readonly onChange: (change: WatchResult) => Effect.Effect<void>
}

/**
 * Keeps directories indexed. The watcher is only a hint: what it names is scanned, as `strata index` would, so an event
 * that is lost or comes twice makes no difference for long. Whatever other processes record is followed too, and the
 * index that another process puts in place of this one. A directory that another one takes the place of is scanned and
 * watched anew; one that is gone later on stays in the index as it was, until it is back. So a server is waited for that
 * is away after it was there, as when it is started anew; a file that is deleted ends it.
 *
 * @since 0.1.0
 * @category operations
 */
export const watch = (options: WatchOptions) =>
  Effect.suspend(() => {
    const report = makeReport(options.onChange)
    const places = new Map<string, string>()
    let isReady = false
    const first = (targets: ReadonlyArray<Workspace.Target>) =>
      Effect.andThen(
        options.onReady,
        Effect.tap(bring(targets), () => Effect.sync(() => (isReady = true)))
      )
    const again = (targets: ReadonlyArray<Workspace.Target>) => bringAgain(targets, report)
    const one = Effect.suspend(() => session(options, places, report, isReady ? again : first))
    return Effect.forever(
      Effect.catchIf(
        one,
        (error): error is SqlError => isReady && options.database._tag === "Postgres" && isPassing(error),
        (error) => Effect.andThen(report.database(options.database, error), Effect.sleep(databaseLookEvery))
      )
    )
  })

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/** A directory that was given. */
interface Watched {
  readonly folder: WatchedFolder.WatchedFolder
  readonly target: Workspace.Target
}

const isPassing = (error: unknown): error is SqlError => isSqlError(error) && LastingDatabase.mayComeBack(error)

/** How often a server that is away is looked for. */
const databaseLookEvery = "1 second"

/** Watches until other folders are to be watched, or another index is to be kept. */
const session = <E, R>(
  options: WatchOptions,
  places: Map<string, string>,
  report: Report,
  start: (
    targets: ReadonlyArray<Workspace.Target>
  ) => Effect.Effect<Pick<Synchronising.Synced, "indexed" | "removed">, E, R>
) =>
  Effect.gen(function* () {
    const isHere = LastingDatabase.makeGuard(options.database)
    yield* report.database(options.database, undefined)
    const hints = yield* Queue.unbounded<Workspace.Target>()
    const rules = yield* Deferred.make<void>()
    const watched = yield* Effect.forEach(options.directories, (directory) => find(directory, places))
    const targets = watched.map(({ target }) => target)
    // Before the first scan, so that a change after it is not missed.
    yield* Effect.forEach(watched, (one) => openWatcher(one, hints, rules), { discard: true })
    const synced = yield* start(targets)
    yield* report.work(synced, yield* Findings.failures(targets))
    yield* follow(targets, report, isHere)
    yield* Effect.forkScoped(Effect.forever(Effect.delay(Queue.offerAll(hints, targets), fullScanEvery)))
    yield* Effect.raceAllFirst([
      Effect.forever(scanHints(hints, targets, report)),
      Deferred.await(rules),
      replaced(isHere),
      ...watched.map(({ folder, target }) => folder.awaitOther(Effect.asVoid(Queue.offer(hints, target))))
    ])
  }).pipe(Effect.scoped, Effect.provide(Workspace.layer(options.database, options.shared)))

/** Looks at the folder before anything else does, so that one that replaces it meanwhile is another one. */
const find = Effect.fnUntraced(function* (directory: string, places: Map<string, string>) {
  const folder = WatchedFolder.make(directory)
  const place = yield* Effect.catch(Directories.realPath(directory), (error) =>
    Effect.mapError(Effect.fromNullishOr(places.get(directory)), () => error)
  )
  places.set(directory, place)
  return { folder, target: yield* Directories.addRealRoot(place) } satisfies Watched
})

const bring = Effect.fnUntraced(function* (targets: ReadonlyArray<Workspace.Target>) {
  yield* Directories.guardInner(targets)
  const synced = yield* Synchronising.sync(targets)
  yield* Directories.mergeRoots(targets)
  return synced
})

/** What cannot be scanned now, as it is gone or empty, does not keep the rest from being watched. */
const bringAgain = Effect.fnUntraced(function* (targets: ReadonlyArray<Workspace.Target>, report: Report) {
  const { base } = yield* Workspace.Workspace
  const done = { indexed: 0, removed: 0 }
  for (const target of targets) {
    const failures = yield* bring([target]).pipe(
      Effect.map(({ indexed, removed }): ReadonlyArray<Failure> => {
        done.indexed += indexed
        done.removed += removed
        return []
      }),
      Effect.catchTag(["FileTreeError", "InnerRootMissing", "SuddenlyEmpty"], (error) =>
        Effect.succeed([scanFailure(base, target, error)])
      )
    )
    yield* report.scan(target.scope, failures)
  }
  return done
})

/** Tells of work that was done, and once of each failure. */
interface Report {
  readonly work: (
    done: { readonly indexed: number; readonly removed: number },
    failures: ReadonlyArray<Failure>
  ) => Effect.Effect<void>
  /** What became of the scan of a root. */
  readonly scan: (scope: Scope, failures: ReadonlyArray<Failure>) => Effect.Effect<void>
  /** That the database cannot be reached, or can be. */
  readonly database: (database: Database, error: SqlError | undefined) => Effect.Effect<void>
}

const makeReport = (onChange: WatchOptions["onChange"]): Report => {
  const fresh = FreshFailures.make()
  let isFirst = true
  let isAway = false
  const tell = (indexed: number, removed: number, failures: ReadonlyArray<Failure>) =>
    Effect.suspend(() => {
      const isWorthTelling = isFirst || indexed + removed + failures.length > 0
      isFirst = false
      return isWorthTelling
        ? onChange({ indexed, removed, failed: failures.length, failures: failures.slice(0, listLimit) })
        : Effect.void
    })
  return {
    work: ({ indexed, removed }, failures) => tell(indexed, removed, fresh("files", failures)),
    scan: (scope, failures) =>
      Effect.suspend(() => {
        const told = fresh(`scan of ${scope}`, failures)
        return told.length === 0 ? Effect.void : tell(0, 0, told)
      }),
    database: ({ name }, error) =>
      Effect.suspend(() => {
        if (error === undefined || isAway) {
          isAway = error !== undefined
          return Effect.void
        }
        isAway = true
        return tell(0, 0, [{ path: name, reason: `${sqlDetail(error)}; watch waits for it, and goes on` }])
      })
  }
}

/** Ends when a rebuild, here or elsewhere, has put another index in place of the one that is kept. */
const replaced = Effect.fnUntraced(function* (isHere: Effect.Effect<void, LastingDatabase.DatabaseGone>) {
  const { follower, index } = yield* Workspace.Workspace
  const isCurrent = Effect.map(index.active, (active) =>
    Option.exists(active, ({ id }) => follower.name.endsWith(`@${id}`))
  )
  while (yield* Effect.andThen(isHere, isCurrent)) yield* Effect.sleep(replacedLookEvery)
})

/** A part of the second within which a change is to be found. */
const replacedLookEvery = "250 millis"

/** How long events are collected, so that a burst of them is one scan. */
const settleTime = "50 millis"

/** For what the watcher misses. */
const fullScanEvery = "1 minute"

const openWatcher = Effect.fnUntraced(function* (
  { folder: watched, target }: Watched,
  hints: Queue.Queue<Workspace.Target>,
  rules: Deferred.Deferred<void>
) {
  const { base, exclude } = yield* Workspace.Workspace
  const root = Roots.folderOf(base, target.scope)
  const folder = NodePath.join(root, target.under)
  const hint = (path: string) => {
    const under = Roots.under(base, target.scope, path)
    Queue.offerUnsafe(hints, { scope: target.scope, under: under ?? target.under })
  }
  const watcher = yield* Effect.acquireRelease(
    Effect.sync(() =>
      watchFiles(folder, {
        ignoreInitial: true,
        followSymlinks: false,
        ignored: (path, stats) => stats !== undefined && passesOver(root, exclude, path, stats.isDirectory())
      })
    ),
    (watcher) => Effect.promise(() => watcher.close())
  )
  watcher.on("all", (event, path) => {
    if (event === "unlinkDir" && NodePath.relative(folder, path) === "") watched.lost()
    hint(event.endsWith("Dir") ? path : NodePath.dirname(path))
    if (NodePath.basename(path) === ".gitignore") Deferred.doneUnsafe(rules, Effect.void)
  })
  watcher.on("error", () => hint(folder))
  yield* ready(watcher)
})

/** What no scan would list is not watched: a folder that is ignored may hold more files than all others. */
const passesOver = (root: string, exclude: ReadonlyArray<string>, path: string, directory: boolean): boolean => {
  const inside = NodePath.relative(root, path).split(NodePath.sep).join("/")
  return inside !== "" && Effect.runSync(FileTree.isIgnored(root, directory ? `${inside}/` : inside, { exclude }))
}

const ready = (watcher: FSWatcher): Effect.Effect<void> =>
  Effect.callback((resume) => {
    watcher.once("ready", () => resume(Effect.void))
  })

/** Scans what was named since the last time. A part that cannot be scanned now is named again by the next full scan. */
const scanHints = Effect.fnUntraced(function* (
  hints: Queue.Queue<Workspace.Target>,
  targets: ReadonlyArray<Workspace.Target>,
  report: Report
) {
  const { base, scan } = yield* Workspace.Workspace
  const first = yield* Queue.take(hints)
  yield* Effect.sleep(settleTime)
  const rest = yield* Queue.clear(hints)
  for (const target of Directories.outermost([first, ...rest].map((target) => nearestExisting(base, target)))) {
    const scanned = yield* Effect.result(scan.run(target))
    if (Result.isFailure(scanned) && isPassing(scanned.failure)) return yield* scanned.failure
    const failures = Result.isFailure(scanned) ? [scanFailure(base, target, scanned.failure)] : []
    yield* report.scan(target.scope, failures)
  }
  yield* report.work({ indexed: 0, removed: 0 }, yield* Findings.failures(targets))
})

const scanFailure = (
  base: string,
  { scope, under }: Workspace.Target,
  error: Effect.Error<ReturnType<Scan.Scan["Service"]["run"]>> | Directories.InnerRootMissing
): Failure => ({
  path: Workspace.display(base, scope, under),
  reason: `it could not be scanned, and stays in the index as it was: ${error.message}`
})

/**
 * A folder that is gone is looked for from above, so that a whole root that vanished, as with its disk, is told from a
 * folder that was removed.
 */
const nearestExisting = (base: string, { scope, under }: Workspace.Target): Workspace.Target => {
  const root = Roots.folderOf(base, scope)
  let nearest = under
  while (nearest !== "" && !existsSync(NodePath.join(root, nearest))) {
    nearest = nearest.slice(0, nearest.lastIndexOf("/", nearest.length - 2) + 1)
  }
  return { scope, under: nearest }
}

/** Drains what is recorded, here or elsewhere, and reports each tick that changed something. */
const follow = Effect.fnUntraced(function* (
  targets: ReadonlyArray<Workspace.Target>,
  report: Report,
  isHere: Effect.Effect<void, LastingDatabase.DatabaseGone>
) {
  const { counts, follower } = yield* Workspace.Workspace
  const scheduler = yield* FollowerScheduler.FollowerScheduler
  let before = yield* counts
  yield* Effect.forkScoped(
    Stream.runForEach(follower.ticks, () =>
      Effect.gen(function* () {
        const after = yield* counts
        const done = { indexed: after.indexed - before.indexed, removed: after.removed - before.removed }
        before = after
        // What was written into a file that is gone is not told: the session ends.
        yield* isHere
        yield* report.work(done, yield* Findings.failures(targets))
      })
    )
  )
  yield* scheduler.run(follower)
})
