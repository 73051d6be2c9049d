/**
 * The rules of the `.gitignore` files from the root down to a directory, as one
 * list in git's order of precedence: a later rule wins, a deeper file comes
 * later, and nothing below an ignored directory is looked at.
 */
import type { Ignore } from "ignore"
import ignore from "ignore"

export class IgnoreRules {
  static readonly none = new IgnoreRules(undefined)

  private readonly matcher: Ignore | undefined

  private constructor(matcher: Ignore | undefined) {
    this.matcher = matcher
  }

  /** The rules with those of the `.gitignore` in `directory`, a path from the root as `a/b/`; the root's is empty. */
  add(directory: string, content: string): IgnoreRules {
    const patterns = directory === "" ? content : rebase(directory, content)
    return new IgnoreRules(newMatcher(this.matcher).add(patterns))
  }

  /** The same rules with fresh memory: the matcher remembers each path it is asked about. */
  fork(): IgnoreRules {
    return this.matcher === undefined ? this : new IgnoreRules(newMatcher(this.matcher))
  }

  /** `path` is from the root; that of a directory ends with a slash. */
  ignores(path: string): boolean {
    return this.matcher !== undefined && this.matcher.ignores(path)
  }
}

const newMatcher = (rules: Ignore | undefined): Ignore => {
  const matcher = ignore({ ignoreCase: false, allowRelativePaths: true })
  return rules === undefined ? matcher : matcher.add(rules)
}

/** Patterns as the root's `.gitignore` would say them. */
const rebase = (directory: string, content: string): Array<string> =>
  content.split(/\r?\n/).flatMap((line) => {
    if (line.startsWith("#")) return []
    const negated = line.startsWith("!")
    const pattern = trimEnd(negated ? line.slice(1) : line)
    if (pattern === "" || pattern === "/") return []
    const anchored = pattern.slice(0, -1).includes("/")
    const local = pattern.startsWith("/") ? pattern.slice(1) : pattern
    return [`${negated ? "!" : ""}/${escapeGlob(directory)}${anchored ? "" : "**/"}${local}`]
  })

/** Trailing spaces count only when escaped. */
const trimEnd = (pattern: string): string => pattern.replace(/(?<!\\)[ \t]+$/, "")

const escapeGlob = (path: string): string => path.replace(/[\\*?[\]! ]/g, "\\$&")
