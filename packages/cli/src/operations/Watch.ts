/**
 * @since 0.1.0
 */
import * as FollowerScheduler from "@strata/follower/FollowerScheduler"
import * as FileTree from "@strata/search/FileTree"
import * as Roots from "@strata/search/Roots"
import { type FSWatcher, watch as watchFiles } from "chokidar"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import { existsSync } from "node:fs"
import * as NodePath from "node:path"
import type { Failure } from "../Results.ts"
import * as Workspace from "../Workspace.ts"

/**
 * What was brought up to date since the last report.
 *
 * @since 0.1.0
 * @category models
 */
export interface Change {
  readonly indexed: number
  readonly removed: number
  readonly failures: ReadonlyArray<Failure>
}

/**
 * What to watch.
 *
 * @since 0.1.0
 * @category models
 */
export interface WatchOptions {
  /** Absolute; created when it is missing. */
  readonly database: string
  /** Absolute. */
  readonly directories: ReadonlyArray<string>
  /** Told what the first scan came to, and then what each piece of work did. */
  readonly onChange: (change: Change) => Effect.Effect<void>
}

/**
 * Keeps directories indexed. The watcher is only a hint: what it names is scanned, as `strata index` would, so an event
 * that is lost or comes twice makes no difference for long. Whatever other processes record is followed too, and the
 * index that another process puts in place of this one.
 *
 * @since 0.1.0
 * @category operations
 */
export const watch = (options: WatchOptions) =>
  Effect.andThen(session(options, options.onChange), Effect.forever(session(options, reportWork(options.onChange))))

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/** Watches until other folders are to be watched, or another index is to be kept. */
const session = (options: WatchOptions, onSynced: WatchOptions["onChange"]) =>
  Effect.gen(function* () {
    const hints = yield* Queue.unbounded<Workspace.Target>()
    const rules = yield* Deferred.make<void>()
    const targets = yield* Effect.forEach(options.directories, (directory) => Workspace.addRoot(directory))
    // Before the first scan, so that a change after it is not missed.
    yield* Effect.forEach(targets, (target) => openWatcher(target, hints, rules), { discard: true })
    yield* onSynced(yield* Workspace.sync(targets))
    yield* Workspace.mergeRoots(targets)
    yield* follow(targets, options.onChange)
    yield* Effect.forkScoped(Effect.forever(Effect.delay(Queue.offerAll(hints, targets), fullScanEvery)))
    yield* Effect.raceAllFirst([Effect.forever(scanHints(hints)), Deferred.await(rules), replaced])
  }).pipe(Effect.scoped, Effect.provide(Workspace.layer(options.database)))

const reportWork =
  (onChange: WatchOptions["onChange"]): WatchOptions["onChange"] =>
  (change) =>
    change.indexed + change.removed + change.failures.length === 0 ? Effect.void : onChange(change)

/** Ends when a rebuild, here or elsewhere, has put another index in place of the one that is kept. */
const replaced = Effect.gen(function* () {
  const { follower, index } = yield* Workspace.Workspace
  const isCurrent = Effect.map(index.active, (active) =>
    Option.exists(active, ({ id }) => follower.name.endsWith(`@${id}`))
  )
  while (yield* isCurrent) yield* Effect.sleep(replacedLookEvery)
})

/** A part of the second within which a change is to be found. */
const replacedLookEvery = "250 millis"

/** How long events are collected, so that a burst of them is one scan. */
const settleTime = "50 millis"

/** For what the watcher misses. */
const fullScanEvery = "1 minute"

const openWatcher = Effect.fnUntraced(function* (
  target: Workspace.Target,
  hints: Queue.Queue<Workspace.Target>,
  rules: Deferred.Deferred<void>
) {
  const { base } = yield* Workspace.Workspace
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
        ignored: (path, stats) => stats !== undefined && passesOver(root, path, stats.isDirectory())
      })
    ),
    (watcher) => Effect.promise(() => watcher.close())
  )
  watcher.on("all", (event, path) => {
    hint(event.endsWith("Dir") ? path : NodePath.dirname(path))
    if (NodePath.basename(path) === ".gitignore") Deferred.doneUnsafe(rules, Effect.void)
  })
  watcher.on("error", () => hint(folder))
  yield* ready(watcher)
})

/** What no scan would list is not watched: a folder that is ignored may hold more files than all others. */
const passesOver = (root: string, path: string, directory: boolean): boolean => {
  const inside = NodePath.relative(root, path).split(NodePath.sep).join("/")
  return inside !== "" && Effect.runSync(FileTree.isIgnored(root, directory ? `${inside}/` : inside))
}

const ready = (watcher: FSWatcher): Effect.Effect<void> =>
  Effect.callback((resume) => {
    watcher.once("ready", () => resume(Effect.void))
  })

/** Scans what was named since the last time. A part that cannot be scanned now is named again by the next full scan. */
const scanHints = Effect.fnUntraced(function* (hints: Queue.Queue<Workspace.Target>) {
  const { base, scan } = yield* Workspace.Workspace
  const first = yield* Queue.take(hints)
  yield* Effect.sleep(settleTime)
  const rest = yield* Queue.clear(hints)
  for (const target of outermost([first, ...rest].map((target) => nearestExisting(base, target)))) {
    yield* Effect.catch(scan.run(target), (error) => Effect.logWarning("A directory could not be scanned", error))
  }
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

/** Leaves out what is below another target. */
const outermost = (targets: ReadonlyArray<Workspace.Target>): ReadonlyArray<Workspace.Target> => {
  const kept: Array<Workspace.Target> = []
  for (const target of targets.toSorted((a, b) => a.under.length - b.under.length)) {
    const covered = kept.some((other) => other.scope === target.scope && target.under.startsWith(other.under))
    if (!covered) kept.push(target)
  }
  return kept
}

/** Drains what is recorded, here or elsewhere, and reports each tick that changed something. */
const follow = Effect.fnUntraced(function* (
  targets: ReadonlyArray<Workspace.Target>,
  onChange: (change: Change) => Effect.Effect<void>
) {
  const { counts, follower } = yield* Workspace.Workspace
  const scheduler = yield* FollowerScheduler.FollowerScheduler
  const scopes = targets.map((target) => target.scope)
  let before = yield* counts
  yield* Effect.forkScoped(
    Stream.runForEach(follower.ticks, (tick) =>
      Effect.gen(function* () {
        const after = yield* counts
        const change = { indexed: after.indexed - before.indexed, removed: after.removed - before.removed }
        before = after
        if (change.indexed + change.removed + tick.failed === 0) return
        const failures = tick.failed === 0 ? [] : yield* Workspace.listFailures(scopes)
        yield* onChange({ ...change, failures })
      })
    )
  )
  yield* scheduler.run(follower)
})
