/**
 * `strata watch DIR…`
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import { relative } from "node:path"
import * as Database from "../Database.ts"
import { Output } from "../Output.ts"
import { root } from "../Root.ts"
import * as SharedTier from "../SharedTier.ts"
import { watchLines } from "../internal/lines.ts"

/**
 * @since 0.1.0
 * @category commands
 */
export const watch = Command.make(
  "watch",
  {
    directories: Argument.Directory("DIR", { mustExist: true }).pipe(
      Argument.withDescription("A directory to index and to keep indexed"),
      Argument.variadic({ min: 1 })
    ),
    ...SharedTier.flags
  },
  Effect.fnUntraced(function* ({ directories, ...given }) {
    const { database: named } = yield* root
    const output = yield* Output
    const shared = yield* SharedTier.fromFlags(given)
    const operation = yield* Effect.promise(() => import("../operations/Watch.ts"))
    const database = yield* Database.existingOrNew(named)
    yield* Database.tellElsewhere(named, database)
    const watching = operation.watch({
      database,
      directories,
      shared,
      onReady: output.notice(`watching ${directories.map((directory) => relative(".", directory) || ".").join(", ")}`),
      onChange: (result) =>
        Effect.andThen(
          output.failures(result),
          // Nothing to tell people at the start, while a program waits for the first result.
          output.json || result.indexed + result.removed + result.failed > 0
            ? output.result(result, () => watchLines(result))
            : Effect.void
        )
    })
    return yield* Database.naming(database, watching)
  })
).pipe(
  Command.withShortDescription("Keep directories indexed until interrupted: a change is found within a second"),
  Command.withDescription(
    "Keep directories indexed until interrupted. A change is found within a second, unless it is one of very many or a " +
      "file of many megabytes, which takes as long as indexing it"
  ),
  Command.withExamples([{ command: "strata watch docs", description: "Index docs and then every change in it" }])
)
