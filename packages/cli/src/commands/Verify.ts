/**
 * `strata verify`
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
import * as SharedTier from "../SharedTier.ts"
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
    ),
    ...SharedTier.flags
  },
  Effect.fnUntraced(function* ({ repair, ...given }) {
    const { database: named } = yield* root
    const output = yield* Output
    const database = yield* Database.existing(named)
    const shared = repair ? yield* SharedTier.fromFlags(given) : undefined
    const operation = yield* Effect.promise(() => import("../operations/Verify.ts"))
    const result = yield* Database.naming(database, operation.verify({ database, repair, shared }))
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
