/**
 * The file system as the walker asks it: synchronous calls that answer errors
 * as values, with error codes such as `EACCES`.
 */
import { Buffer } from "node:buffer"
import * as Fs from "node:fs"
import * as FsPromises from "node:fs/promises"

export interface Failure {
  readonly code: string
}

export interface Stat {
  readonly mode: number
  readonly size: number
  readonly mtimeMs: number
  readonly ctimeMs: number
  readonly ino: number
  readonly dev: number
}

export interface FileSystem {
  readonly list: (path: string) => Array<string> | Failure
  /** As `list`, off the main thread: for directories that take long. */
  readonly listAsync: (path: string) => Promise<Array<string> | Failure>
  /** The names as the bytes they are. */
  readonly listBytes: (path: string) => ReadonlyArray<Buffer> | Failure
  /** Does not follow a link. */
  readonly lstat: (path: string) => Stat | Failure
  readonly stat: (path: string) => Stat | Failure
  readonly realPath: (path: string) => string | Failure
  readonly readText: (path: string) => string | Failure
}

export const isFailure = (value: object | string): value is Failure => typeof value === "object" && "code" in value

/** Nothing is there any more: not an error for who walks a tree that changes. */
export const isGone = (failure: Failure): boolean => failure.code === "ENOENT" || failure.code === "ENOTDIR"

const failureOf = (error: unknown): Failure => ({
  code: error instanceof Error && "code" in error ? String(error.code) : "UNKNOWN"
})

const attempt = <A>(call: (path: string) => A): ((path: string) => A | Failure) => {
  return (path) => {
    try {
      return call(path)
    } catch (error) {
      return failureOf(error)
    }
  }
}

export const nodeFileSystem: FileSystem = {
  list: attempt((path) => Fs.readdirSync(path)),
  listAsync: (path) => FsPromises.readdir(path).catch(failureOf),
  listBytes: attempt((path) => Fs.readdirSync(path, { encoding: "buffer" }).map((name) => Buffer.from(name))),
  lstat: attempt((path): Stat => Fs.lstatSync(path)),
  stat: attempt((path): Stat => Fs.statSync(path)),
  realPath: attempt((path) => Fs.realpathSync.native(path)),
  readText: attempt((path) => Fs.readFileSync(path, "utf8"))
}

const typeMask = Fs.constants.S_IFMT

export const isFile = (stat: Stat): boolean => (stat.mode & typeMask) === Fs.constants.S_IFREG

export const isDirectory = (stat: Stat): boolean => (stat.mode & typeMask) === Fs.constants.S_IFDIR

export const isLink = (stat: Stat): boolean => (stat.mode & typeMask) === Fs.constants.S_IFLNK

export const specialKind = (stat: Stat): "FIFO" | "socket" | "device" | "unknown" => {
  switch (stat.mode & typeMask) {
    case Fs.constants.S_IFIFO:
      return "FIFO"
    case Fs.constants.S_IFSOCK:
      return "socket"
    case Fs.constants.S_IFCHR:
    case Fs.constants.S_IFBLK:
      return "device"
    default:
      return "unknown"
  }
}
