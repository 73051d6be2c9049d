import { hasProperty } from "effect/Predicate"
import * as Schema from "effect/Schema"
import { accessSync, constants, existsSync, realpathSync } from "node:fs"
import { dirname } from "node:path"

/** What of a database this process may not write. */
export const Hindrance = Schema.Literals(["File", "Folder", "FileSystem"])

export type Hindrance = typeof Hindrance.Type

/** What is in the way of writing the file, or of creating it; `undefined` when nothing is known of. */
export const find = (file: string): Hindrance | undefined => {
  const real = existsSync(file) ? realpathSync(file) : undefined
  const ofFile = real === undefined ? undefined : refusal(real, constants.W_OK)
  const ofFolder = refusal(nearestFolder(real ?? file), constants.W_OK | constants.X_OK)
  if (ofFile === "EROFS" || ofFolder === "EROFS") return "FileSystem"
  // First what reading needs too.
  if (isDenial(ofFolder)) return "Folder"
  return isDenial(ofFile) ? "File" : undefined
}

/** Whether SQLite could not write, or not open, what it may have needed to write. */
export const isSuspected = (cause: unknown): boolean =>
  hasProperty(cause, "errcode") &&
  typeof cause.errcode === "number" &&
  [sqliteReadonly, sqliteCantOpen].includes(cause.errcode & 0xff)

/** Primary result codes: https://www.sqlite.org/rescode.html */
const sqliteReadonly = 8
const sqliteCantOpen = 14

const isDenial = (code: string | undefined): boolean => code === "EACCES" || code === "EPERM"

const refusal = (path: string, mode: number): string | undefined => {
  try {
    accessSync(path, mode)
    return undefined
  } catch (error) {
    return hasProperty(error, "code") && typeof error.code === "string" ? error.code : undefined
  }
}

const nearestFolder = (file: string): string => {
  let folder = dirname(file)
  while (!existsSync(folder) && dirname(folder) !== folder) folder = dirname(folder)
  return folder
}
