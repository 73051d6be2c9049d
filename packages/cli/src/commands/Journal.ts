/**
 * `strata journal`
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Database from "../Database.ts"
import { Output } from "../Output.ts"
import { root } from "../Root.ts"
import { journalLine } from "../internal/cacheLines.ts"

/**
 * @since 0.1.0
 * @category commands
 */
export const journal = Command.make(
  "journal",
  {
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
    limit: Flag.Int("limit").pipe(
      Flag.withMetavar("N"),
      Flag.withDescription("How many of the last entries to show (20)"),
      Flag.filter(
        (limit) => limit >= 0 && limit <= 100_000,
        () => "a number from 0 to 100000"
      ),
      Flag.withDefault(20)
    )
  },
  Effect.fnUntraced(function* ({ follow, limit, stream }) {
    const { database: named } = yield* root
    const output = yield* Output
    const database = yield* Database.existing(named)
    yield* Database.tellElsewhere(named, database)
    const operation = yield* Effect.promise(() => import("../operations/Journal.ts"))
    const options = { database, stream: Option.getOrUndefined(stream), limit }
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
    "Show why the cache is what it is: what was recorded, taken out, refused or failed, and when"
  ),
  Command.withExamples([
    { command: "strata journal --limit 100", description: "The last 100 entries" },
    { command: "strata journal --follow --json", description: "An entry a line, as they come" }
  ])
)
