/**
 * @since 0.1.0
 */
import * as FollowerScheduler from "@strata/follower/FollowerScheduler"
import * as Roots from "@strata/search/Roots"
import { type FSWatcher, watch as watchFiles } from "chokidar"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import { realpathSync } from "node:fs"
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
 * Keeps directories indexed. The watcher is only a hint: what it names is scanned, as `strata index` would, so an event
 * that is lost or comes twice makes no difference for long. Whatever other processes record is followed too.
 *
 * @since 0.1.0
 * @category operations
 */
export const watch = (options: {
  readonly database: string
  readonly directories: ReadonlyArray<string>
  readonly onChange: (change: Change) => Effect.Effect<void>
}) =>
  Effect.gen(function* () {
    const hints = yield* Queue.unbounded<Workspace.Target>()
    const targets = yield* Effect.forEach(options.directories, (directory) =>
      Workspace.addRoot(realpathSync(directory))
    )
    // Before the first scan, so that a change after it is not missed.
    yield* Effect.forEach(targets, (target) => openWatcher(target, hints), { discard: true })
    const synced = yield* Workspace.sync(targets)
    yield* options.onChange(synced)
    yield* follow(targets, options.onChange)
    yield* Effect.forkScoped(Effect.forever(Effect.delay(Queue.offerAll(hints, targets), fullScanEvery)))
    return yield* Effect.forever(scanHints(hints))
  }).pipe(Effect.scoped, Effect.provide(Workspace.layer(options.database)))

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/** How long events are collected, so that a burst of them is one scan. */
const settleTime = "50 millis"

/** For what the watcher misses. */
const fullScanEvery = "1 minute"

const openWatcher = Effect.fnUntraced(function* (target: Workspace.Target, hints: Queue.Queue<Workspace.Target>) {
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
        ignored: (path) => /[/\\]\.(git|strata)([/\\]|$)/.test(path.slice(folder.length))
      })
    ),
    (watcher) => Effect.promise(() => watcher.close())
  )
  watcher.on("all", (event, path) => hint(event.endsWith("Dir") ? path : NodePath.dirname(path)))
  watcher.on("error", () => hint(folder))
  yield* ready(watcher)
})

const ready = (watcher: FSWatcher): Effect.Effect<void> =>
  Effect.callback((resume) => {
    watcher.once("ready", () => resume(Effect.void))
  })

/** Scans what was named since the last time. A part that cannot be scanned now is named again by the next full scan. */
const scanHints = Effect.fnUntraced(function* (hints: Queue.Queue<Workspace.Target>) {
  const { scan } = yield* Workspace.Workspace
  const first = yield* Queue.take(hints)
  yield* Effect.sleep(settleTime)
  const rest = yield* Queue.clear(hints)
  for (const target of outermost([first, ...rest])) {
    yield* Effect.catch(scan.run(target), (error) => Effect.logWarning("A directory could not be scanned", error))
  }
})

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
