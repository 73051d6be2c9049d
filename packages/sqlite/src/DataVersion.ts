/**
 * Notices that another connection, in this process or another one, committed to
 * a SQLite file. Reading `PRAGMA data_version` takes about two microseconds and
 * no lock, so a process can afford to look many times a second.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { SqlError } from "effect/sql/SqlError"
import * as Connection from "./internal/connection.ts"

/**
 * Opens a connection of its own on `filename` and gives an effect that reads
 * the file's data version: a number that changes when any other connection has
 * committed since the last look. Its value means nothing beyond that.
 *
 * Source: https://www.sqlite.org/pragma.html#pragma_data_version
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = Effect.fnUntraced(function* (
  filename: string
): Effect.fn.Return<Effect.Effect<number, SqlError>, SqlError, Scope.Scope> {
  const connection = yield* Effect.acquireRelease(
    Connection.open({
      filename,
      readonly: true,
      prepareCacheSize: 1,
      pragmas: ["busy_timeout = 0"]
    }),
    (connection) => Effect.sync(connection.close)
  )
  return Effect.map(connection.executeValues("PRAGMA data_version", []), (rows) => Number(rows[0]?.[0]))
})
