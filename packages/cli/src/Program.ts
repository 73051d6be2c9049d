/**
 * The program `strata`: its commands, what is printed when the command line is
 * wrong or a command fails, and the exit code.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { LogToStderr, MinimumLogLevel } from "effect/References"
import * as CliConfig from "effect/cli/CliConfig"
import * as CliError from "effect/cli/CliError"
import * as CliOutput from "effect/cli/CliOutput"
import * as Command from "effect/cli/Command"
import * as GlobalFlag from "effect/cli/GlobalFlag"
import { cache } from "./commands/Cache.ts"
import { doctor } from "./commands/Doctor.ts"
import { index } from "./commands/Index.ts"
import { journal } from "./commands/Journal.ts"
import { rebuild } from "./commands/Rebuild.ts"
import { rebuildState } from "./commands/RebuildState.ts"
import { retry } from "./commands/Retry.ts"
import { runs } from "./commands/Runs.ts"
import { search } from "./commands/Search.ts"
import { status } from "./commands/Status.ts"
import { verify } from "./commands/Verify.ts"
import { watch } from "./commands/Watch.ts"
import * as ErrorReport from "./ErrorReport.ts"
import { ExitCode, FinishedWithFailures } from "./ExitCode.ts"
import * as Output from "./Output.ts"
import { jsonRequested, root } from "./Root.ts"
import { version } from "./Version.ts"

/**
 * All of `strata`, for help, completions and {@link run}.
 *
 * @since 0.1.0
 * @category commands
 */
export const command = root.pipe(
  Command.withSubcommands([
    index,
    search,
    watch,
    status,
    retry,
    rebuild,
    verify,
    cache,
    journal,
    doctor,
    runs,
    rebuildState
  ])
)

/**
 * Runs `strata` with `args`, prints what there is to print, and gives the exit
 * code. Never fails; an interruption is passed on.
 *
 * @since 0.1.0
 * @category running
 */
export const run = (args: ReadonlyArray<string>): Effect.Effect<ExitCode, never, Command.Environment> =>
  Command.runWith(command, { version })(args).pipe(
    Effect.as<ExitCode>(ExitCode.done),
    Effect.onInterrupt(() => Output.Output.use((output) => output.interrupted())),
    Effect.catchCause((cause) => (Cause.hasInterruptsOnly(cause) ? Effect.interrupt : report(cause))),
    Effect.provide(
      Layer.mergeAll(presenter, CliConfig.layer({ builtIns })).pipe(
        Layer.provideMerge(Output.layer({ json: jsonRequested(args) }))
      )
    ),
    // What is logged is no result, and what is less than an error is for who asks for it with --log-level.
    Effect.provideService(LogToStderr, true),
    Effect.provideService(MinimumLogLevel, "Error")
  )

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/** Without the wizard: no command of this program asks questions. */
const builtIns = [GlobalFlag.Help, GlobalFlag.Version, GlobalFlag.Completions, GlobalFlag.LogLevel]

const report = (cause: Cause.Cause<unknown>): Effect.Effect<ExitCode, never, Output.Output> => {
  const error = Cause.squash(cause)
  // What the presenter or the command has printed already.
  if (CliError.isCliError(error) && error._tag === "ShowHelp") return Effect.succeed(ExitCode.usage)
  if (error instanceof FinishedWithFailures) return Effect.succeed(error.exitCode ?? ExitCode.failures)
  const { exitCode, message, tag } = ErrorReport.fromCause(cause)
  return Effect.as(
    Output.Output.use((output) => output.error({ tag, message })),
    exitCode
  )
}

/** A wrong command line gets its errors and a pointer to the help, on stderr, in place of the whole help. */
const presenter = Layer.effect(
  CliOutput.Presenter,
  Effect.map(Output.Output, (output) => ({
    present: (event: CliOutput.Presenter.Event) => {
      if (event._tag === "InvalidInvocation") return presentInvalid(output, event)
      if (event._tag === "Help" && event.reason === "Implicit") return presentMissingCommand(output, event)
      return CliOutput.defaultPresenter.present(event)
    }
  }))
)

const presentInvalid = Effect.fnUntraced(function* (
  output: Output.Output["Service"],
  { commandPath, errors }: CliOutput.Presenter.InvalidInvocation
) {
  yield* output.error({
    tag: errors[0]?._tag ?? "InvalidInvocation",
    message: withoutEcho(errors).map(explain).join("; ")
  })
  const command = commandPath.join(" ")
  if (commandPath.at(-1) === search.name && errors.some((error) => error._tag === "UnrecognizedOption")) {
    yield* output.notice(`Where the query begins with a dash, put -- before it: ${command} -- QUERY`)
  }
  yield* output.notice(`Run ${command} --help for its usage.`)
})

const presentMissingCommand = Effect.fnUntraced(function* (
  output: Output.Output["Service"],
  { helpDoc }: CliOutput.Presenter.Help
) {
  yield* output.error({ tag: "MissingCommand", message: "which command?" })
  if (!output.json) {
    yield* Console.error(CliOutput.defaultFormatter({ colors: false }).formatHelpDoc(helpDoc))
  }
})

/** The arguments and flags for paths, of which Effect says what is wrong in place of what it expects. */
const pathOptions: ReadonlySet<string> = new Set(["DIR"])

const explain = (error: CliError.CliError): string =>
  error._tag === "InvalidValue" && pathOptions.has(error.option) ? oneLine(error.expected) : oneLine(error.message)

/** Of an unknown word that begins with one dash, each letter is an unknown flag: the first says it all. */
const withoutEcho = (errors: ReadonlyArray<CliError.CliError>): ReadonlyArray<CliError.CliError> =>
  errors.every(({ _tag }) => _tag === "UnrecognizedOption") ? errors.slice(0, 1) : errors

const oneLine = (message: string): string => message.replaceAll(/\s*\n\s*\n\s*/g, ". ").replaceAll(/\s*\n\s*/g, " ")
