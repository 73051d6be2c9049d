/**
 * What people are told when a command ends in an error: a tag for programs and
 * one line of words. A stack trace is kept for faults of the program itself.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import { hasProperty, isString } from "effect/Predicate"
import * as Result from "effect/Result"
import * as CliError from "effect/cli/CliError"
import { ExitCode } from "./ExitCode.ts"

/**
 * @since 0.1.0
 * @category models
 */
export interface ErrorReport {
  readonly tag: string
  readonly message: string
  readonly exitCode: ExitCode
}

/**
 * A typed error is expected, whatever its type: it is described by its tag and
 * message. A defect is a fault, described with its stack.
 *
 * @since 0.1.0
 * @category constructors
 */
export const fromCause = (cause: Cause.Cause<unknown>): ErrorReport => {
  const failure = Cause.findError(cause)
  return Result.isSuccess(failure)
    ? { ...describe(failure.success), exitCode: exitCodeOf(failure.success) }
    : { tag: "Defect", message: `a fault in strata: ${Cause.pretty(cause)}`, exitCode: ExitCode.bug }
}

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/** What the author of the command line can mend by writing another one. */
const usageTags: ReadonlySet<unknown> = new Set([
  "QueryError",
  "MissingDirectory",
  "SharedTierInvalid",
  "DatabaseInvalid",
  "RunHistoryError",
  "RunEnded",
  "RunAndStream"
])

const exitCodeOf = (error: unknown): ExitCode =>
  CliError.isCliError(error) || (hasProperty(error, "_tag") && usageTags.has(error._tag))
    ? ExitCode.usage
    : ExitCode.environment

const describe = (error: unknown): { readonly tag: string; readonly message: string } => {
  if (hasProperty(error, "_tag") && isString(error._tag)) {
    return { tag: error._tag, message: hasProperty(error, "message") ? firstLine(String(error.message)) : error._tag }
  }
  return { tag: "Error", message: firstLine(String(error)) }
}

const firstLine = (text: string): string => text.split("\n", 1)[0]!
