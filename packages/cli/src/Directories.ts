/**
 * Which directories an index is made of. Each is a root of its own, or a part of a root that has it.
 *
 * @since 0.1.0
 */
import type { Scope } from "@strata/dirty-queue/Path"
import * as FileTree from "@strata/search/FileTree"
import * as Roots from "@strata/search/Roots"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { realpathSync } from "node:fs"
import * as Synchronising from "./Synchronising.ts"
import * as Workspace from "./Workspace.ts"

/**
 * A root that lies inside of a directory that was named does not exist: more likely a disk that is not mounted than a
 * wish to remove its documents.
 *
 * @since 0.1.0
 * @category errors
 */
export class InnerRootMissing extends Schema.TaggedError<InnerRootMissing>("@strata/cli/InnerRootMissing")(
  "InnerRootMissing",
  { directory: Schema.String }
) {
  override get message(): string {
    return `${this.directory} was indexed and does not exist: nothing was removed from the index`
  }
}

/**
 * Where a path leads to, without links.
 *
 * @since 0.1.0
 * @category accessors
 */
export const realPath = (directory: string): Effect.Effect<string, FileTree.FileTreeError> =>
  Effect.try({
    try: () => realpathSync(directory),
    catch: () => new FileTree.FileTreeError({ root: directory, reason: { _tag: "RootMissing" } })
  })

/**
 * What a directory, given as an absolute path, means for the index: a part of a root that has it, unless that root
 * ignores it, or a root of its own.
 *
 * @since 0.1.0
 * @category operations
 */
export const addRoot = Effect.fn("Directories.addRoot")(function* (given: string) {
  return yield* addRealRoot(yield* realPath(given))
})

/**
 * {@link addRoot} for a path without links, which need not exist.
 *
 * @since 0.1.0
 * @category operations
 */
export const addRealRoot = Effect.fn("Directories.addRealRoot")(function* (directory: string) {
  const { base, follower, roots } = yield* Workspace.Workspace
  for (const scope of yield* roots) {
    const under = Roots.under(base, scope, directory)
    if (under !== undefined && !(yield* isIgnored(base, scope, under))) {
      return { scope, under } satisfies Workspace.Target
    }
  }
  const scope = Roots.scopeOf(base, directory)
  yield* follower.register(scope)
  return { scope, under: "" } satisfies Workspace.Target
})

/**
 * Takes a directory that does not exist any more out of the index: a root at once, while a part of one is answered, to
 * be scanned. Fails with `error` for what never was in the index.
 *
 * @since 0.1.0
 * @category operations
 */
export const removeMissing = Effect.fn("Directories.removeMissing")(function* <E>(directory: string, error: E) {
  const { base, roots } = yield* Workspace.Workspace
  const known = yield* roots
  const scope = Roots.scopeOf(base, directory)
  if (known.includes(scope)) {
    yield* endRoot(scope)
    return Option.none()
  }
  for (const outer of known) {
    const under = Roots.under(base, outer, directory)
    if (under === undefined) continue
    const { index } = yield* Workspace.Workspace
    if ((yield* index.digests(outer, { prefix: under })).length === 0) break
    return Option.some({ scope: outer, under } satisfies Workspace.Target)
  }
  return yield* Effect.fail(error)
})

/**
 * Whether something of a directory is in the index.
 *
 * @since 0.1.0
 * @category accessors
 */
export const isIndexed = Effect.fn("Directories.isIndexed")(function* (directory: string) {
  const { base, index, roots } = yield* Workspace.Workspace
  for (const scope of yield* roots) {
    const under = Roots.under(base, scope, directory)
    if (under === "" || (under !== undefined && (yield* index.digests(scope, { prefix: under })).length > 0))
      return true
  }
  return false
})

const endRoot = Effect.fnUntraced(function* (scope: Scope) {
  const { follower, queue, scan } = yield* Workspace.Workspace
  yield* scan.forget(scope)
  yield* Synchronising.settle(follower, scope, () => Effect.void)
  yield* queue.unregister({ follower: follower.name, scope })
})

/**
 * Leaves out what is below another target.
 *
 * @since 0.1.0
 * @category operations
 */
export const outermost = (targets: ReadonlyArray<Workspace.Target>): ReadonlyArray<Workspace.Target> => {
  const kept: Array<Workspace.Target> = []
  for (const target of targets.toSorted((a, b) => a.under.length - b.under.length)) {
    const covered = kept.some((other) => other.scope === target.scope && target.under.startsWith(other.under))
    if (!covered) kept.push(target)
  }
  return kept
}

/**
 * Fails when a root inside of the targets, which {@link mergeRoots} would end, is suddenly empty or does not exist:
 * then its documents are in neither.
 *
 * @since 0.1.0
 * @category operations
 */
export const guardInner = Effect.fn("Directories.guardInner")(function* (targets: ReadonlyArray<Workspace.Target>) {
  const { base, scan } = yield* Workspace.Workspace
  for (const scope of yield* innerRoots(targets)) {
    yield* Effect.catchTag(scan.run({ scope }), "FileTreeError", (error) =>
      Effect.fail(
        error.reason._tag === "RootMissing" ? new InnerRootMissing({ directory: Roots.folderOf(base, scope) }) : error
      )
    )
  }
})

/**
 * Ends the roots that lie inside of another one, once that has been indexed: their documents are in it. Gives how many
 * documents were in both, and are not gone.
 *
 * @since 0.1.0
 * @category operations
 */
export const mergeRoots = Effect.fn("Directories.mergeRoots")(function* (targets: ReadonlyArray<Workspace.Target>) {
  const { base } = yield* Workspace.Workspace
  const outer = targets.filter(({ under }) => under === "").map(({ scope }) => scope)
  let moved = 0
  for (const inner of yield* innerRoots(targets)) {
    const paths = yield* documentsOf(inner, "")
    for (const scope of outer) {
      const under = Roots.under(base, scope, Roots.folderOf(base, inner))
      if (scope === inner || under === undefined) continue
      const held = new Set<string>(yield* documentsOf(scope, under))
      moved += paths.filter((path) => held.has(under + path)).length
      break
    }
    yield* endRoot(inner)
  }
  return moved
})

const documentsOf = Effect.fnUntraced(function* (scope: Scope, prefix: string) {
  const { index } = yield* Workspace.Workspace
  const paths: Array<string> = []
  for (;;) {
    const page = yield* index.digests(scope, { prefix, after: paths.at(-1) })
    if (page.length === 0) return paths
    paths.push(...page.map(({ path }) => path))
  }
})

/** The roots that lie inside of targets that are whole roots, unless those ignore them. */
const innerRoots = Effect.fnUntraced(function* (targets: ReadonlyArray<Workspace.Target>) {
  const { base, roots } = yield* Workspace.Workspace
  const found = new Set<Scope>()
  for (const outer of new Set(targets.filter(({ under }) => under === "").map(({ scope }) => scope))) {
    for (const inner of yield* roots) {
      const under = Roots.under(base, outer, Roots.folderOf(base, inner))
      if (inner === outer || under === undefined || (yield* isIgnored(base, outer, under))) continue
      found.add(inner)
    }
  }
  return found
})

const isIgnored = (base: string, scope: Scope, under: string) =>
  under === "" ? Effect.succeed(false) : FileTree.isIgnored(Roots.folderOf(base, scope), under)
