import type { Directory } from "../FileTree.ts"

/**
 * What is not known to be there or not after a directory was listed, as `a/b/`: the directory itself when it could not
 * be listed, and entries whose state could not be read, each of which may be a directory.
 */
export const unknownIn = (directory: Directory): ReadonlyArray<string> =>
  directory.complete
    ? directory.problems.flatMap(({ path, reason }) => (reason._tag === "Unreadable" ? [`${path}/`] : []))
    : [directory.path]

/** Whether a file, or a folder as `a/b/`, is or is below what is not known. */
export const isUnknown = (unknown: ReadonlyArray<string>, path: string): boolean => {
  const name = path.endsWith("/") ? path : `${path}/`
  return unknown.some((prefix) => name.startsWith(prefix))
}
