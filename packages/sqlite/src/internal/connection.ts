import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type * as SqlConnection from "effect/sql/SqlConnection"
import { classifySqliteError, SqlError } from "effect/sql/SqlError"
import { backup, DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite"

type Rows = Effect.Success<ReturnType<SqlConnection.Connection["execute"]>>

/** One open `node:sqlite` database behind `effect/sql`'s connection interface. */
export interface SqliteConnection extends SqlConnection.Connection {
  /** What the `execute` methods do, at once: SQLite answers synchronously, and a caller that may run it saves the effect. */
  readonly unsafe: {
    readonly rows: (sql: string, params: ReadonlyArray<unknown>) => Exit.Exit<Rows, SqlError>
    readonly raw: (sql: string, params: ReadonlyArray<unknown>) => Exit.Exit<unknown, SqlError>
    readonly values: (
      sql: string,
      params: ReadonlyArray<unknown>
    ) => Exit.Exit<ReadonlyArray<ReadonlyArray<unknown>>, SqlError>
    /** Runs a statement that gives no rows, such as COMMIT, and gives the failure, if any. */
    readonly control: (sql: string) => Exit.Exit<never, SqlError> | undefined
  }
  readonly isTransaction: () => boolean
  readonly backup: (destination: string) => Effect.Effect<void, SqlError>
  readonly close: () => void
}

export const open = (options: {
  readonly filename: string
  readonly readonly: boolean
  readonly prepareCacheSize: number
  readonly pragmas: ReadonlyArray<string>
}): Effect.Effect<SqliteConnection, SqlError> =>
  attempt(
    "open",
    () => {
      const database = new DatabaseSync(options.filename, { readOnly: options.readonly })
      try {
        for (const pragma of options.pragmas) {
          database.exec(`PRAGMA ${pragma}`)
        }
        return make(database, options.prepareCacheSize)
      } catch (cause) {
        database.close()
        throw cause
      }
    },
    `open of ${options.filename}`
  )

const make = (database: DatabaseSync, cacheSize: number): SqliteConnection => {
  const objects = statementCache(cacheSize, (sql) => database.prepare(sql))
  const arrays = statementCache(cacheSize, (sql) => database.prepare(sql, { returnArrays: true }))

  const unsafe: SqliteConnection["unsafe"] = {
    rows: (sql, params) => {
      try {
        return Exit.succeed(all(objects(sql), params))
      } catch (cause) {
        return Exit.fail(sqlError("execute", cause))
      }
    },
    raw: (sql, params) => {
      try {
        return Exit.succeed(raw(objects(sql), params))
      } catch (cause) {
        return Exit.fail(sqlError("executeRaw", cause))
      }
    },
    values: (sql, params) => {
      try {
        return Exit.succeed(allArrays(arrays(sql), params))
      } catch (cause) {
        return Exit.fail(sqlError("executeValues", cause))
      }
    },
    control: (sql) => {
      try {
        // `run` would make an object of what it counts.
        objects(sql).get()
        return undefined
      } catch (cause) {
        return Exit.fail(sqlError("execute", cause))
      }
    }
  }

  return {
    unsafe,
    execute: (sql, params, transformRows) =>
      Effect.suspend(() => {
        const exit = unsafe.rows(sql, params)
        return transformRows === undefined ? exit : Exit.map(exit, transformRows)
      }),
    executeRaw: (sql, params) => Effect.suspend(() => unsafe.raw(sql, params)),
    executeValues: (sql, params) => Effect.suspend(() => unsafe.values(sql, params)),
    executeValuesUnprepared: (sql, params) =>
      attempt("executeValues", () => allArrays(database.prepare(sql, { returnArrays: true }), params)),
    executeUnprepared: (sql, params, transformRows) =>
      Effect.map(
        attempt("execute", () => all(database.prepare(sql), params)),
        (rows) => (transformRows === undefined ? rows : transformRows(rows))
      ),
    executeStream: (sql, params, transformRows) =>
      // Not from the cache: a statement that is being stepped through must not be reset by another use of it.
      Stream.unwrap(
        Effect.map(
          attempt("executeStream", () => database.prepare(sql).iterate(...bind(params))),
          (rows) => streamRows(rows, transformRows)
        )
      ),
    isTransaction: () => database.isTransaction,
    backup: (destination) =>
      Effect.asVoid(
        Effect.tryPromise({
          try: () => backup(database, destination, { rate: everyPage }),
          catch: (cause) => sqlError("backup", cause)
        })
      ),
    close: () => database.close()
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/** More pages than a database can have, so that a backup is one step. */
const everyPage = 2 ** 31 - 1

const streamChunkRows = 256

const streamRows = (
  rows: Iterator<object>,
  transformRows: (<A extends object>(row: ReadonlyArray<A>) => ReadonlyArray<A>) | undefined
): Stream.Stream<object, SqlError> =>
  Stream.paginate<void, object, SqlError>(undefined, () =>
    attempt("executeStream", () => {
      const chunk: Array<object> = []
      while (chunk.length < streamChunkRows) {
        const next = rows.next()
        if (next.done === true) {
          return [transformRows === undefined ? chunk : transformRows(chunk), Option.none<void>()] as const
        }
        chunk.push(next.value)
      }
      return [transformRows === undefined ? chunk : transformRows(chunk), Option.some<void>(undefined)] as const
    })
  )

const statementCache = (size: number, prepare: (sql: string) => StatementSync) => {
  const statements = new Map<string, StatementSync>()
  return (sql: string): StatementSync => {
    const cached = statements.get(sql)
    if (cached !== undefined) {
      return cached
    }
    const statement = prepare(sql)
    statements.set(sql, statement)
    if (statements.size > size) {
      // A map iterates in insertion order, so the first key is the oldest.
      statements.delete(statements.keys().next().value!)
    }
    return statement
  }
}

const all = (statement: StatementSync, params: ReadonlyArray<unknown>): Array<Record<string, unknown>> =>
  statement.all(...bind(params))

/** A statement prepared with `returnArrays` gives rows as arrays, which its type does not say. */
const allArrays = (statement: StatementSync, params: ReadonlyArray<unknown>): ReadonlyArray<ReadonlyArray<unknown>> =>
  all(statement, params) as ReadonlyArray<unknown> as ReadonlyArray<ReadonlyArray<unknown>>

const raw = (statement: StatementSync, params: ReadonlyArray<unknown>): unknown =>
  statement.columns().length === 0 ? statement.run(...bind(params)) : all(statement, params)

const bind = (params: ReadonlyArray<unknown>): ReadonlyArray<SQLInputValue> => {
  for (let i = 0; i < params.length; i++) {
    if (!isInput(params[i])) {
      return params.map(toInput)
    }
  }
  return params as ReadonlyArray<SQLInputValue>
}

const isInput = (value: unknown): value is SQLInputValue =>
  value === null ||
  typeof value === "string" ||
  typeof value === "number" ||
  typeof value === "bigint" ||
  ArrayBuffer.isView(value)

/** What SQLite has no type for: booleans are 0 and 1, dates milliseconds, `undefined` is NULL. */
const toInput = (value: unknown): SQLInputValue => {
  if (isInput(value)) return value
  if (value === undefined) return null
  if (typeof value === "boolean") return value ? 1 : 0
  if (value instanceof Date) return value.getTime()
  throw new TypeError(`SQLite has no type for a parameter of type ${typeof value}`)
}

const attempt = <A>(operation: string, evaluate: () => A, what = operation): Effect.Effect<A, SqlError> =>
  Effect.try({ try: evaluate, catch: (cause) => sqlError(operation, cause, what) })

const sqlError = (operation: string, cause: unknown, what = operation): SqlError => {
  if (cause instanceof Error && "errcode" in cause && !("errno" in cause)) {
    // `classifySqliteError` reads the extended result code from `errno`.
    Object.assign(cause, { errno: cause.errcode })
  }
  const message = `SQLite: ${what} failed${cause instanceof Error ? `: ${cause.message}` : ""}`
  return new SqlError({ reason: classifySqliteError(cause, { message, operation }) })
}
