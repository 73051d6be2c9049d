/**
 * `strata status`
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Command from "effect/cli/Command"
import * as Database from "../Database.ts"
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
    const { database: named } = yield* root
    const output = yield* Output
    const database = yield* Database.existing(named)
    const operation = yield* Effect.promise(() => import("../operations/Status.ts"))
    const result = yield* Database.naming(database, operation.status({ database }))
    yield* output.result(result, (style) => statusLines(result, style))
  })
).pipe(Command.withDescription("Show documents, what waits to be indexed and for how long, failures, and size"))
