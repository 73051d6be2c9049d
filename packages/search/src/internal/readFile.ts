import * as ProcessingError from "@strata/follower/ProcessingError"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { hasProperty } from "effect/Predicate"
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs"

export type ReadFile =
  | { readonly _tag: "Bytes"; readonly bytes: Uint8Array }
  | { readonly _tag: "TooLarge"; readonly size: number }

/**
 * A regular file's bytes, or only its size when that is over the limit; `None` when there is no such file. Synchronous:
 * a small file takes less time than the way to a thread and back, and the limit bounds a large one.
 */
export const readFile = (
  file: string,
  options: { readonly maxBytes: number; readonly followSymlinks: boolean }
): Effect.Effect<Option.Option<ReadFile>, ProcessingError.ProcessingError> =>
  Effect.suspend(() => {
    try {
      return Effect.succeed(Option.fromUndefinedOr(readNow(file, options)))
    } catch (cause) {
      return failure(cause)
    }
  })

const readNow = (
  file: string,
  options: { readonly maxBytes: number; readonly followSymlinks: boolean }
): ReadFile | undefined => {
  // Opening a FIFO would wait for its writer.
  const flags = constants.O_RDONLY | constants.O_NONBLOCK | (options.followSymlinks ? 0 : constants.O_NOFOLLOW)
  const descriptor = openSync(file, flags)
  try {
    const stat = fstatSync(descriptor)
    if (!stat.isFile()) return undefined
    if (stat.size > options.maxBytes) return { _tag: "TooLarge", size: stat.size }
    return readAll(descriptor, stat.size)
  } finally {
    closeSync(descriptor)
  }
}

/** What is written behind `size` meanwhile is for the next scan, which sees that the file has changed. */
const readAll = (descriptor: number, size: number): ReadFile => {
  const buffer = Buffer.allocUnsafe(size)
  let length = 0
  while (length < size) {
    const read = readSync(descriptor, buffer, length, size - length, null)
    if (read === 0) break
    length += read
  }
  return { _tag: "Bytes", bytes: buffer.subarray(0, length) }
}

const failure = (cause: unknown): Effect.Effect<Option.Option<ReadFile>, ProcessingError.ProcessingError> => {
  const code = hasProperty(cause, "code") ? String(cause.code) : "UNKNOWN"
  switch (code) {
    case "ENOENT":
    case "ENOTDIR":
    case "ELOOP":
    case "EISDIR":
    case "ENXIO":
      return Effect.succeedNone
    case "EMFILE":
    case "ENFILE":
    case "ENOMEM":
      return Effect.fail(ProcessingError.busy(`too many files are open (${code})`, cause))
    default:
      return Effect.fail(ProcessingError.transient(`the file cannot be read (${code})`, cause))
  }
}
