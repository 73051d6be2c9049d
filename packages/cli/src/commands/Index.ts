/**
 * `strata index DIR…`
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Database from "../Database.ts"
import { FinishedWithFailures } from "../ExitCode.ts"
import { Output } from "../Output.ts"
import * as Progress from "../Progress.ts"
import { root } from "../Root.ts"
import * as SharedTier from "../SharedTier.ts"
import { indexLines, interruptedLine, unpublishedLine } from "../internal/lines.ts"

/**
 * A directory that was to be indexed does not exist.
 *
 * @since 0.1.0
 * @category errors
 */
export class MissingDirectory extends Schema.TaggedError<MissingDirectory>("@strata/cli/MissingDirectory")(
  "MissingDirectory",
  { directory: Schema.String, isIndexed: Schema.Boolean }
) {
  override get message(): string {
    const advice = this.isIndexed ? "; if it is gone for good, --force takes it out of the index" : ""
    return `${this.directory} does not exist${advice}`
  }
}

/**
 * With `--force`, a directory that does not exist and of which nothing is in the index: there is nothing to take out.
 *
 * @since 0.1.0
 * @category errors
 */
export class NeverIndexed extends Schema.TaggedError<NeverIndexed>("@strata/cli/NeverIndexed")("NeverIndexed", {
  directory: Schema.String
}) {
  override get message(): string {
    return `${this.directory} does not exist, and nothing of it is in the index`
  }
}

/** Asked before an index is created for it. */
const requireDirectory = Effect.fnUntraced(function* (named: Option.Option<string>, directory: string, force: boolean) {
  const fs = yield* FileSystem.FileSystem
  if (yield* fs.exists(directory)) return
  const database = yield* Effect.option(Database.existing(named))
  const operation = yield* Effect.promise(() => import("../operations/Index.ts"))
  const isIndexed = Option.isSome(database) && (yield* operation.isIndexed(database.value, directory))
  if (!force) return yield* new MissingDirectory({ directory, isIndexed })
  if (!isIndexed) return yield* new NeverIndexed({ directory })
})

/**
 * @since 0.1.0
 * @category commands
 */
export const index = Command.make(
  "index",
  {
    directories: Argument.Directory("DIR", { mustExist: false }).pipe(
      Argument.withDescription("A directory to index, with all that is below it"),
      Argument.variadic({ min: 1 })
    ),
    force: Flag.Boolean("force").pipe(
      Flag.withoutNegation,
      Flag.withDescription("Take a directory for empty, or gone, that suddenly is: its documents are removed"),
      Flag.withDefault(false)
    ),
    ...SharedTier.flags
  },
  Effect.fnUntraced(function* ({ directories, force, ...given }) {
    const { database: named } = yield* root
    const output = yield* Output
    const operation = yield* Effect.promise(() => import("../operations/Index.ts"))
    const shared = yield* SharedTier.fromFlags(given)
    yield* Effect.forEach(directories, (directory) => requireDirectory(named, directory, force), { discard: true })
    const database = yield* Database.existingOrNew(named)
    yield* Database.tellElsewhere(named, database)
    let waiting = 0
    const onInterrupted = (files: number) => Effect.sync(() => (waiting = files))
    const result = yield* Effect.flatMap(Progress.make("Indexing"), (progress) =>
      Database.naming(database, operation.index({ database, directories, force, shared, progress, onInterrupted }))
    ).pipe(
      Effect.scoped,
      // When the bar is gone.
      Effect.onInterrupt(() => Effect.suspend(() => output.interrupted(interruptedLine(waiting))))
    )
    yield* output.failures(result)
    if (result.unpublished !== undefined) yield* output.notice(unpublishedLine(result.unpublished))
    yield* output.result(result, () => indexLines(result))
    if (result.failed > 0) {
      return yield* new FinishedWithFailures({ failed: result.failed })
    }
  })
).pipe(
  Command.withShortDescription("Index directories: what is new or changed is read, what is gone is removed"),
  Command.withDescription(
    "Index directories: what is new or changed is read, what is gone is removed. Text files up to 16 MiB are indexed, " +
      "hidden ones such as .env too; UTF-8, or UTF-16 with a byte order mark, is text. Left out are .git and .strata, " +
      "links, the index itself, and what a .gitignore in the directory or below it excludes"
  ),
  Command.withExamples([
    { command: "strata index docs", description: "Index docs, or bring its index up to date" },
    { command: "strata index docs src --json", description: "Index two directories, with counts for a script" }
  ])
)
