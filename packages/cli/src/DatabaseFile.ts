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
import { hasProperty } from "effect/Predicate"
import * as Schema from "effect/Schema"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import type { NoIndex } from "@strata/search/Search"
import * as WriteHindrance from "./internal/writeHindrance.ts"
import { Output } from "./Output.ts"

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
 * The file is a database, but not one of this program.
 *
 * @since 0.1.0
 * @category errors
 */
export class NotAnIndex extends Schema.TaggedClass<NotAnIndex>("@strata/cli/DatabaseFile/NotAnIndex")("NotAnIndex", {
  file: Schema.String
}) {
  get message(): string {
    return `there is no search index in the database ${this.file}`
  }
}

/**
 * The file, its folder or its file system may only be read. SQLite keeps the files `-wal` and `-shm` in that folder, which
 * a search makes too where they are missing.
 *
 * @since 0.1.0
 * @category errors
 */
export class ReadOnly extends Schema.TaggedClass<ReadOnly>("@strata/cli/DatabaseFile/ReadOnly")("ReadOnly", {
  file: Schema.String,
  what: WriteHindrance.Hindrance
}) {
  get message(): string {
    return `the index ${this.file} cannot be used: ${readOnlyWords[this.what]}`
  }
}

const readOnlyWords: Readonly<Record<WriteHindrance.Hindrance, string>> = {
  File: "it is read-only for this user",
  Folder: "its folder is read-only for this user, and SQLite writes there even to read",
  FileSystem: "its file system is read-only, and SQLite writes there even to read"
}

/**
 * SQLite refuses the file: it is no database, cannot be opened, is locked for too long, or its disk is full. `detail` is
 * SQLite's own word.
 *
 * @since 0.1.0
 * @category errors
 */
export class Unusable extends Schema.TaggedClass<Unusable>("@strata/cli/DatabaseFile/Unusable")("Unusable", {
  file: Schema.String,
  detail: Schema.String
}) {
  get message(): string {
    return `the index ${this.file} cannot be used: ${this.detail}`
  }
}

/**
 * @since 0.1.0
 * @category errors
 */
export class DatabaseFileError extends Schema.TaggedError<DatabaseFileError>("@strata/cli/DatabaseFileError")(
  "DatabaseFileError",
  { reason: Schema.Union([Missing, NotFound, NotAnIndex, ReadOnly, Unusable]) }
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
): Effect.fn.Return<string, DatabaseFileError | PlatformError, FileSystem.FileSystem | Path.Path> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  if (Option.isSome(given)) {
    const file = path.resolve(given.value)
    yield* creating(file)(fs.makeDirectory(path.dirname(file), { recursive: true }))
    return file
  }
  const from = path.resolve(".")
  const found = yield* findUpwards(from)
  if (Option.isSome(found)) {
    return found.value
  }
  const folder = path.join(from, folderName)
  const file = path.join(folder, fileName)
  yield* creating(file)(fs.makeDirectory(folder, { recursive: true }))
  // So that the index of a working copy is never committed with it.
  yield* creating(file)(fs.writeFileString(path.join(folder, ".gitignore"), "*\n"))
  return file
})

/**
 * Tells people which index is used when it is one in a folder above, which they may have forgotten.
 *
 * @since 0.1.0
 * @category accessors
 */
export const tellElsewhere = Effect.fnUntraced(function* (
  given: Option.Option<string>,
  file: string,
  what: "index" | "database"
): Effect.fn.Return<void, never, Output | Path.Path> {
  const path = yield* Path.Path
  if (Option.isNone(given) && file !== path.resolve(folderName, fileName)) {
    yield* Output.use((output) => output.notice(`using the ${what} ${file}`))
  }
})

// ---------------------------------------------------------------------------------------------------------------------
// combinators
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Names the file in what SQLite, or the lack of an index, made fail.
 *
 * @since 0.1.0
 * @category combinators
 */
export const naming = <A, E, R>(
  file: string,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, Exclude<E, SqlError | NoIndex> | DatabaseFileError, R> =>
  Effect.mapError(effect, (error) => {
    if (isSqlError(error)) return unusable(file, error)
    if (hasProperty(error, "_tag") && error._tag === "NoIndex") {
      return new DatabaseFileError({ reason: new NotAnIndex({ file }) })
    }
    return error as Exclude<E, SqlError | NoIndex>
  })

/**
 * What SQLite could not write, or not open, as it may only be read; `undefined` for another error.
 *
 * @since 0.1.0
 * @category combinators
 */
export const becauseReadOnly = (file: string, error: SqlError): DatabaseFileError | undefined =>
  WriteHindrance.isSuspected(error.reason.cause) ? readOnly(file) : undefined

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const folderName = ".strata"
const fileName = "strata.db"

const unusable = (file: string, error: SqlError): DatabaseFileError =>
  becauseReadOnly(file, error) ?? new DatabaseFileError({ reason: new Unusable({ file, detail: detailOf(error) }) })

const readOnly = (file: string): DatabaseFileError | undefined => {
  const what = WriteHindrance.find(file)
  return what === undefined ? undefined : new DatabaseFileError({ reason: new ReadOnly({ file, what }) })
}

/** Says in place of what the system says of a folder that it cannot be made where all is read-only. */
const creating =
  (file: string) =>
  <A, R>(effect: Effect.Effect<A, PlatformError, R>): Effect.Effect<A, PlatformError | DatabaseFileError, R> =>
    Effect.mapError(effect, (error) => readOnly(file) ?? error)

/** The words of SQLite itself say more than those around them. */
const detailOf = ({ message, reason: { cause } }: SqlError): string => {
  const words = (cause instanceof Error ? cause.message : message).split("\n", 1)[0]!
  const isCorrupt = hasProperty(cause, "errcode") && (Number(cause.errcode) & 0xff) === sqliteCorrupt
  return isCorrupt ? `${words}; delete it and index again, unless an app keeps its own data there` : words
}

/** A primary result code: https://www.sqlite.org/rescode.html */
const sqliteCorrupt = 11

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
