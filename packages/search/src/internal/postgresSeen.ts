import * as Rows from "@strata/durable/Rows"
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import { migrationsPostgres } from "./postgresSchema.ts"
import * as Statements from "./postgresStatements.ts"
import type { SeenStorage } from "./storage.ts"

/** What scans have seen, on Postgres. */
export const make = (sql: SqlClient.SqlClient): SeenStorage => {
  const run: Rows.Run = (statement, parameters = []) => sql.unsafe(statement, parameters).values
  return {
    migrations: migrationsPostgres,

    folders: (scope, under, after, limit) =>
      Effect.map(run(Statements.folders(after !== undefined), [scope, after ?? under, under, limit]), (rows) =>
        rows.map((row) => ({ folder: Rows.text(row[0]), entries: Rows.text(row[1]) }))
      ),

    folder: (scope, folder) =>
      Effect.map(
        run(Statements.folder, [scope, folder]),
        ([row]) => row && { digest: Rows.text(row[0]), entries: Rows.text(row[1]) }
      ),

    folderDigest: (scope, folder) =>
      Effect.map(run(Statements.folderDigest, [scope, folder]), ([row]) => row && Rows.text(row[0])),

    replaceFolders: Effect.fnUntraced(function* (scope, gone, seen) {
      yield* run(Statements.deleteFolders, [scope, JSON.stringify(gone)])
      yield* run(Statements.upsertFolders, [
        scope,
        JSON.stringify(seen.map(({ digest, entries, folder }) => [folder, digest, entries]))
      ])
    }),

    problems: (scope, under) =>
      Effect.map(run(Statements.problems, [scope, under]), (rows) =>
        rows.map((row) => ({ path: Rows.text(row[0]), reason: Rows.text(row[1]) }))
      ),

    replaceProblems: Effect.fnUntraced(function* (scope, gone, fresh) {
      yield* run(Statements.deleteProblems, [scope, JSON.stringify(gone)])
      yield* run(Statements.upsertProblems, [scope, JSON.stringify(fresh.map(({ path, reason }) => [path, reason]))])
    })
  }
}
