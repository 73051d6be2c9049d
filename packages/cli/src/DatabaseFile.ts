/**
 * Where the index is kept: the file given with `--database`, else
 * `.strata/strata.db` in the working directory or the nearest folder above it
 * that has one, as git finds its repository.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import type { PlatformError } from "effect/PlatformError"
import * as Schema from "effect/Schema"

// ---------------------------------------------------------------------------------------------------------------------
// errors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The file named with `--database` does not exist.
 *
 * @since 0.1.0
 * @category errors
 */
export class Missing extends Schema.TaggedClass<Missing>("@strata/cli/DatabaseFile/Missing")("Missing", {
  file: Schema.String
}) {
  get message(): string {
    return `there is no index at ${this.file}: create it with strata index DIR --database FILE`
  }
}

/**
 * Neither the folder `from` nor one above it has an index.
 *
 * @since 0.1.0
 * @category errors
 */
export class NotFound extends Schema.TaggedClass<NotFound>("@strata/cli/DatabaseFile/NotFound")("NotFound", {
  from: Schema.String
}) {
  get message(): string {
    return `there is no index in ${this.from} or a folder above it: create one with strata index DIR`
  }
}

/**
 * @since 0.1.0
 * @category errors
 */
export class DatabaseFileError extends Schema.TaggedError<DatabaseFileError>("@strata/cli/DatabaseFileError")(
  "DatabaseFileError",
  { reason: Schema.Union([Missing, NotFound]) }
) {
  override get message(): string {
    return this.reason.message
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// accessors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The database of an index that exists, as an absolute path.
 *
 * @since 0.1.0
 * @category accessors
 */
export const existing = Effect.fnUntraced(function* (
  given: Option.Option<string>
): Effect.fn.Return<string, DatabaseFileError | PlatformError, FileSystem.FileSystem | Path.Path> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  if (Option.isSome(given)) {
    const file = path.resolve(given.value)
    return (yield* fs.exists(file)) ? file : yield* new DatabaseFileError({ reason: new Missing({ file }) })
  }
  const from = path.resolve(".")
  const found = yield* findUpwards(from)
  return Option.isSome(found) ? found.value : yield* new DatabaseFileError({ reason: new NotFound({ from }) })
})

/**
 * The database of the index that exists or, where there is none, of one to be
 * created: the folder of the returned file is there, the file may not be.
 *
 * @since 0.1.0
 * @category accessors
 */
export const existingOrNew = Effect.fnUntraced(function* (
  given: Option.Option<string>
): Effect.fn.Return<string, PlatformError, FileSystem.FileSystem | Path.Path> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  if (Option.isSome(given)) {
    const file = path.resolve(given.value)
    yield* fs.makeDirectory(path.dirname(file), { recursive: true })
    return file
  }
  const from = path.resolve(".")
  const found = yield* findUpwards(from)
  if (Option.isSome(found)) {
    return found.value
  }
  const folder = path.join(from, folderName)
  yield* fs.makeDirectory(folder, { recursive: true })
  // So that the index of a working copy is never committed with it.
  yield* fs.writeFileString(path.join(folder, ".gitignore"), "*\n")
  return path.join(folder, fileName)
})

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const folderName = ".strata"
const fileName = "strata.db"

const findUpwards = Effect.fnUntraced(function* (
  from: string
): Effect.fn.Return<Option.Option<string>, PlatformError, FileSystem.FileSystem | Path.Path> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  for (let folder = from; ; folder = path.dirname(folder)) {
    const file = path.join(folder, folderName, fileName)
    if (yield* fs.exists(file)) return Option.some(file)
    if (path.dirname(folder) === folder) return Option.none()
  }
})
