/**
 * `strata index DIR…`
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as DatabaseFile from "../DatabaseFile.ts"
import { FinishedWithFailures } from "../ExitCode.ts"
import { Output } from "../Output.ts"
import * as Progress from "../Progress.ts"
import { root } from "../Root.ts"
import { indexLines } from "../internal/lines.ts"

/**
 * @since 0.1.0
 * @category commands
 */
export const index = Command.make(
  "index",
  {
    directories: Argument.Directory("DIR", { mustExist: true }).pipe(
      Argument.withDescription("A directory to index, with all that is below it"),
      Argument.variadic({ min: 1 })
    ),
    force: Flag.Boolean("force").pipe(
      Flag.withoutNegation,
      Flag.withDescription("Index a directory that is suddenly empty too, which removes its documents"),
      Flag.withDefault(false)
    )
  },
  Effect.fnUntraced(function* ({ directories, force }) {
    const { database } = yield* root
    const output = yield* Output
    const operation = yield* Effect.promise(() => import("../operations/Index.ts"))
    const file = yield* DatabaseFile.existingOrNew(database)
    const { failures, result } = yield* Effect.scoped(
      Effect.flatMap(Progress.make("Indexing"), (progress) =>
        operation.index({ database: file, directories, force, progress })
      )
    )
    yield* output.failures(failures)
    yield* output.result(result, () => indexLines(result))
    if (result.failed > 0) {
      return yield* new FinishedWithFailures({ failed: result.failed })
    }
  })
).pipe(
  Command.withDescription("Index directories: what is new or changed is read, what is gone is removed"),
  Command.withExamples([
    { command: "strata index docs", description: "Index docs, or bring its index up to date" },
    { command: "strata index docs src --json", description: "Index two directories, with counts for a script" }
  ])
)
