/**
 * @since 0.1.0
 */
import type { Scope } from "@strata/dirty-queue/Path"
import * as Verifying from "@strata/search/Verify"
import * as Effect from "effect/Effect"
import type { Database } from "../Database.ts"
import * as Findings from "../Findings.ts"
import * as Progress from "../Progress.ts"
import { type Failure, listLimit, type VerifyResult } from "../Results.ts"
import type { SharedTier } from "../SharedTier.ts"
import * as Synchronising from "../Synchronising.ts"
import * as Workspace from "../Workspace.ts"
import * as Rebuild from "./Rebuild.ts"

/**
 * Compares the index with its directories, and itself. With `repair` the directories are scanned, differences indexed
 * again, a damaged index is rebuilt, and the result is what is left.
 *
 * @since 0.1.0
 * @category operations
 */
export const verify = (options: {
  readonly database: Database
  readonly repair: boolean
  readonly shared: SharedTier | undefined
}) =>
  Effect.gen(function* () {
    if (!options.repair) return yield* compareAll
    const { follower, roots } = yield* Workspace.Workspace
    const scopes = yield* roots
    const found = yield* Effect.forEach(scopes, compare)
    const before = yield* toResult(scopes, found)
    yield* Synchronising.sync(scopes.map((scope) => ({ scope, under: "" })))
    yield* Effect.forEach(found, ({ differences, scope }) => Verifying.repair(scope, differences), { discard: true })
    yield* Effect.forEach(scopes, (scope) => Synchronising.settle(follower, scope, () => Effect.void), {
      discard: true
    })
    const mended = yield* compareAll
    if (!mended.damaged) return { ...mended, repaired: repaired(before, mended) }
    yield* Rebuild.run(Progress.silent)
    const rebuilt = yield* compareAll
    return { ...rebuilt, repaired: repaired(before, rebuilt) }
  }).pipe(Effect.scoped, Effect.provide(Workspace.layerExisting(options.database, options.shared)))

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const compare = Effect.fnUntraced(function* (scope: Scope) {
  const { base, exclude, reader } = yield* Workspace.Workspace
  return { scope, differences: yield* Verifying.compare({ base, exclude, scope, reader }) }
})

const compareAll = Effect.gen(function* () {
  const { roots } = yield* Workspace.Workspace
  const scopes = yield* roots
  return yield* toResult(scopes, yield* Effect.forEach(scopes, compare))
})

/** What was wrong and is not any more. */
const repaired = (before: VerifyResult, after: VerifyResult): Required<VerifyResult>["repaired"] => {
  const failing = new Set(after.failures.map(({ path }) => path))
  const mended = (kind: "missing" | "stale" | "orphaned") => {
    const wrong = new Set(after[kind])
    return before[kind].filter((path) => !wrong.has(path) && !failing.has(path))
  }
  return {
    missing: mended("missing"),
    stale: mended("stale"),
    orphaned: mended("orphaned"),
    failed: before.failures.map(({ path }) => path).filter((path) => !failing.has(path)),
    damaged: before.damaged && !after.damaged
  }
}

const toResult = Effect.fnUntraced(function* (
  scopes: ReadonlyArray<Scope>,
  found: ReadonlyArray<Effect.Success<ReturnType<typeof compare>>>
) {
  const { base, index } = yield* Workspace.Workspace
  const damaged = yield* Effect.as(index.check, false).pipe(Effect.catchTag("IndexCorrupt", () => Effect.succeed(true)))
  const failing = yield* listFailing(scopes, found)
  // What cannot be indexed differs for that reason, and is not told twice.
  const list = (kind: "missing" | "stale" | "orphaned") =>
    found.flatMap(({ differences, scope }) =>
      differences[kind].map((path) => Workspace.display(base, scope, path)).filter((path) => !failing.has(path))
    )
  const [missing, stale, orphaned] = [list("missing"), list("stale"), list("orphaned")]
  const { skipped, skips } = yield* Findings.list(scopes.map((scope) => ({ scope, under: "" })))
  return {
    ok: !damaged && missing.length + stale.length + orphaned.length + failing.size === 0,
    missing,
    stale,
    orphaned,
    damaged,
    failed: failing.size,
    failures: [...failing].slice(0, listLimit).map(([path, reason]): Failure => ({ path, reason })),
    skipped,
    skips
  } satisfies VerifyResult
})

/** What cannot be read now or, for another reason, was not indexed: reasons by path. */
const listFailing = Effect.fnUntraced(function* (
  scopes: ReadonlyArray<Scope>,
  found: ReadonlyArray<Effect.Success<ReturnType<typeof compare>>>
) {
  const { base } = yield* Workspace.Workspace
  const failures = yield* Findings.failures(scopes.map((scope) => ({ scope, under: "" })))
  return new Map([
    ...failures.map(({ path, reason }) => [path, reason] as const),
    ...found.flatMap(({ differences, scope }) =>
      differences.unreadable.map(({ path, reason }) => [Workspace.display(base, scope, path), reason] as const)
    )
  ])
})
