/**
 * Where the index is kept: a SQLite file, see `DatabaseFile`, or a Postgres, as `--database` or else `STRATA_DATABASE`
 * says.
 *
 * @since 0.1.0
 */
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import type * as Path from "effect/Path"
import type { PlatformError } from "effect/PlatformError"
import { hasProperty } from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import type { SqlError } from "effect/sql/SqlError"
import { isSqlError } from "effect/sql/SqlError"
import type { NoIndex } from "@strata/search/Search"
import * as DatabaseFile from "./DatabaseFile.ts"
import * as PostgresUrl from "./internal/postgresUrl.ts"
import { sqlDetail } from "./internal/sqlDetail.ts"
import type { Output } from "./Output.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A database. `name` is what people are shown: the absolute path of a file, or an address without credentials.
 *
 * @since 0.1.0
 * @category models
 */
export type Database =
  | { readonly _tag: "File"; readonly name: string }
  | {
      readonly _tag: "Postgres"
      readonly name: string
      readonly url: Redacted.Redacted
      /** The one that the URL names. */
      readonly schema: string | undefined
    }

// ---------------------------------------------------------------------------------------------------------------------
// errors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * What was given names no database. It is not repeated, since it may hold a password.
 *
 * @since 0.1.0
 * @category errors
 */
export class DatabaseInvalid extends Schema.TaggedError<DatabaseInvalid>("@strata/cli/DatabaseInvalid")(
  "DatabaseInvalid",
  { from: Schema.Literals(["--database", "STRATA_DATABASE"]), detail: Schema.String }
) {
  override get message(): string {
    return `${this.from}: ${this.detail}`
  }
}

/**
 * Why a database cannot be found.
 *
 * @since 0.1.0
 * @category errors
 */
export type DatabaseError = DatabaseInvalid | DatabaseFile.DatabaseFileError | Config.ConfigError | PlatformError

// ---------------------------------------------------------------------------------------------------------------------
// accessors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The database of an index that exists. Whether a Postgres has one is found out by whoever opens it.
 *
 * @since 0.1.0
 * @category accessors
 */
export const existing = Effect.fnUntraced(function* (
  flag: Option.Option<string>
): Effect.fn.Return<Database, DatabaseError, FileSystem.FileSystem | Path.Path> {
  const given = yield* read(flag)
  if (given._tag === "Postgres") return given
  return { _tag: "File", name: yield* DatabaseFile.existing(given.file) }
})

/**
 * The database of the index that exists or, where there is none, of one to be created.
 *
 * @since 0.1.0
 * @category accessors
 */
export const existingOrNew = Effect.fnUntraced(function* (
  flag: Option.Option<string>
): Effect.fn.Return<Database, DatabaseError, FileSystem.FileSystem | Path.Path> {
  const given = yield* read(flag)
  if (given._tag === "Postgres") return given
  return { _tag: "File", name: yield* DatabaseFile.existingOrNew(given.file) }
})

/**
 * Tells people which index is used when it is a file that they may have forgotten.
 *
 * @since 0.1.0
 * @category accessors
 */
export const tellElsewhere = (
  flag: Option.Option<string>,
  { _tag, name }: Database,
  what: "index" | "database" = "index"
): Effect.Effect<void, never, Output | Path.Path> =>
  _tag === "File" ? DatabaseFile.tellElsewhere(flag, name, what) : Effect.void

// ---------------------------------------------------------------------------------------------------------------------
// combinators
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Names the database in what it, or the lack of an index, made fail.
 *
 * @since 0.1.0
 * @category combinators
 */
export const naming = <A, E, R>(
  { _tag, name }: Database,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, Exclude<E, SqlError | NoIndex> | DatabaseFile.DatabaseFileError, R> =>
  _tag === "File"
    ? DatabaseFile.naming(name, effect)
    : Effect.mapError(effect, (error) => {
        if (isSqlError(error)) return unusable(name, error)
        return hasProperty(error, "_tag") && error._tag === "NoIndex"
          ? new DatabaseFile.DatabaseFileError({ reason: new DatabaseFile.NotAnIndex({ file: name }) })
          : (error as Exclude<E, SqlError | NoIndex>)
      })

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

type Given = { readonly _tag: "File"; readonly file: Option.Option<string> } | Extract<Database, { _tag: "Postgres" }>

const read = Effect.fnUntraced(function* (
  flag: Option.Option<string>
): Effect.fn.Return<Given, DatabaseInvalid | Config.ConfigError, FileSystem.FileSystem> {
  const from = Option.isSome(flag) ? "--database" : "STRATA_DATABASE"
  const named = Option.isSome(flag) ? flag : yield* Config.option(Config.NonEmptyString("STRATA_DATABASE"))
  if (Option.isNone(named)) return { _tag: "File", file: named }
  const invalid = (detail: string) => new DatabaseInvalid({ from, detail })
  if (named.value === "") return yield* invalid("the name of a file, or a URL, is wanted")
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(named.value)?.[1]?.toLowerCase()
  if (scheme === undefined) {
    const kind = yield* otherThanFile(named.value)
    return kind === undefined
      ? { _tag: "File", file: named }
      : yield* invalid(`${named.value} is a ${kind}, not a file`)
  }
  if (scheme !== "postgres" && scheme !== "postgresql") {
    return yield* invalid("a file, or a URL that begins with postgres://, is wanted")
  }
  const client = yield* Effect.promise(() => import("@strata/strata/PostgresClient"))
  const wrong = PostgresUrl.wrongParameter(named.value, ["schema"])
  if (wrong !== undefined) return yield* invalid(wrong)
  const text = PostgresUrl.withUser(named.value)
  if (text === undefined) return yield* invalid("the URL names no user")
  const url = Redacted.make(text)
  const { name, schema } = yield* Effect.mapError(client.parse(url), ({ reason }) =>
    invalid(reason._tag === "AddressInvalid" ? reason.detail : reason.message)
  )
  return { _tag: "Postgres", name, url, schema }
})

/** To open a pipe would wait for its writer, deaf to signals. What cannot be looked at is told of by whoever opens it. */
const otherThanFile = (path: string): Effect.Effect<string | undefined, never, FileSystem.FileSystem> =>
  FileSystem.FileSystem.use((fs) =>
    fs.stat(path).pipe(
      Effect.map(({ type }) => (type === "File" ? undefined : kindNames[type])),
      Effect.orElseSucceed(() => undefined)
    )
  )

const kindNames: Readonly<Record<Exclude<FileSystem.File.Type, "File">, string>> = {
  Directory: "directory",
  FIFO: "pipe",
  Socket: "socket",
  BlockDevice: "device",
  CharacterDevice: "device",
  SymbolicLink: "link",
  Unknown: "thing of an unknown kind"
}

const unusable = (file: string, error: SqlError) =>
  new DatabaseFile.DatabaseFileError({ reason: new DatabaseFile.Unusable({ file, detail: sqlDetail(error) }) })
