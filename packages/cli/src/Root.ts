/**
 * The command `strata` itself: what its subcommands share.
 *
 * @since 0.1.0
 */
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"

/**
 * Subcommands read the shared flags with `yield* root`.
 *
 * @since 0.1.0
 * @category commands
 */
export const root = Command.make("strata").pipe(
  Command.withSharedFlags({
    database: Flag.String("database").pipe(
      Flag.withMetavar("FILE|URL"),
      Flag.withDescription(
        "The index: a SQLite file, or a Postgres as postgres://user@host/name?schema=docs. Default: STRATA_DATABASE, " +
          "which shows a password to nobody, or else .strata/strata.db in the working directory or the nearest folder " +
          "above it"
      ),
      Flag.optional
    ),
    json: Flag.Boolean("json").pipe(
      Flag.withoutNegation,
      Flag.withDescription("Print the result, or the error, as one JSON object on the last line of stdout"),
      Flag.withDefault(false)
    )
  }),
  Command.withDescription(
    "Indexes directories, keeps the index current, and finds text in it. Exit codes: 0 done; 1 finished, with failures " +
      "or differences that are listed; 2 the command line is wrong; 3 its circumstances do not allow it, as there is no " +
      "index or the database cannot be used; 70 a fault in strata; 130 interrupted"
  )
)

/**
 * Whether `--json` is among `args`. Asked before they are parsed, as an error in them is reported as JSON too.
 *
 * @since 0.1.0
 * @category accessors
 */
export const jsonRequested = (args: ReadonlyArray<string>): boolean => {
  const end = args.indexOf("--")
  return (end === -1 ? args : args.slice(0, end)).some((arg) => /^--json(=(true|1|yes|y|on))?$/.test(arg))
}
