import type { Scope } from "@strata/dirty-queue/Path"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { SqlError } from "effect/sql/SqlError"
import * as Stream from "effect/Stream"
import type { FileEntry } from "../FileTree.ts"
import { compareBytes } from "./byteOrder.ts"
import type { Folder, SeenStorage } from "./storage.ts"

/**
 * What the last scan saw of a folder: one line for each file, `name/signature`, in the order of the names' bytes. No
 * name has a slash or a control character. A file whose times cannot be trusted yet is remembered with a mark, so that
 * the next scan takes it for changed.
 */
export const toEntries = (files: ReadonlyArray<FileEntry>): string => {
  let entries = ""
  for (const file of files) {
    entries += `${entries === "" ? "" : "\n"}${file.name}/${file.racy ? "?" : ""}${file.signature}`
  }
  return entries
}

/** Signatures by name. */
export const parseEntries = (entries: string): Map<string, string> => {
  const files = new Map<string, string>()
  if (entries === "") return files
  for (const line of entries.split("\n")) {
    const slash = line.indexOf("/")
    files.set(line.slice(0, slash), line.slice(slash + 1))
  }
  return files
}

const pageFolders = 500

/** All folders of a scope, in the order of their bytes, of which a page is in memory at a time. */
export const folders = (seen: SeenStorage, scope: Scope): Stream.Stream<Folder, SqlError> =>
  Stream.paginate<string | undefined, Folder, SqlError>(undefined, (after) =>
    Effect.map(seen.folders(scope, "", after, pageFolders), (page) => [
      page,
      page.length < pageFolders ? Option.none() : Option.some(page.at(-1)?.folder)
    ])
  )

/**
 * Reads the folders of a scope below `under`, in the order of their bytes, a page at a time, beside a walk in the same
 * order.
 */
export class ManifestCursor {
  private page: ReadonlyArray<Folder> = []
  private position = 0
  private last: string | undefined
  private finished = false
  private readonly seen: SeenStorage
  private readonly scope: Scope
  private readonly under: string

  constructor(seen: SeenStorage, scope: Scope, under: string) {
    this.seen = seen
    this.scope = scope
    this.under = under
  }

  /**
   * The entries of `folder`, and the folders before it that the walk did not come to. Without a folder: all that are
   * left.
   */
  advance(
    folder: string | undefined
  ): Effect.Effect<{ readonly entries: string | undefined; readonly passed: ReadonlyArray<Folder> }, SqlError> {
    const passed: Array<Folder> = []
    const step: Effect.Effect<string | undefined, SqlError> = Effect.suspend(() => {
      while (this.position < this.page.length) {
        const next = this.page[this.position]!
        const order = folder === undefined ? -1 : next.folder === folder ? 0 : compareBytes(next.folder, folder)
        if (order > 0) return Effect.succeed(undefined)
        this.position++
        if (order === 0) return Effect.succeed(next.entries)
        passed.push(next)
      }
      return this.finished ? Effect.succeed(undefined) : Effect.flatMap(this.load(), () => step)
    })
    return Effect.map(step, (entries) => ({ entries, passed }))
  }

  private load(): Effect.Effect<void, SqlError> {
    return Effect.map(this.seen.folders(this.scope, this.under, this.last, pageFolders), (page) => {
      this.page = page
      this.position = 0
      this.finished = page.length < pageFolders
      this.last = page.at(-1)?.folder ?? this.last
    })
  }
}
