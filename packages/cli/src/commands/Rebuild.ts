/**
 * `strata rebuild`
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Command from "effect/cli/Command"
import * as Database from "../Database.ts"
import { FinishedWithFailures } from "../ExitCode.ts"
import { Output } from "../Output.ts"
import * as Progress from "../Progress.ts"
import { root } from "../Root.ts"
import * as SharedTier from "../SharedTier.ts"
import { indexLines, notSwitchedLine } from "../internal/lines.ts"

/**
 * @since 0.1.0
 * @category commands
 */
export const rebuild = Command.make(
  "rebuild",
  SharedTier.flags,
  Effect.fnUntraced(function* (given) {
    const { database: named } = yield* root
    const output = yield* Output
    const database = yield* Database.existing(named)
    const shared = yield* SharedTier.fromFlags(given)
    const operation = yield* Effect.promise(() => import("../operations/Rebuild.ts"))
    const result = yield* Effect.scoped(
      Effect.flatMap(Progress.make("Rebuilding"), (progress) =>
        Database.naming(database, operation.rebuild({ database, shared, progress }))
      )
    )
    yield* output.failures(result)
    if (result.lost > 0) yield* output.notice(notSwitchedLine(result))
    yield* output.result(result, () => indexLines(result))
    if (result.failed > 0) {
      return yield* new FinishedWithFailures({ failed: result.failed })
    }
  })
).pipe(
  Command.withDescription(
    "Build the index anew beside the old one, which serves until the new one has caught up, and serves on where files " +
      "that it has cannot be read now"
  )
)
