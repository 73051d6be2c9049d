/**
 * Walks a tree in bounded steps, without Effect: the hot part of `FileTree`.
 *
 * It asks for names only and then for the state of each, which costs the same
 * as asking for names with their types, and holds what is still to be done on a
 * stack of its own, so a step can stop anywhere.
 */
import { isTooLong } from "@strata/dirty-queue/Path"
import { Buffer, isUtf8 } from "node:buffer"
import type { Directory, FileEntry, Problem, ProblemReason } from "../FileTree.ts"
import { sortBytes } from "./byteOrder.ts"
import { escapeBytes, escapeName } from "./escape.ts"
import {
  type Failure,
  type FileSystem,
  isDirectory,
  isFailure,
  isFile,
  isGone,
  isLink,
  specialKind,
  type Stat
} from "./fileSystem.ts"
import { IgnoreRules } from "./gitignore.ts"
import { Links } from "./links.ts"

export interface WalkerOptions {
  /** The root with a slash at its end. */
  readonly root: string
  readonly followSymlinks: boolean
  readonly gitignore: boolean
  readonly skip: ReadonlySet<string>
  /** Files that are passed over: by their name, the real folders in which they are. */
  readonly exclude: ReadonlyMap<string, ReadonlySet<string>>
  /** Files changed at this time or later, in ms since the epoch, are racy. */
  readonly racySince: number
}

/** A directory that is still to be listed. */
interface Pending {
  readonly path: string
  readonly rules: IgnoreRules
  /** Reached through a link, so not below the root. */
  readonly outside: boolean
  /** The size of the directory itself, in bytes. */
  readonly size: number
}

type Entered = Pick<Pending, "outside" | "size">

/** A directory whose entries are being looked at. */
interface Open {
  readonly pending: Pending
  readonly rules: IgnoreRules
  readonly names: ReadonlyArray<string>
  readonly files: Array<FileEntry>
  readonly children: Array<Pending>
  readonly problems: Array<Problem>
  next: number
  links: number
}

/** A directory of this size holds about 1,000 names; listing it takes long enough to do so off the main thread. */
const largeDirectory = 32 * 1024

/** What listing a directory costs, in entries. */
const listingCost = 5

/** No `.gitignore` that a person wrote is larger. In bytes. */
const ignoreFileLimit = 1024 * 1024

/** Control characters, and what stands for bytes that are not UTF-8. */
const oddName = /[\p{Cc}\ufffd]/u

/** Parts of a path that name no entry of a directory. */
const noEntry: ReadonlySet<string> = new Set(["", ".", ".."])

export class Walker {
  private readonly fileSystem: FileSystem
  private readonly options: WalkerOptions
  private readonly links: Links
  private readonly stack: Array<Pending> = []
  private open: Open | undefined
  /** What the walk cannot start with, to be told by its first step. */
  private unknown: Directory | undefined

  constructor(fileSystem: FileSystem, options: WalkerOptions) {
    this.fileSystem = fileSystem
    this.options = options
    const real = fileSystem.realPath(options.root)
    this.links = new Links(fileSystem, isFailure(real) ? options.root : real)
  }

  /** Starts at the directory `under`, a path from the root as `a/b/`, unless the walk of the root would not reach it. */
  start(under: string): void {
    const rulesBelow = (directory: Pending): IgnoreRules | undefined => {
      const rules = this.rulesBelow(directory)
      if (!isFailure(rules)) return rules
      // Told of the part: what is outside of it is another scan's to tell.
      this.unknown = unknown(under, [unreadable(under, rules)])
      return undefined
    }
    const pending = this.descend(under, rulesBelow, (parent, name) => this.enter(parent, name))
    if (pending !== undefined) this.stack.push(pending)
  }

  /**
   * Whether the walk of the root passes over `path`, that of a directory ending with a slash. Where rules cannot be read
   * it is not said to: the walk then says that it does not know.
   */
  ignores(path: string): boolean {
    const slash = path.lastIndexOf("/", path.length - 2)
    const name = path.slice(slash + 1).replace(/\/$/, "")
    if (path === "") return false
    if (this.options.skip.has(name) || noEntry.has(name) || oddName.test(name)) return true
    if (this.isExcluded(path.slice(0, slash + 1), name)) return true
    const rulesBelow = (directory: Pending): IgnoreRules => {
      const rules = this.rulesBelow(directory)
      return isFailure(rules) ? directory.rules.fork() : rules
    }
    const parent = this.descend(path.slice(0, slash + 1), rulesBelow, () => ({ outside: false, size: 0 }))
    return parent === undefined || rulesBelow(parent).ignores(path)
  }

  get done(): boolean {
    return this.stack.length === 0 && this.open === undefined && this.unknown === undefined
  }

  /** The next directory, absolute, when it is to be listed by `listAsync` and handed to `supply`. */
  get large(): string | undefined {
    const next = this.open === undefined ? this.stack.at(-1) : undefined
    return next !== undefined && next.size >= largeDirectory ? this.options.root + next.path : undefined
  }

  /** Opens the directory that `large` named. */
  supply(names: Array<string> | Failure): ReadonlyArray<Directory> {
    const found: Array<Directory> = []
    const pending = this.stack.pop()
    if (pending !== undefined) this.openDirectory(pending, names, found)
    return found
  }

  /** Looks at about `budget` entries, or up to a large directory; answers the directories that it completed. */
  step(budget: number): Array<Directory> {
    const found: Array<Directory> = this.unknown === undefined ? [] : [this.unknown]
    this.unknown = undefined
    let left = budget
    while (left > 0) {
      if (this.open === undefined) {
        if (this.stack.length === 0 || this.large !== undefined) break
        const pending = this.stack.pop()!
        this.openDirectory(pending, this.fileSystem.list(this.options.root + pending.path), found)
        left -= listingCost
        continue
      }
      const open = this.open
      const end = Math.min(open.names.length, open.next + left)
      left -= end - open.next
      while (open.next < end) this.entry(open, open.names[open.next++]!)
      if (open.next === open.names.length) found.push(this.close(open))
    }
    return found
  }

  private openDirectory(pending: Pending, names: Array<string> | Failure, found: Array<Directory>): void {
    if (isFailure(names)) {
      if (!isGone(names)) found.push(unknown(pending.path, [unreadable(pending.path, names)]))
      return
    }
    const problems: Array<Problem> = []
    const usable = names.some((name) => oddName.test(name)) ? this.screen(pending.path, names, problems) : names
    const rules = usable.includes(".gitignore") ? this.rulesBelow(pending) : this.forkedRules(pending)
    if (isFailure(rules)) {
      found.push(unknown(pending.path, [unreadable(`${pending.path}.gitignore`, rules)]))
      return
    }
    this.open = { pending, rules, names: sortBytes(usable), files: [], children: [], problems, next: 0, links: 0 }
  }

  private close(open: Open): Directory {
    this.open = undefined
    const directories = sortBytes(open.children.map((child) => child.path))
    for (const child of inOrder(open.children, directories).toReversed()) this.stack.push(child)
    return {
      path: open.pending.path,
      files: open.files,
      directories,
      links: open.links,
      problems: open.problems,
      complete: true
    }
  }

  private entry(open: Open, name: string): void {
    if (this.options.skip.has(name) || this.isExcluded(open.pending.path, name)) return
    const path = open.pending.path + name
    const stat = this.fileSystem.lstat(this.options.root + path)
    if (isFailure(stat)) {
      if (!isGone(stat)) open.problems.push(unreadable(path, stat))
    } else if (isFile(stat)) {
      if (open.rules.ignores(path)) return
      if (open.pending.outside && !this.links.isNew(stat)) open.links++
      else this.file(open, name, path, stat)
    } else if (isDirectory(stat)) {
      if (open.rules.ignores(`${path}/`)) return
      if (open.pending.outside && !this.links.isNew(stat)) open.links++
      else this.child(open, `${path}/`, { outside: open.pending.outside, size: stat.size })
    } else if (isLink(stat)) {
      this.link(open, name, path)
    } else if (!open.rules.ignores(path)) {
      open.problems.push({ path, reason: { _tag: "SpecialFile", kind: specialKind(stat) } })
    }
  }

  /** Only a file that has the name of an excluded one costs a look at where its folder really is. */
  private isExcluded(directory: string, name: string): boolean {
    const folders = this.options.exclude.get(name)
    if (folders === undefined) return false
    const real = this.fileSystem.realPath(this.options.root + directory)
    return !isFailure(real) && folders.has(real)
  }

  /** As git, rules take a link for a file whatever it leads to; what it leads to is then judged as itself. */
  private link(open: Open, name: string, path: string): void {
    if (open.rules.ignores(path)) return
    if (!this.options.followSymlinks) {
      open.links++
      return
    }
    const target = this.links.resolve(this.options.root + open.pending.path, name)
    switch (target._tag) {
      case "File":
        this.file(open, name, path, target.stat)
        return
      case "Directory":
        if (!open.rules.ignores(`${path}/`)) this.child(open, `${path}/`, { outside: true, size: 0 })
        return
      case "Problem":
        open.problems.push({ path, reason: target.reason })
        return
      case "Covered":
        open.links++
    }
  }

  private file(open: Open, name: string, path: string, stat: Stat): void {
    if (isTooLong(path)) {
      open.problems.push({ path, reason: { _tag: "PathTooLong" } })
      return
    }
    open.files.push({
      name,
      path,
      size: stat.size,
      mtimeMs: stat.mtimeMs,
      signature: signatureOf(stat),
      racy: stat.mtimeMs >= this.options.racySince || stat.ctimeMs >= this.options.racySince
    })
  }

  /** A directory to come to later, unless every path in it is too long. */
  private child(open: Open, path: string, entered: Entered): void {
    if (isTooLong(path)) open.problems.push({ path, reason: { _tag: "PathTooLong" } })
    else open.children.push({ path, rules: open.rules, ...entered })
  }

  /** Leaves out names that cannot be paths. Bytes that are not UTF-8 all read as U+FFFD, which a name may also hold. */
  private screen(directory: string, names: ReadonlyArray<string>, problems: Array<Problem>): Array<string> {
    const report = (name: string, reason: ProblemReason) => problems.push({ path: directory + name, reason })
    const bytes = this.fileSystem.listBytes(this.options.root + directory)
    const usable: Array<string> = []
    for (const name of isFailure(bytes) ? names.map((name) => Buffer.from(name)) : bytes) {
      const text = name.toString("utf8")
      if (!isUtf8(name)) report(escapeBytes(name), { _tag: "NotUtf8" })
      else if (/\p{Cc}/u.test(text)) report(escapeName(text), { _tag: "ControlCharacter" })
      else usable.push(text)
    }
    return usable
  }

  private forkedRules({ rules }: Pending): IgnoreRules {
    return this.options.gitignore ? rules.fork() : rules
  }

  /** The rules for what is in a directory, or why they are not known: what they exclude is not to be found meanwhile. */
  private rulesBelow(directory: Pending): IgnoreRules | Failure {
    if (!this.options.gitignore) return directory.rules
    const file = `${this.options.root}${directory.path}.gitignore`
    const stat = this.fileSystem.lstat(file)
    if (isFailure(stat)) return isGone(stat) ? directory.rules.fork() : stat
    if (!isFile(stat)) return directory.rules.fork()
    if (stat.size > ignoreFileLimit) return { code: "EFBIG" }
    const content = this.fileSystem.readText(file)
    if (!isFailure(content)) return directory.rules.add(directory.path, content)
    return isGone(content) ? directory.rules.fork() : content
  }

  /** The directory as the walk comes to it by its name and the rules, if there are any and `enter` allows each step. */
  private descend(
    directory: string,
    rulesBelow: (directory: Pending) => IgnoreRules | undefined,
    enter: (parent: Pending, name: string) => Entered | undefined
  ) {
    let pending: Pending = { path: "", rules: IgnoreRules.none, outside: false, size: largeDirectory }
    for (const name of directory.split("/").slice(0, -1)) {
      if (this.options.skip.has(name) || noEntry.has(name) || oddName.test(name)) return undefined
      const path = `${pending.path}${name}/`
      const rules = rulesBelow(pending)
      if (rules === undefined || rules.ignores(path)) return undefined
      const entered = enter(pending, name)
      if (entered === undefined) return undefined
      pending = { path, rules, ...entered }
    }
    return pending
  }

  private enter(parent: Pending, name: string): Entered | undefined {
    const path = this.options.root + parent.path + name
    const entry = this.fileSystem.lstat(path)
    if (isFailure(entry)) return undefined
    if (isDirectory(entry)) return { outside: parent.outside, size: entry.size }
    if (!isLink(entry) || !this.options.followSymlinks || !this.links.isOutside(path)) return undefined
    const stat = this.fileSystem.stat(path)
    return isFailure(stat) || !isDirectory(stat) ? undefined : { outside: true, size: stat.size }
  }
}

/** Names are in order without the slash, paths with it: `a/` comes after `a-b/`. */
const inOrder = (children: ReadonlyArray<Pending>, paths: ReadonlyArray<string>): ReadonlyArray<Pending> => {
  if (children.every((child, index) => child.path === paths[index])) return children
  const byPath = new Map(children.map((child) => [child.path, child]))
  return paths.flatMap((path) => byPath.get(path) ?? [])
}

const unreadable = (path: string, { code }: Failure): Problem => ({ path, reason: { _tag: "Unreadable", code } })

/** A directory of whose content nothing is known. */
const unknown = (path: string, problems: ReadonlyArray<Problem>): Directory => ({
  path,
  files: [],
  directories: [],
  links: 0,
  problems,
  complete: false
})

/** Whole seconds and microseconds apart: a fraction takes four times as long to print. */
const printTime = (ms: number): string => {
  const seconds = Math.floor(ms / 1000)
  return `${seconds}.${Math.round((ms - seconds * 1000) * 1000)}`
}

const signatureOf = ({ size, mtimeMs, ctimeMs, ino }: Stat): string =>
  `${size}-${printTime(mtimeMs)}-${ctimeMs === mtimeMs ? "" : printTime(ctimeMs)}-${ino}`
