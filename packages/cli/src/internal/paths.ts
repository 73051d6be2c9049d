import * as NodePath from "node:path"

/**
 * The folder that the paths of an index start from: the one that holds `.strata`, or the database's own folder where it
 * has another name. So an index and its directories can be moved together.
 */
export const baseOf = (database: string): string => {
  const folder = NodePath.dirname(database)
  return NodePath.basename(folder) === ".strata" ? NodePath.dirname(folder) : folder
}

/** A database and what SQLite keeps beside it. */
export const filesOf = (database: string): ReadonlyArray<string> =>
  ["", "-wal", "-shm", "-journal"].map((suffix) => database + suffix)
