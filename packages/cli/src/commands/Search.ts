/**
 * `strata search QUERY`
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Database from "../Database.ts"
import { Output } from "../Output.ts"
import type { SearchResult } from "../Results.ts"
import { root } from "../Root.ts"
import * as SharedTier from "../SharedTier.ts"
import * as Integer from "../internal/integer.ts"
import { count, hitLines } from "../internal/lines.ts"

/**
 * @since 0.1.0
 * @category commands
 */
export const search = Command.make(
  "search",
  {
    words: Argument.String("QUERY").pipe(
      Argument.withDescription(
        'Words that must all occur; "a phrase", a prefix*, -excluded, a OR b, a NOT b. After -- when it begins with -'
      ),
      Argument.variadic({ min: 1 })
    ),
    limit: Integer.flag("limit", { least: 0, most: 10_000 }).pipe(
      Flag.withAlias("n"),
      Flag.withDescription("How many hits to print at most (10)"),
      Flag.withDefault(10)
    ),
    pathPrefix: Flag.String("path-prefix").pipe(
      Flag.withMetavar("PREFIX"),
      Flag.withDescription("Find only in paths that start with exactly this"),
      Flag.withDefault("")
    ),
    sync: Flag.Boolean("sync").pipe(
      Flag.withoutNegation,
      Flag.withDescription("Bring the index up to date first"),
      Flag.withDefault(false)
    ),
    ...SharedTier.flags
  },
  Effect.fnUntraced(function* ({ limit, pathPrefix, sync, words, ...given }) {
    const query = words.join(" ")
    const { database: named } = yield* root
    const output = yield* Output
    const database = yield* Database.existing(named)
    const shared = sync ? yield* SharedTier.fromFlags(given) : undefined
    const operation = yield* Effect.promise(() => import("../operations/Search.ts"))
    const found = yield* Database.naming(
      database,
      operation.search({ database, query, limit, pathPrefix, sync, shared })
    )
    const result: SearchResult = {
      query,
      total: found.total,
      hits: found.hits.map((hit) => ({ ...hit, snippet: hit.snippet.map(({ text }) => text).join("") }))
    }
    yield* output.result(result, (style) => hitLines(found.hits, style))
    if (found.total === 0) yield* output.notice("nothing found")
    else if (limit === 0) yield* output.notice(`${count(found.total, "passage")} found`)
  })
).pipe(
  Command.withShortDescription("Find text: path, line, heading and snippet of the best passages"),
  Command.withDescription(
    "Find text: path, line of the first match, heading and snippet of the best passages. Whole words are compared, " +
      "without case and accents, in text, headings and titles; the name of a file without a title is its title"
  ),
  Command.withExamples([
    { command: "strata search 'group commit'", description: "Passages with both words" },
    { command: "strata search --limit 3 '\"group commit\"' --json", description: "The phrase, for a script" },
    { command: "strata search -- '-v'", description: "A query that begins with a dash" }
  ])
)
