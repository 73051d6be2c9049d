/**
 * Decides which symbolic links a walk follows, so that it ends and meets each
 * real file once.
 *
 * What lies below the root is reached without links, so no link to it is
 * followed. Of what lies outside, each file and directory is taken the first
 * time the walk comes to it.
 */
import type { ProblemReason } from "../FileTree.ts"
import { type FileSystem, isDirectory, isFailure, isFile, isGone, specialKind, type Stat } from "./fileSystem.ts"

export type Target =
  | { readonly _tag: "File"; readonly stat: Stat }
  | { readonly _tag: "Directory" }
  | { readonly _tag: "Covered" }
  | { readonly _tag: "Gone" }
  | { readonly _tag: "Problem"; readonly reason: ProblemReason }

const covered: Target = { _tag: "Covered" }
const loop: Target = { _tag: "Problem", reason: { _tag: "LinkLoop" } }

export class Links {
  private readonly fileSystem: FileSystem
  private readonly root: string
  private readonly seen = new Set<string>()

  /** `root` is the real path of the walk's root. */
  constructor(fileSystem: FileSystem, root: string) {
    this.fileSystem = fileSystem
    this.root = root
  }

  /** Whether what lies outside the root is met for the first time. */
  isNew(stat: Stat): boolean {
    const id = `${stat.dev}:${stat.ino}`
    if (this.seen.has(id)) return false
    this.seen.add(id)
    return true
  }

  /** Where the link `name` in the directory `parent` leads. */
  resolve(parent: string, name: string): Target {
    const stat = this.fileSystem.stat(parent + name)
    if (isFailure(stat)) return this.unresolved(parent + name, stat.code)
    const real = this.fileSystem.realPath(parent + name)
    if (isFailure(real)) return this.unresolved(parent + name, real.code)
    if (isWithin(this.root, real)) return this.inside(parent, real)
    if (isDirectory(stat)) {
      if (isWithin(real, this.root)) return loop
      return this.isNew(stat) ? { _tag: "Directory" } : covered
    }
    if (isFile(stat)) return this.isNew(stat) ? { _tag: "File", stat } : covered
    return { _tag: "Problem", reason: { _tag: "SpecialFile", kind: specialKind(stat) } }
  }

  /** Whether a directory, given with its link resolved, is outside the root. */
  isOutside(path: string): boolean {
    const real = this.fileSystem.realPath(path)
    return !isFailure(real) && !isWithin(this.root, real)
  }

  private inside(parent: string, real: string): Target {
    const from = this.fileSystem.realPath(parent)
    return !isFailure(from) && isWithin(real, from) ? loop : covered
  }

  private unresolved(path: string, code: string): Target {
    if (code === "ELOOP") return loop
    if (!isGone({ code })) return { _tag: "Problem", reason: { _tag: "Unreadable", code } }
    const link = this.fileSystem.lstat(path)
    return isFailure(link) ? { _tag: "Gone" } : { _tag: "Problem", reason: { _tag: "DanglingLink" } }
  }
}

/** Whether `path` is `directory` or below it. */
const isWithin = (directory: string, path: string): boolean =>
  path === directory || path.startsWith(directory.endsWith("/") ? directory : `${directory}/`)
