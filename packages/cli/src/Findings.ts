/**
 * What is not in the index although its file is there: what failed, and what has nothing to search. Every command that
 * looks at the index tells it in the same words.
 *
 * @since 0.1.0
 */
import type { Path, Scope } from "@strata/dirty-queue/Path"
import * as Extractor from "@strata/search/Extractor"
import * as FileTree from "@strata/search/FileTree"
import type { SkippedDocument } from "@strata/search/SearchIndex"
import * as Effect from "effect/Effect"
import { type Failure, type Listed, listLimit } from "./Results.ts"
import * as Workspace from "./Workspace.ts"

/**
 * Paths that failed and are not mended yet, the dead letters too, and entries that the last scans could not read.
 *
 * @since 0.1.0
 * @category queries
 */
export const failures = Effect.fn("Findings.failures")(function* (targets: ReadonlyArray<Workspace.Target>) {
  const { base } = yield* Workspace.Workspace
  const found = yield* Effect.forEach(targets, (target) =>
    Effect.zipWith(failingPaths(target), problems(target), (failing, problems) => {
      const faults = problems.filter(({ reason }) => FileTree.isFault(reason)).map(toFinding)
      const known = new Set(faults.map(({ path }) => path))
      return [...faults, ...failing.filter(({ path }) => !known.has(path))]
    })
  )
  return targets.flatMap(({ scope }, i) => found[i]!.map((finding) => shown(base, scope, finding)))
})

/**
 * Those of some paths that have nothing to search, and why.
 *
 * @since 0.1.0
 * @category queries
 */
export const skippedAmong = Effect.fn("Findings.skippedAmong")(function* (
  paths: ReadonlyArray<{ readonly scope: Scope; readonly path: Path }>
) {
  const { base, index } = yield* Workspace.Workspace
  const found = yield* Effect.forEach(new Set(paths.map(({ scope }) => scope)), (scope) =>
    Effect.map(
      index.skipped({ scope, among: paths.filter((one) => one.scope === scope).map(({ path }) => path) }),
      ({ documents, total }) => ({ total, skips: documents.map((document) => shown(base, scope, toSkip(document))) })
    )
  )
  return {
    skipped: found.reduce((sum, { total }) => sum + total, 0),
    skips: found.flatMap(({ skips }) => skips).slice(0, listLimit)
  }
})

/**
 * What failed and what was passed over of some targets, none of which lies in another.
 *
 * @since 0.1.0
 * @category queries
 */
export const list = Effect.fn("Findings.list")(function* (targets: ReadonlyArray<Workspace.Target>) {
  const failed = yield* failures(targets)
  let skipped = 0
  const skips: Array<Failure> = []
  for (const target of targets) {
    const found = yield* skippedOf(target)
    skipped += found.total
    skips.push(...found.skips)
  }
  return {
    failed: failed.length,
    failures: failed.slice(0, listLimit),
    skipped,
    skips: skips.slice(0, listLimit)
  } satisfies Listed
})

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const shown = (base: string, scope: string, { path, reason }: Failure): Failure => ({
  path: Workspace.display(base, scope, path),
  reason
})

const toFinding = ({ path, reason }: FileTree.Problem): Failure => ({ path, reason: FileTree.describe(reason) })

const toSkip = ({ path, reason }: Pick<SkippedDocument, "path" | "reason">): Failure => ({
  path,
  reason: new Extractor.Skip({ path, reason }).message
})

/** More rows than anyone has failing paths: all are needed to tell what is unchanged. */
const rowLimit = 100_000

const failingPaths = Effect.fnUntraced(function* ({ scope, under }: Workspace.Target) {
  const { follower, queue } = yield* Workspace.Workspace
  const options = { follower: follower.name, scope, limit: rowLimit }
  const rows = [...(yield* queue.failing(options)), ...(yield* queue.deadLetters(options))]
  return rows
    .filter((row) => row.path.startsWith(under))
    .map((row): Failure => ({ path: row.path, reason: row.lastError ?? "failed" }))
})

const problems = ({ scope, under }: Workspace.Target) =>
  Workspace.Workspace.use(({ scan }) => scan.problems(scope, under))

/** Documents without passages, unless they fail now, and entries that are no files. */
const skippedOf = Effect.fnUntraced(function* (target: Workspace.Target) {
  const { base, index } = yield* Workspace.Workspace
  const failing = yield* failingPaths(target)
  const found = yield* index.skipped({
    scope: target.scope,
    prefix: target.under,
    except: failing.map(({ path }) => path),
    limit: listLimit
  })
  const passedOver = (yield* problems(target)).filter(({ reason }) => !FileTree.isFault(reason))
  const skips = [...found.documents.map(toSkip), ...passedOver.map(toFinding)]
  return {
    total: found.total + passedOver.length,
    skips: skips.map((skip) => shown(base, target.scope, skip))
  }
})
