import * as NodeRuntime from "@effect/platform-node-shared/NodeRuntime"
import * as Effect from "effect/Effect"
import { ExitCode } from "./ExitCode.ts"
import * as Platform from "./Platform.ts"
import { run } from "./Program.ts"

/** Who reads our output has enough (`strata search … | head`): the command is interrupted, without a word. */
const readerGone = Effect.callback<ExitCode>((resume) => {
  const onError = (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") resume(Effect.succeed(ExitCode.done))
  }
  process.stdout.on("error", onError)
  return Effect.sync(() => process.stdout.off("error", onError))
})

/** The code is set and the process left to end by itself, so that a slow pipe gets all that was written to it. */
const setExitCode = (code: ExitCode) =>
  Effect.sync(() => {
    process.exitCode = code
  })

Effect.suspend(() => run(process.argv.slice(2))).pipe(
  Effect.provide(Platform.layer),
  Effect.raceFirst(readerGone),
  Effect.flatMap(setExitCode),
  NodeRuntime.runMain({ disableErrorReporting: true })
)
