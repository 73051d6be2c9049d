/**
 * Where the directories of an index are. A root is called by its path from the index's base folder, which is its scope
 * in the queue and in the index; so an index that is moved together with its directories stays right, and two machines
 * with the same layout use the same names.
 *
 * @since 0.1.0
 */
import { type Path, Scope } from "@strata/dirty-queue/Path"
import * as NodePath from "node:path"

/**
 * The scope of the root `folder`: its path from `base`, with slashes; `.` for the base itself, and `../x` for what is
 * beside it. Both paths are absolute.
 *
 * @since 0.1.0
 * @category conversions
 */
export const scopeOf = (base: string, folder: string): Scope =>
  Scope.make(NodePath.relative(base, folder).split(NodePath.sep).join("/") || ".")

/**
 * The absolute folder of a root.
 *
 * @since 0.1.0
 * @category conversions
 */
export const folderOf = (base: string, scope: Scope): string => NodePath.resolve(base, scope)

/**
 * The absolute file of a path in a root.
 *
 * @since 0.1.0
 * @category conversions
 */
export const fileOf = (base: string, scope: Scope, path: Path): string => NodePath.join(folderOf(base, scope), path)

/**
 * The path of `folder` inside of the root, as `a/b/`; empty for the root itself, and `undefined` for what is not below
 * it.
 *
 * @since 0.1.0
 * @category conversions
 */
export const under = (base: string, scope: Scope, folder: string): string | undefined => {
  const relative = NodePath.relative(folderOf(base, scope), folder).split(NodePath.sep)
  if (relative[0] === "..") return undefined
  const path = relative.join("/")
  return path === "" ? "" : `${path}/`
}
