import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import { migrations } from "./sqliteSchema.ts"
import type { Folder, SeenStorage, StoredProblem } from "./storage.ts"

/** What scans have seen, on SQLite. */
export const make = (sql: SqlClient.SqlClient): SeenStorage => ({
  migrations,

  folders: (scope, under, after, limit) =>
    sql.unsafe<Folder>(
      `SELECT folder, entries FROM strata_search_folder
      WHERE scope = ?1 AND folder ${after === undefined ? ">=" : ">"} ?2
        AND substr(folder, 1, length(?3)) = ?3
      ORDER BY folder LIMIT ?4`,
      [scope, after ?? under, under, limit]
    ),

  folder: (scope, folder) =>
    Effect.map(
      sql.unsafe<{ readonly digest: string; readonly entries: string }>(
        "SELECT digest, entries FROM strata_search_folder WHERE scope = ? AND folder = ?",
        [scope, folder]
      ),
      ([row]) => row
    ),

  folderDigest: (scope, folder) =>
    Effect.map(
      sql.unsafe<{ readonly digest: string }>(
        "SELECT digest FROM strata_search_folder WHERE scope = ? AND folder = ?",
        [scope, folder]
      ),
      ([row]) => row?.digest
    ),

  replaceFolders: Effect.fnUntraced(function* (scope, gone, seen) {
    yield* sql.unsafe(
      "DELETE FROM strata_search_folder WHERE scope = ? AND folder IN (SELECT value FROM json_each(?))",
      [scope, JSON.stringify(gone)]
    )
    yield* sql.unsafe(
      `INSERT INTO strata_search_folder (scope, folder, digest, entries)
      SELECT ?, value ->> 0, value ->> 1, value ->> 2 FROM json_each(?) WHERE true
      ON CONFLICT (scope, folder) DO UPDATE SET digest = excluded.digest, entries = excluded.entries`,
      [scope, JSON.stringify(seen.map(({ digest, entries, folder }) => [folder, digest, entries]))]
    )
  }),

  problems: (scope, under) =>
    sql.unsafe<StoredProblem>(
      `SELECT path, reason FROM strata_search_problem
      WHERE scope = ?1 AND path >= ?2 AND substr(path, 1, length(?2)) = ?2 ORDER BY path`,
      [scope, under]
    ),

  replaceProblems: Effect.fnUntraced(function* (scope, gone, fresh) {
    yield* sql.unsafe(
      "DELETE FROM strata_search_problem WHERE scope = ? AND path IN (SELECT value FROM json_each(?))",
      [scope, JSON.stringify(gone)]
    )
    yield* sql.unsafe(
      `INSERT INTO strata_search_problem (scope, path, reason)
      SELECT ?, value ->> 0, value ->> 1 FROM json_each(?) WHERE true
      ON CONFLICT (scope, path) DO UPDATE SET reason = excluded.reason`,
      [scope, JSON.stringify(fresh.map(({ path, reason }) => [path, reason]))]
    )
  })
})
