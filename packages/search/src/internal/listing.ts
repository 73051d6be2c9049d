import type { Path, Scope } from "@strata/dirty-queue/Path"
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { parseEntries } from "./manifest.ts"

interface Known {
  readonly digest: string
  readonly names: ReadonlySet<string>
}

/** Claims come mostly folder by folder, from several scopes at most. */
const keptFolders = 16

/**
 * Answers whether the last scan saw a path. The names of a folder are kept as long as its digest in the database stays
 * the same: a folder of 100,000 files is read once and not for each of them.
 */
export const makeListing = (
  sql: SqlClient.SqlClient
): ((scope: Scope, path: Path) => Effect.Effect<boolean, SqlError>) => {
  const kept = new Map<string, Known>()

  const keep = (key: string, known: Known) => {
    kept.delete(key)
    kept.set(key, known)
    if (kept.size > keptFolders) kept.delete(kept.keys().next().value!)
  }

  const load = (key: string, scope: Scope, folder: string, name: string) =>
    Effect.map(
      sql.unsafe<{ readonly digest: string; readonly entries: string }>(
        "SELECT digest, entries FROM strata_search_folder WHERE scope = ? AND folder = ?",
        [scope, folder]
      ),
      ([row]) => {
        if (row === undefined) return false
        const names = new Set(parseEntries(row.entries).keys())
        keep(key, { digest: row.digest, names })
        return names.has(name)
      }
    )

  return (scope, path) => {
    const start = path.lastIndexOf("/") + 1
    const folder = path.slice(0, start)
    const name = path.slice(start)
    const key = `${scope}\0${folder}`
    return Effect.flatMap(
      sql.unsafe<{ readonly digest: string }>(
        "SELECT digest FROM strata_search_folder WHERE scope = ? AND folder = ?",
        [scope, folder]
      ),
      ([row]) => {
        const known = kept.get(key)
        if (row === undefined) return Effect.succeed(false)
        return known?.digest === row.digest ? Effect.succeed(known.names.has(name)) : load(key, scope, folder, name)
      }
    )
  }
}
