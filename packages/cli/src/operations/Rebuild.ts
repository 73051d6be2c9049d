/**
 * @since 0.1.0
 */
import * as Rebuilding from "@strata/follower/Rebuild"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Database } from "../Database.ts"
import * as Findings from "../Findings.ts"
import type { Progress } from "../Progress.ts"
import type { SharedTier } from "../SharedTier.ts"
import * as Workspace from "../Workspace.ts"
import { toResult } from "./Index.ts"

/**
 * Builds the index anew beside the one that serves, and switches when it has caught up. A rebuild that was interrupted
 * goes on. Files that fail stay out of the new index, as they are out of the old one, and are listed.
 *
 * @since 0.1.0
 * @category operations
 */
export const rebuild = (options: {
  readonly database: Database
  readonly shared: SharedTier | undefined
  readonly progress: Progress
}) =>
  Effect.gen(function* () {
    const start = yield* Clock.currentTimeMillis
    const workspace = yield* Workspace.Workspace
    // Asked before: afterwards the roots are those of the follower of the new index.
    const targets = (yield* workspace.roots).map((scope) => ({ scope, under: "" }))
    yield* run(options.progress)
    const { indexed, removed } = yield* workspace.counts
    const documents = yield* workspace.index.documents
    const listed = yield* Findings.list(targets)
    const elapsedMs = (yield* Clock.currentTimeMillis) - start
    const found = documents.indexed + listed.skipped + listed.failed
    return toResult({ found, indexed, removed }, listed, elapsedMs)
  }).pipe(Effect.scoped, Effect.provide(Workspace.layerExisting(options.database, options.shared)))

/**
 * Rebuilds the index of the workspace.
 *
 * @since 0.1.0
 * @category operations
 */
export const run = Effect.fnUntraced(function* (progress: Progress) {
  const { counts, follower: old, index, makeFollower, roots, scan } = yield* Workspace.Workspace
  const scopes = yield* roots
  const generation = yield* index.begin
  const follower = yield* makeFollower(generation)
  const { indexed, skipped } = yield* index.documents
  const drainAll = Effect.gen(function* () {
    for (const scope of scopes) {
      // It may not be registered yet: that is done beside, and done for one scope after the other.
      yield* Effect.catchReason(follower.drain(scope), "DirtyQueueError", "NotRegistered", () => Effect.void)
      const written = yield* counts
      yield* progress.update({ done: written.indexed + written.skipped, total: indexed + skipped })
    }
  })
  yield* Rebuilding.run({
    follower,
    replaces: old.name,
    scopes,
    content: (scope) => scan.paths(scope),
    activate: index.activate(generation),
    failures: "accept"
  }).pipe(Effect.raceFirst(Effect.forever(Effect.delay(drainAll, "10 millis"))))
  yield* index.dropRetired
})
