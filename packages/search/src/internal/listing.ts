import type { Path, Scope } from "@strata/dirty-queue/Path"
import * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import { parseEntries } from "./manifest.ts"
import type { SeenStorage } from "./storage.ts"

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
export const makeListing = (seen: SeenStorage): ((scope: Scope, path: Path) => Effect.Effect<boolean, SqlError>) => {
  const kept = new Map<string, Known>()

  const keep = (key: string, known: Known) => {
    kept.delete(key)
    kept.set(key, known)
    if (kept.size > keptFolders) kept.delete(kept.keys().next().value!)
  }

  const load = (key: string, scope: Scope, folder: string, name: string) =>
    Effect.map(seen.folder(scope, folder), (row) => {
      if (row === undefined) return false
      const names = new Set(parseEntries(row.entries).keys())
      keep(key, { digest: row.digest, names })
      return names.has(name)
    })

  return (scope, path) => {
    const start = path.lastIndexOf("/") + 1
    const folder = path.slice(0, start)
    const name = path.slice(start)
    const key = `${scope}\0${folder}`
    return Effect.flatMap(seen.folderDigest(scope, folder), (digest) => {
      const known = kept.get(key)
      if (digest === undefined) return Effect.succeed(false)
      return known?.digest === digest ? Effect.succeed(known.names.has(name)) : load(key, scope, folder, name)
    })
  }
}
