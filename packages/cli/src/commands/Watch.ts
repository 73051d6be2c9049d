/**
 * `strata watch DIR…`
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as DatabaseFile from "../DatabaseFile.ts"
import { Output } from "../Output.ts"
import { root } from "../Root.ts"
import { count } from "../internal/lines.ts"

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
    )
  },
  Effect.fnUntraced(function* ({ directories }) {
    const { database } = yield* root
    const output = yield* Output
    const operation = yield* Effect.promise(() => import("../operations/Watch.ts"))
    const file = yield* DatabaseFile.existingOrNew(database)
    return yield* operation.watch({
      database: file,
      directories,
      onChange: ({ failures, indexed, removed }) =>
        Effect.andThen(
          output.failures(failures),
          output.result({ indexed, removed, failed: failures.length }, () => [
            `${count(indexed, "file")} indexed, ${removed} removed, ${failures.length} failed`
          ])
        )
    })
  })
).pipe(
  Command.withDescription("Keep directories indexed until interrupted: a change is found within a second"),
  Command.withExamples([{ command: "strata watch docs", description: "Index docs and then every change in it" }])
)
