/**
 * An open index and everything that works on it: where its directories are, and the follower that keeps it in step.
 * Only a search does without, as it has no time to load it.
 *
 * @since 0.1.0
 */
import { Changelog } from "@strata/dirty-queue/Changelog"
import { DirtyQueue, type DirtyQueueError } from "@strata/dirty-queue/DirtyQueue"
import type { Path, Scope } from "@strata/dirty-queue/Path"
import { DurableWriter } from "@strata/durable/DurableWriter"
import * as CatchUp from "@strata/follower/CatchUp"
import * as Follower from "@strata/follower/Follower"
import * as Extractor from "@strata/search/Extractor"
import * as FileReader from "@strata/search/FileReader"
import * as FileTree from "@strata/search/FileTree"
import * as Roots from "@strata/search/Roots"
import * as Scan from "@strata/search/Scan"
import * as Search from "@strata/search/Search"
import * as SearchIndex from "@strata/search/SearchIndex"
import * as SqliteClient from "@strata/sqlite/SqliteClient"
import * as Strata from "@strata/strata/Strata"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Reactivity from "effect/reactivity/Reactivity"
import type * as EffectScope from "effect/Scope"
import type * as Migrator from "effect/sql/Migrator"
import type { SqlError } from "effect/sql/SqlError"
import { realpathSync } from "node:fs"
import * as NodePath from "node:path"
import * as Counting from "./internal/counting.ts"
import { baseOf } from "./internal/paths.ts"
import type { Progress } from "./Progress.ts"
import type { Failure } from "./Results.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A part of a root that is to be scanned.
 *
 * @since 0.1.0
 * @category models
 */
export interface Target {
  readonly scope: Scope
  /** As `docs/api/`; empty for the whole root. */
  readonly under: string
}

/**
 * What bringing an index up to date came to.
 *
 * @since 0.1.0
 * @category models
 */
export interface Synced {
  /** Files found. */
  readonly scanned: number
  /** Files whose passages were written. */
  readonly indexed: number
  /** Documents that were removed. */
  readonly removed: number
  readonly failures: ReadonlyArray<Failure>
}

// ---------------------------------------------------------------------------------------------------------------------
// service
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The open index.
 *
 * @since 0.1.0
 * @category services
 */
export class Workspace extends Context.Service<
  Workspace,
  {
    readonly base: string
    readonly index: SearchIndex.SearchIndex["Service"]
    readonly scan: Scan.Scan["Service"]
    readonly queue: DirtyQueue["Service"]
    /** Reads every file, whether a scan has listed it or not. */
    readonly reader: ReturnType<typeof FileReader.make>
    /** Fills the generation that answers searches. */
    readonly follower: Follower.Follower
    /** What the followers made here have written so far. */
    readonly counts: Effect.Effect<Counting.Counts>
    /** A follower that fills another generation. */
    readonly makeFollower: (
      generation: SearchIndex.Generation
    ) => Effect.Effect<Follower.Follower, SqlError | DirtyQueueError, EffectScope.Scope>
    /** The directories that are indexed. */
    readonly roots: Effect.Effect<ReadonlyArray<Scope>, SqlError>
  }
>()("@strata/cli/Workspace") {}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

const make = (base: string) =>
  Effect.gen(function* () {
    const index = yield* SearchIndex.SearchIndex
    const scan = yield* Scan.Scan
    const queue = yield* DirtyQueue
    const extractor = yield* Extractor.Extractor
    const durable = yield* DurableWriter
    const counting = Counting.make()
    const makeFollower = (generation: SearchIndex.Generation) =>
      Effect.provideService(
        Follower.make({
          name: "search",
          version: String(generation.id),
          queue,
          reader: FileReader.make({ base, extractor, lists: scan.lists }),
          writer: counting.count(index.writer(generation)),
          // Short, since a run that was killed keeps the next one waiting for as long; a living one renews it.
          lease: Duration.seconds(5),
          batchSize: 400,
          // Files are read synchronously, one after the other.
          concurrency: 1,
          weigh: SearchIndex.weigh,
          maxWeight: 8 * 1024 * 1024,
          tickRows: 2000
        }),
        DurableWriter,
        durable
      )
    const follower = yield* makeFollower(yield* index.ensureActive)
    return Workspace.of({
      base,
      index,
      scan,
      queue,
      reader: FileReader.make({ base, extractor }),
      follower,
      counts: counting.counts,
      makeFollower,
      roots: Effect.map(queue.registrations({ follower: follower.name }), (registrations) =>
        registrations.map((registration) => registration.scope)
      )
    })
  })

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The index in a database file, which is created when it is missing.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  database: string
): Layer.Layer<
  Workspace | Strata.Services | SearchIndex.SearchIndex,
  SqlError | Migrator.MigrationError | DirtyQueueError
> => {
  const base = baseOf(database)
  return Layer.effect(Workspace, make(base)).pipe(
    Layer.provideMerge(Layer.mergeAll(SearchIndex.layer, Scan.layer({ base }), Extractor.layer())),
    Layer.provideMerge(Strata.layerSqlite({ filename: database }))
  )
}

/**
 * The index in a database file that has one. Another database is left as it is.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerExisting = (database: string) =>
  Layer.unwrap(
    SqliteClient.make({ filename: database, readonly: true }).pipe(
      Effect.flatMap(Search.scopes),
      Effect.as(layer(database)),
      Effect.scoped,
      Effect.provide(Reactivity.layer)
    )
  )

// ---------------------------------------------------------------------------------------------------------------------
// roots
// ---------------------------------------------------------------------------------------------------------------------

/**
 * What a directory, given as an absolute path, means for the index: a part of a root that has it, unless that root
 * ignores it, or a root of its own.
 *
 * @since 0.1.0
 * @category roots
 */
export const addRoot = Effect.fn("Workspace.addRoot")(function* (given: string) {
  const { base, follower, roots } = yield* Workspace
  const directory = yield* realPath(given)
  for (const scope of yield* roots) {
    const under = Roots.under(base, scope, directory)
    if (under !== undefined && !(yield* isIgnored(base, scope, under))) {
      return { scope, under } satisfies Target
    }
  }
  const scope = Roots.scopeOf(base, directory)
  yield* follower.register(scope)
  return { scope, under: "" } satisfies Target
})

/**
 * Takes a directory that does not exist any more out of the index. `false` when it is no root.
 *
 * @since 0.1.0
 * @category roots
 */
export const removeRoot = Effect.fn("Workspace.removeRoot")(function* (directory: string) {
  const { base, roots } = yield* Workspace
  const scope = Roots.scopeOf(base, directory)
  const isRoot = (yield* roots).includes(scope)
  if (isRoot) yield* endRoot(scope)
  return isRoot
})

const endRoot = Effect.fnUntraced(function* (scope: Scope) {
  const { follower, queue, scan } = yield* Workspace
  yield* scan.forget(scope)
  yield* settle(follower, scope, () => Effect.void)
  yield* queue.unregister({ follower: follower.name, scope })
})

/**
 * Ends the roots that lie inside of another one, once that has been indexed: their documents are in it.
 *
 * @since 0.1.0
 * @category roots
 */
export const mergeRoots = Effect.fn("Workspace.mergeRoots")(function* (targets: ReadonlyArray<Target>) {
  const { base, roots } = yield* Workspace
  for (const outer of new Set(targets.filter(({ under }) => under === "").map(({ scope }) => scope))) {
    for (const inner of yield* roots) {
      const under = Roots.under(base, outer, Roots.folderOf(base, inner))
      if (inner === outer || under === undefined || (yield* isIgnored(base, outer, under))) continue
      yield* endRoot(inner)
    }
  }
})

const isIgnored = (base: string, scope: Scope, under: string) =>
  under === "" ? Effect.succeed(false) : FileTree.isIgnored(Roots.folderOf(base, scope), under)

const realPath = (directory: string): Effect.Effect<string, FileTree.FileTreeError> =>
  Effect.try({
    try: () => realpathSync(directory),
    catch: () => new FileTree.FileTreeError({ root: directory, reason: { _tag: "RootMissing" } })
  })

// ---------------------------------------------------------------------------------------------------------------------
// synchronisation
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Scans targets and brings the index up to date with what was found, whoever does the work: another process may be
 * draining the same queue.
 *
 * @since 0.1.0
 * @category synchronisation
 */
export const sync = Effect.fn("Workspace.sync")(function* (
  targets: ReadonlyArray<Target>,
  options: { readonly force?: boolean; readonly progress?: Progress } = {}
) {
  const { counts, follower, scan } = yield* Workspace
  const before = yield* counts
  const problems: Array<Failure> = []
  let scanned = 0
  let total = 0
  let done = 0
  const update = Effect.suspend(() => options.progress?.update({ done, total: Math.max(done, total) }) ?? Effect.void)
  for (const target of targets) {
    const known = total
    const found = yield* scan.run({
      ...target,
      force: options.force,
      onProgress: (progress) =>
        Effect.suspend(() => {
          total = known + progress.changed + progress.removed
          return update
        })
    })
    scanned += found.files
    problems.push(...(yield* describeProblems(target.scope, found.problems)))
    yield* settle(follower, target.scope, (tick) =>
      Effect.suspend(() => {
        done += tick
        return update
      })
    )
  }
  const after = yield* counts
  return {
    scanned,
    indexed: after.indexed - before.indexed,
    removed: after.removed - before.removed,
    failures: [...problems, ...(yield* listFailures(targets.map((target) => target.scope)))]
  } satisfies Synced
})

/**
 * Drains a scope and waits for what other processes have claimed of it. Ends when everything is in the index but for
 * the paths that failed.
 *
 * @since 0.1.0
 * @category synchronisation
 */
export const settle = Effect.fn("Workspace.settle")(function* (
  follower: Follower.Follower,
  scope: Scope,
  onTick: (scanned: number) => Effect.Effect<void>
) {
  yield* drain(follower, scope, onTick)
  const takeOver = Effect.forever(Effect.delay(drain(follower, scope, onTick), Duration.millis(100)))
  yield* CatchUp.awaitCaughtUp(follower, { scope, timeout: Duration.hours(24) }).pipe(
    Effect.catchReason("NotCaughtUp", "PathsFailed", () => Effect.void),
    Effect.raceFirst(takeOver)
  )
})

const drain = (
  follower: Follower.Follower,
  scope: Scope,
  onTick: (scanned: number) => Effect.Effect<void>
): Effect.Effect<void, SqlError | DirtyQueueError> =>
  Effect.gen(function* () {
    for (;;) {
      // While a follower pauses, a tick does nothing and asks for more.
      const paused = (yield* follower.pausedUntil) - (yield* Clock.currentTimeMillis)
      if (paused > 0) yield* Effect.sleep(paused)
      const tick = yield* follower.drain(scope)
      yield* onTick(tick.scanned)
      if (!tick.hasMore) return
    }
  })

/**
 * Keeps the changelog from growing: dirty rows carry all that followers need of it.
 *
 * @since 0.1.0
 * @category synchronisation
 */
export const pruneChangelog = Effect.fn("Workspace.pruneChangelog")(function* () {
  const changelog = yield* Changelog
  const time = (yield* Clock.currentTimeMillis) - Duration.toMillis(Duration.days(7))
  while ((yield* changelog.prune({ before: { time } })) >= 10_000);
})

// ---------------------------------------------------------------------------------------------------------------------
// failures
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A path of the index as it can be opened from the working directory.
 *
 * @since 0.1.0
 * @category failures
 */
export const display = (base: string, scope: string, path: string): string =>
  NodePath.relative(process.cwd(), NodePath.join(base, scope, path)) || "."

/**
 * Paths that failed and are not mended yet, the dead letters too.
 *
 * @since 0.1.0
 * @category failures
 */
export const listFailures = Effect.fn("Workspace.listFailures")(function* (scopes: ReadonlyArray<Scope>) {
  const { base, follower, queue } = yield* Workspace
  const lists = yield* Effect.forEach([...new Set(scopes)], (scope) =>
    Effect.all([
      queue.failing({ follower: follower.name, scope, limit: 1000 }),
      queue.deadLetters({ follower: follower.name, scope, limit: 1000 })
    ])
  )
  return lists
    .flat(2)
    .map((row): Failure => ({ path: display(base, row.scope, row.path), reason: row.lastError ?? "failed" }))
})

/** Entries that cannot be read are failures. Pipes, devices and the like are just not for an index. */
const describeProblems = Effect.fnUntraced(function* (scope: Scope, problems: ReadonlyArray<FileTree.Problem>) {
  const { base } = yield* Workspace
  return problems.flatMap(({ path, reason }): ReadonlyArray<Failure> => {
    const shown = display(base, scope, path)
    switch (reason._tag) {
      case "Unreadable":
        return [{ path: shown, reason: `cannot be read (${reason.code})` }]
      case "NotUtf8":
        return [{ path: shown, reason: "the name is not UTF-8" }]
      case "ControlCharacter":
        return [{ path: shown, reason: "the name has a control character" }]
      default:
        return []
    }
  })
})

/**
 * Documents without passages, and why, as they are listed for people.
 *
 * @since 0.1.0
 * @category failures
 */
export const listSkipped = Effect.fn("Workspace.listSkipped")(function* (scopes: ReadonlyArray<Scope>) {
  const { base, index } = yield* Workspace
  const lists = yield* Effect.forEach([...new Set(scopes)], index.skipped)
  return lists.flat().map((skipped): Failure => ({
    path: display(base, skipped.scope, skipped.path as Path),
    reason: new Extractor.Skip({ path: skipped.path, reason: skipped.reason }).message
  }))
})
