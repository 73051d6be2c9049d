/**
 * `strata status`
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Command from "effect/cli/Command"
import * as DatabaseFile from "../DatabaseFile.ts"
import { Output } from "../Output.ts"
import { root } from "../Root.ts"
import { statusLines } from "../internal/lines.ts"

/**
 * @since 0.1.0
 * @category commands
 */
export const status = Command.make(
  "status",
  {},
  Effect.fnUntraced(function* () {
    const { database } = yield* root
    const output = yield* Output
    const file = yield* DatabaseFile.existing(database)
    const operation = yield* Effect.promise(() => import("../operations/Status.ts"))
    const result = yield* DatabaseFile.naming(file, operation.status({ database: file }))
    yield* output.result(result, (style) => statusLines(result, style))
  })
).pipe(Command.withDescription("Show documents, what waits to be indexed and for how long, failures, and size"))
