/**
 * `strata journal`
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Database from "../Database.ts"
import { Output } from "../Output.ts"
import { root } from "../Root.ts"
import * as Integer from "../internal/integer.ts"
import { journalLine } from "../internal/cacheLines.ts"

/**
 * Both a run and a stream were named.
 *
 * @since 0.1.0
 * @category errors
 */
export class RunAndStream extends Schema.TaggedError<RunAndStream>("@strata/cli/RunAndStream")("RunAndStream", {}) {
  override get message(): string {
    return "either RUN or --stream can be given, as a run has one stream"
  }
}

/**
 * @since 0.1.0
 * @category commands
 */
export const journal = Command.make(
  "journal",
  {
    run: Argument.String("RUN").pipe(
      Argument.withDescription("Only the entries of the run of a workflow that has this execution id"),
      Argument.filter(
        (executionId) => executionId !== "",
        () => "a run has an execution id"
      ),
      Argument.optional
    ),
    follow: Flag.Boolean("follow").pipe(
      Flag.withoutNegation,
      Flag.withDescription("Go on with what is added, by this or another process, until interrupted"),
      Flag.withDefault(false)
    ),
    stream: Flag.String("stream").pipe(
      Flag.withMetavar("NAME"),
      Flag.withDescription("Only this stream, such as cache or actions. Default: all"),
      Flag.filter(
        (name) => name !== "",
        () => "a stream has a name"
      ),
      Flag.optional
    ),
    limit: Integer.flag("limit", { least: 0, most: 100_000 }).pipe(
      Flag.withMetavar("N"),
      Flag.withDescription("How many of the last entries to show (20)"),
      Flag.withDefault(20)
    )
  },
  Effect.fnUntraced(function* ({ follow, limit, run, stream }) {
    const { database: named } = yield* root
    if (Option.isSome(run) && Option.isSome(stream)) return yield* new RunAndStream()
    const output = yield* Output
    const database = yield* Database.existing(named)
    yield* Database.tellElsewhere(named, database, "database")
    const operation = yield* Effect.promise(() => import("../operations/Journal.ts"))
    const options = {
      database,
      run: Option.getOrUndefined(run),
      stream: Option.getOrUndefined(stream),
      limit,
      onNoStream: output.notice(`there is no stream ${Option.getOrElse(stream, () => "")}`)
    }
    if (follow) {
      const following = operation.follow({
        ...options,
        onEntry: (entry) => output.result(entry, (style) => [journalLine(entry, style)])
      })
      return yield* Database.naming(database, following)
    }
    const result = yield* Database.naming(database, operation.journal(options))
    yield* output.result(result, (style) => result.entries.map((entry) => journalLine(entry, style)))
  })
).pipe(
  Command.withDescription(
    "Show why things are what they are: what was recorded, taken out, refused or failed, or what a run did, and when"
  ),
  Command.withExamples([
    { command: "strata journal --limit 100", description: "The last 100 entries" },
    { command: "strata journal --follow --json", description: "An entry a line, as they come" }
  ])
)
