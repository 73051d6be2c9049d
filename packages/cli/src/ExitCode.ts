/**
 * What the exit code of `strata` tells a script.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

/**
 * - `done`: everything that was asked for was done.
 * - `failures`: the run finished; what failed is listed.
 * - `usage`: nothing was done, as the command line is wrong: an option, a query, or a directory that does not exist. One
 *   line says why.
 * - `environment`: the command line is right, but its circumstances do not allow it: there is no index, the database
 *   cannot be used, a directory cannot be read or is suddenly empty, or an indexed one inside of it is gone. One line says
 *   why and names the file.
 * - `bug`: the program has a fault (`EX_SOFTWARE` of `sysexits.h`).
 * - `interrupted`: ended by SIGINT (128 + 2, as a shell counts it).
 *
 * @since 0.1.0
 * @category models
 */
export const ExitCode = { done: 0, failures: 1, usage: 2, environment: 3, bug: 70, interrupted: 130 } as const

/**
 * @since 0.1.0
 * @category models
 */
export type ExitCode = (typeof ExitCode)[keyof typeof ExitCode]

/**
 * Ends a command that ran to its end and has listed what failed. It is not
 * reported again and gives exit code 1, or the one it names.
 *
 * @since 0.1.0
 * @category errors
 */
export class FinishedWithFailures extends Schema.TaggedError<FinishedWithFailures>("@strata/cli/FinishedWithFailures")(
  "FinishedWithFailures",
  { failed: Schema.Int, exitCode: Schema.optionalKey(Schema.Literals([ExitCode.failures, ExitCode.environment])) }
) {}
