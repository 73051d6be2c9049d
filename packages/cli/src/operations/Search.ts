/**
 * @since 0.1.0
 */
import * as SearchText from "@strata/search/Search"
import * as Effect from "effect/Effect"
import * as NodePath from "node:path"
import type { Database } from "../Database.ts"
import type { MarkedHit } from "../internal/lines.ts"
import { baseOf } from "../internal/paths.ts"
import * as Reader from "../Reader.ts"
import type { SharedTier } from "../SharedTier.ts"

/**
 * Finds text. Reads through a read-only connection; with `sync` the directories are scanned and indexed before.
 *
 * @since 0.1.0
 * @category operations
 */
export const search = Effect.fnUntraced(function* (options: {
  readonly database: Database
  readonly query: string
  readonly limit: number
  readonly pathPrefix: string
  /** Whether to bring the index up to date first, with this shared cache. */
  readonly sync: boolean
  readonly shared: SharedTier | undefined
}) {
  if (options.sync) {
    const operation = yield* Effect.promise(() => import("./Sync.ts"))
    yield* operation.syncAll(options.database, options.shared)
  }
  const base = baseOf(options.database)
  const found = yield* Effect.scoped(
    Effect.gen(function* () {
      const sql = yield* Reader.make(options.database)
      const within =
        options.pathPrefix === "" ? undefined : withinPrefix(base, yield* SearchText.scopes(sql), options.pathPrefix)
      return yield* SearchText.search(sql, { query: options.query, limit: Math.max(options.limit, 1), within })
    })
  )
  return { total: found.total, hits: found.hits.slice(0, options.limit).map((hit) => toMarked(base, hit)) }
})

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/** A prefix of paths as they are shown, from the working directory, as prefixes within the roots. */
const withinPrefix = (base: string, scopes: ReadonlyArray<string>, prefix: string) => {
  const absolute = NodePath.resolve(prefix) + (prefix.endsWith("/") ? "/" : "")
  return scopes.flatMap((scope) => {
    const folder = `${NodePath.resolve(base, scope)}/`
    if (absolute.startsWith(folder)) return [{ scope, prefix: absolute.slice(folder.length) }]
    return folder.startsWith(absolute) ? [{ scope, prefix: "" }] : []
  })
}

const toMarked = (base: string, hit: SearchText.Hit): MarkedHit => ({
  path: NodePath.relative(process.cwd(), NodePath.join(base, hit.scope, hit.path)),
  line: hit.line,
  heading: hit.heading === "" ? hit.title : hit.heading,
  score: hit.score,
  snippet: parts(hit.snippet)
})

const parts = ({ highlights, text }: SearchText.Snippet): MarkedHit["snippet"] => {
  const marked: Array<{ readonly text: string; readonly match: boolean }> = []
  let position = 0
  for (const [start, end] of highlights) {
    if (start > position) marked.push({ text: text.slice(position, start), match: false })
    marked.push({ text: text.slice(start, end), match: true })
    position = end
  }
  if (position < text.length) marked.push({ text: text.slice(position), match: false })
  return marked
}
