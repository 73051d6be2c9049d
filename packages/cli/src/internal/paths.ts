import * as NodePath from "node:path"
import type { Database } from "../Database.ts"

/**
 * The folder that the paths of an index start from: the one that holds `.strata`, or the database's own folder where it
 * has another name. So an index and its directories can be moved together. In a Postgres, which has no folder, paths
 * are absolute.
 */
export const baseOf = (database: Database): string => {
  if (database._tag === "Postgres") return NodePath.parse(process.cwd()).root
  const folder = NodePath.dirname(database.name)
  return NodePath.basename(folder) === ".strata" ? NodePath.dirname(folder) : folder
}

/** A database and what SQLite keeps beside it. */
export const filesOf = (database: Database): ReadonlyArray<string> =>
  database._tag === "Postgres" ? [] : ["", "-wal", "-shm", "-journal"].map((suffix) => database.name + suffix)
