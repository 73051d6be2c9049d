/**
 * `strata verify`
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as DatabaseFile from "../DatabaseFile.ts"
import { FinishedWithFailures } from "../ExitCode.ts"
import { Output } from "../Output.ts"
import { root } from "../Root.ts"
import { verifyLines } from "../internal/lines.ts"

/**
 * @since 0.1.0
 * @category commands
 */
export const verify = Command.make(
  "verify",
  {
    repair: Flag.Boolean("repair").pipe(
      Flag.withoutNegation,
      Flag.withDescription("Index again what is missing or stale, and remove what is orphaned"),
      Flag.withDefault(false)
    )
  },
  Effect.fnUntraced(function* ({ repair }) {
    const { database } = yield* root
    const output = yield* Output
    const file = yield* DatabaseFile.existing(database)
    const operation = yield* Effect.promise(() => import("../operations/Verify.ts"))
    const result = yield* DatabaseFile.naming(file, operation.verify({ database: file, repair }))
    yield* output.result(result, (style) => verifyLines(result, style))
    if (!result.ok) {
      return yield* new FinishedWithFailures({
        failed: result.missing.length + result.stale.length + result.orphaned.length + result.failed
      })
    }
  })
).pipe(
  Command.withDescription(
    "Compare the index with the directories; exit code 1 where they differ or a file cannot be read"
  )
)
