/**
 * `strata rebuild-state`
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Database from "../Database.ts"
import { FinishedWithFailures } from "../ExitCode.ts"
import { Output } from "../Output.ts"
import { root } from "../Root.ts"
import { rebuildStateLines } from "../internal/runLines.ts"

/**
 * @since 0.1.0
 * @category commands
 */
export const rebuildState = Command.make(
  "rebuild-state",
  {
    dryRun: Flag.Boolean("dry-run").pipe(
      Flag.withoutNegation,
      Flag.withDescription("Tell what would be made again, and change nothing"),
      Flag.withDefault(false)
    )
  },
  Effect.fnUntraced(function* ({ dryRun }) {
    const { database: named } = yield* root
    const output = yield* Output
    const database = yield* Database.existing(named)
    yield* Database.tellElsewhere(named, database, "database")
    const operation = yield* Effect.promise(() => import("../operations/RebuildState.ts"))
    const result = yield* Database.naming(database, operation.rebuildState({ database, dryRun }))
    yield* output.result(result, (style) => rebuildStateLines(result, style))
    if (!result.ok) return yield* new FinishedWithFailures({ failed: result.unjoined.length })
  })
).pipe(
  Command.withDescription(
    "Make the clocks of workflows, and what is known of their deferreds, again from the journal, while none of them runs"
  )
)
