/**
 * @since 0.1.0
 */
import type { Path, Scope } from "@strata/dirty-queue/Path"
import * as Verifying from "@strata/search/Verify"
import * as Effect from "effect/Effect"
import * as Progress from "../Progress.ts"
import type { VerifyResult } from "../Results.ts"
import * as Workspace from "../Workspace.ts"
import * as Rebuild from "./Rebuild.ts"

/**
 * Compares the index with its directories, and itself. With `repair` the directories are scanned, differences indexed
 * again, a damaged index is rebuilt, and the result is what is left.
 *
 * @since 0.1.0
 * @category operations
 */
export const verify = (options: { readonly database: string; readonly repair: boolean }) =>
  Effect.gen(function* () {
    if (!options.repair) return yield* compareAll
    const { roots } = yield* Workspace.Workspace
    const targets = (yield* roots).map((scope) => ({ scope, under: "" }))
    yield* Workspace.sync(targets)
    const found = yield* Effect.forEach(yield* roots, compare)
    yield* Effect.forEach(found, ({ differences, scope }) => Verifying.repair(scope, differences), { discard: true })
    const { follower } = yield* Workspace.Workspace
    yield* Effect.forEach(found, ({ scope }) => Workspace.settle(follower, scope, () => Effect.void), { discard: true })
    const mended = yield* compareAll
    if (!mended.damaged) return mended
    yield* Rebuild.run(Progress.silent)
    return yield* compareAll
  }).pipe(Effect.scoped, Effect.provide(Workspace.layerExisting(options.database)))

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const compare = Effect.fnUntraced(function* (scope: Scope) {
  const { base, reader } = yield* Workspace.Workspace
  return { scope, differences: yield* Verifying.compare({ base, scope, reader }) }
})

const compareAll = Effect.gen(function* () {
  const { base, index, roots } = yield* Workspace.Workspace
  const found = yield* Effect.forEach(yield* roots, compare)
  const damaged = yield* Effect.as(index.check, false).pipe(Effect.catchTag("IndexCorrupt", () => Effect.succeed(true)))
  const list = (kind: "missing" | "stale" | "orphaned") =>
    found.flatMap(({ differences, scope }) =>
      differences[kind].map((path: Path) => Workspace.display(base, scope, path))
    )
  const [missing, stale, orphaned] = [list("missing"), list("stale"), list("orphaned")]
  return {
    ok: !damaged && missing.length + stale.length + orphaned.length === 0,
    missing,
    stale,
    orphaned,
    damaged
  } satisfies VerifyResult
})
