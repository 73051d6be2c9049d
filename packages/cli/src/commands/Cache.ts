/**
 * `strata cache stats|verify|gc`
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Database from "../Database.ts"
import { FinishedWithFailures } from "../ExitCode.ts"
import { Output } from "../Output.ts"
import { root } from "../Root.ts"
import * as Integer from "../internal/integer.ts"
import { gcLines, statsLines, verifyCacheLines } from "../internal/cacheLines.ts"

const existing = Effect.gen(function* () {
  const { database: named } = yield* root
  const database = yield* Database.existing(named)
  yield* Database.tellElsewhere(named, database, "database")
  return database
})

const load = Effect.promise(() => import("../operations/Cache.ts"))

const stats = Command.make(
  "stats",
  {},
  Effect.fnUntraced(function* () {
    const output = yield* Output
    const database = yield* existing
    const operation = yield* load
    const result = yield* Database.naming(database, operation.stats({ database }))
    yield* output.result(result, (style) => statsLines(result, style))
  })
).pipe(Command.withDescription("Show how many results are kept, how large they are, and where they came from"))

const verify = Command.make(
  "verify",
  {},
  Effect.fnUntraced(function* () {
    const output = yield* Output
    const database = yield* existing
    const operation = yield* load
    const result = yield* Database.naming(database, operation.verify({ database }))
    yield* output.result(result, (style) => verifyCacheLines(result, style))
    if (!result.ok) {
      const { corrupt, missing, unexplained, unjoined } = result
      const failed = missing.length + unexplained.length + unjoined.length + corrupt.length
      return yield* new FinishedWithFailures({ failed })
    }
  })
).pipe(Command.withDescription("Compare what is kept with the journal, and every result with its digest"))

const gc = Command.make(
  "gc",
  {
    dryRun: Flag.Boolean("dry-run").pipe(
      Flag.withoutNegation,
      Flag.withDescription("Tell what would be taken out, and take nothing"),
      Flag.withDefault(false)
    ),
    maxAge: Integer.flag("max-age", { least: 0, most: 36_500 }).pipe(
      Flag.withMetavar("DAYS"),
      Flag.withDescription("Take out what was not used for longer than this. Default: nothing is too old"),
      Flag.optional
    ),
    maxSize: Integer.flag("max-size", { least: 0, most: 2 ** 30 }).pipe(
      Flag.withMetavar("MIB"),
      Flag.withDescription("Take out what was used longest ago until the rest is not larger. Default: any size"),
      Flag.optional
    )
  },
  Effect.fnUntraced(function* ({ dryRun, maxAge, maxSize }) {
    const output = yield* Output
    const database = yield* existing
    const operation = yield* load
    const options = {
      database,
      dryRun,
      maxAge: Option.getOrUndefined(Option.map(maxAge, Duration.days)),
      maxBytes: Option.getOrUndefined(Option.map(maxSize, (mib) => mib * 1024 * 1024))
    }
    const result = yield* Database.naming(database, operation.gc(options))
    yield* output.result(result, () => gcLines(result))
  })
).pipe(
  Command.withDescription("Take out results that are too old or too much, and what nothing needs any more"),
  Command.withExamples([
    {
      command: "strata cache gc --max-age 30 --dry-run",
      description: "What was not used for 30 days, and how large it is"
    }
  ])
)

/**
 * @since 0.1.0
 * @category commands
 */
export const cache = Command.make("cache").pipe(
  Command.withDescription("Look after what is kept of earlier extractions"),
  Command.withSubcommands([stats, verify, gc])
)
