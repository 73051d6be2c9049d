/**
 * `strata doctor`
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Command from "effect/cli/Command"
import * as Database from "../Database.ts"
import { ExitCode, FinishedWithFailures } from "../ExitCode.ts"
import { Output } from "../Output.ts"
import { root } from "../Root.ts"
import * as SharedTier from "../SharedTier.ts"
import { doctorLines } from "../internal/lines.ts"

/**
 * @since 0.1.0
 * @category commands
 */
export const doctor = Command.make(
  "doctor",
  SharedTier.flags,
  Effect.fnUntraced(function* (given) {
    const { database: named } = yield* root
    const output = yield* Output
    const shared = yield* SharedTier.fromFlags(given)
    let missing: string | undefined
    const database = yield* Effect.catchTag(Database.existing(named), "DatabaseFileError", ({ reason }) =>
      Effect.sync(() => {
        if (reason._tag === "Missing") missing = reason.file
        return undefined
      })
    )
    const operation = yield* Effect.promise(() => import("../operations/Doctor.ts"))
    const result = yield* operation.doctor({ database, missing, shared })
    yield* output.result(result, (style) => doctorLines(result, style))
    if (!result.ok) {
      const failed = result.checks.filter(({ status }) => status === "fails").length
      return yield* new FinishedWithFailures({ failed, exitCode: ExitCode.environment })
    }
  })
).pipe(
  Command.withShortDescription("Connect to the database and the shared cache, and say what works"),
  Command.withDescription(
    "Connect to the database and the shared cache, and say what works: latency, rights, who is first, clocks, versions. " +
      "What is tried out is taken out again; only of a cache over HTTP a blob of no bytes stays. Exit code 3 where " +
      "something does not work"
  ),
  Command.withExamples([
    { command: "strata doctor --shared redis://cache.example.com", description: "Whether this machine can share" },
    { command: "strata doctor --json", description: "What STRATA_DATABASE and STRATA_SHARED name, for a script" }
  ])
)
