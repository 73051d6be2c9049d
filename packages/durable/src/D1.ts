/**
 * Cloudflare D1 for backends that own their tables. A D1 has no transaction that stays open between two calls, and so
 * there is no `DurableWriter` for it: what has to happen as a whole is one statement, or one batch of statements whose
 * texts and parameters are known beforehand. {@link make} runs both, and tells the errors of SQLite apart, which the
 * client reports alike; {@link migrate} brings tables to their newest version by batches.
 *
 * Asks for `@effect/sql-d1`, which is an optional peer of this package.
 *
 * @since 0.1.0
 */
import * as D1Client from "@effect/sql-d1/D1Client"
import * as Effect from "effect/Effect"
import type * as Migrator from "effect/sql/Migrator"
import * as Result from "effect/Result"
import * as SqlClient from "effect/sql/SqlClient"
import type { Row } from "effect/sql/SqlConnection"
import { classifySqliteError, SqlError } from "effect/sql/SqlError"
import type { Statement } from "effect/sql/Statement"
import * as Ledger from "./internal/ledger.ts"
import type { MigrationSet } from "./Migrations.ts"
import type * as Rows from "./Rows.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * What a D1 can do.
 *
 * @since 0.1.0
 * @category models
 */
export interface D1 {
  /** Runs one statement. Rows come by position. */
  readonly run: Rows.Run
  /** A statement for a batch, with at most 100 parameters. */
  readonly prepare: (statement: string, parameters?: ReadonlyArray<unknown>) => Statement<Row>
  /**
   * Runs statements one after the other, with nothing of others in between, and commits all of them, or nothing when one
   * fails. Gives the rows of each, see {@link values}.
   */
  readonly batch: (
    statements: ReadonlyArray<Statement<Row>>
  ) => Effect.Effect<ReadonlyArray<ReadonlyArray<Row>>, SqlError>
}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Statements and batches over the client in context.
 *
 * Errors have the `reason` that the same failure has on SQLite, by the result code that D1 gives with it; what has none,
 * as a D1 that is overloaded, stays an `UnknownError`.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make: Effect.Effect<D1, never, D1Client.D1Client> = Effect.map(D1Client.D1Client, (client) => {
  const sql = client.withoutTransforms()
  return {
    run: (statement, parameters = []) => Effect.mapError(sql.unsafe(statement, parameters).values, classify),
    prepare: (statement, parameters = []) => sql.unsafe<Row>(statement, parameters),
    batch: (statements) => Effect.mapError(client.batch(statements), classify)
  }
})

/**
 * Applies what is missing of a package's migrations, in the ledger that `Migrations.run` keeps: each migration with its
 * row of the ledger in one batch, all of it or nothing. Processes that start together race for that row; those that come
 * second find the work done. Costs two reads when there is nothing to do. Fails with `BadState` on a database that a
 * newer version has migrated.
 *
 * @since 0.1.0
 * @category constructors
 */
export const migrate = Effect.fn("D1.migrate")(function* (
  set: MigrationSet
): Effect.fn.Return<void, SqlError | Migrator.MigrationError, D1Client.D1Client> {
  const client = yield* D1Client.D1Client
  const d1 = yield* make
  const look = Effect.provideService(Ledger.look(set), SqlClient.SqlClient, client.withoutTransforms())
  let { behind, found } = yield* look
  while (behind) {
    const applied = yield* Effect.result(d1.batch(migrationAfter(d1, set, found)))
    const before = found
    ;({ behind, found } = yield* look)
    // Another process may have been first, which is as good.
    if (Result.isFailure(applied) && found === before) return yield* applied.failure
  }
})

// ---------------------------------------------------------------------------------------------------------------------
// rows
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Rows of a batch by position. Their columns need names of their own, since a batch gives rows by name.
 *
 * @since 0.1.0
 * @category rows
 */
export const values = (rows: ReadonlyArray<Row> = []): ReadonlyArray<Rows.Values> => rows.map(Object.values)

/**
 * Cuts a list into pieces that fit into one JSON parameter each: of at most `most` items, and of about a megabyte, where
 * D1 takes two at most. An item that is larger by itself is a piece of its own.
 *
 * @since 0.1.0
 * @category rows
 */
export const pieces = (items: ReadonlyArray<unknown>, most: number): ReadonlyArray<string> => {
  const cut: Array<string> = []
  let piece: Array<string> = []
  let bytes = 0
  for (const item of items) {
    const json = JSON.stringify(item)
    // Three bytes are the most that a UTF-16 unit becomes.
    const size = json.length * 3 + 1
    if (piece.length === most || (piece.length > 0 && bytes + size > largestPiece)) {
      cut.push(`[${piece.join(",")}]`)
      piece = []
      bytes = 0
    }
    piece.push(json)
    bytes += size
  }
  return piece.length === 0 ? cut : [...cut, `[${piece.join(",")}]`]
}

const largestPiece = 1_000_000

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/** The oldest migration that is newer than `found`, with its row of the ledger, whose key only one process can take. */
const migrationAfter = (d1: D1, set: MigrationSet, found: number): ReadonlyArray<Statement<Row>> => {
  const table = Ledger.tableOf(set)
  const [next] = Object.entries(set.migrations)
    .map(([key, statements]) => ({ id: Number.parseInt(key, 10), name: key.slice(key.indexOf("_") + 1), statements }))
    .filter(({ id }) => id > found)
    .toSorted((a, b) => a.id - b.id)
  if (next === undefined) return []
  return [
    d1.prepare(`CREATE TABLE IF NOT EXISTS ${table} (
      migration_id integer PRIMARY KEY NOT NULL,
      created_at datetime NOT NULL DEFAULT current_timestamp,
      name VARCHAR(255) NOT NULL
    )`),
    d1.prepare(`INSERT INTO ${table} (migration_id, name) VALUES (?1, ?2)`, [next.id, next.name]),
    ...next.statements.map((statement) => d1.prepare(statement))
  ]
}

/**
 * D1 has no field for the result code of SQLite: it ends the message, as in
 * `…: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_UNIQUE)`, behind whatever text the failure has.
 *
 * Source of the codes: https://www.sqlite.org/rescode.html
 */
const resultCode = /^(?:D1_ERROR: )?([^]*?): (SQLITE_[A-Z_]+)(?: \(extended: (SQLITE_[A-Z_]+)\))?$/

const classify = (error: SqlError): SqlError => {
  const { reason } = error
  if (reason._tag !== "UnknownError" || !(reason.cause instanceof Error)) return error
  const found = resultCode.exec(reason.cause.message)
  if (found === null) return error
  const [, text, primary, extended] = found
  const cause = Object.assign(new Error(text, { cause: reason.cause }), { code: extended ?? primary })
  return new SqlError({
    reason: classifySqliteError(cause, { message: `D1: ${text}`, operation: reason.operation ?? "execute" })
  })
}
