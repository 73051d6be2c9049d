/**
 * @since 0.1.0
 */
import * as DeferredClockFold from "@strata/engine/DeferredClockFold"
import * as Effect from "effect/Effect"
import type { Database } from "../Database.ts"
import type { RebuildStateResult } from "../Results.ts"
import * as Runs from "../Runs.ts"

/**
 * Makes clocks and stamps of deferreds again from the journal, or tells what that would do, or why it cannot be done.
 *
 * @since 0.1.0
 * @category operations
 */
export const rebuildState = ({ database, dryRun }: { readonly database: Database; readonly dryRun: boolean }) =>
  DeferredClockFold.rebuild({ dryRun }).pipe(
    Effect.map((report): RebuildStateResult => ({ ok: true, dryRun, ...report })),
    Effect.catchTag("FoldIncomplete", ({ unjoined }) =>
      Effect.succeed<RebuildStateResult>({ ok: false, dryRun, unjoined })
    ),
    Effect.provide(Runs.layerExisting(database))
  )
