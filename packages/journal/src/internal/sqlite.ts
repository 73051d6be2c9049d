import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"

/** A row of a result, by position. */
export type Values = ReadonlyArray<unknown>

/** Runs a fixed statement, which the driver keeps prepared. Rows come as arrays, which no renaming touches. */
export type Run = (
  statement: string,
  parameters?: ReadonlyArray<unknown>
) => Effect.Effect<ReadonlyArray<Values>, SqlError>

export const run: Effect.Effect<Run, never, SqlClient.SqlClient> = Effect.map(
  SqlClient.SqlClient,
  (sql): Run =>
    (statement, parameters = []) =>
      sql.unsafe(statement, parameters).values
)

/*
 * Columns are declared NOT NULL and CHECKed in the schema that this package owns, so that reading them back is a matter
 * of naming their type.
 */

export const integer = (value: unknown): number => Number(value)

export const text = (value: unknown): string => String(value)

export const textOrNull = (value: unknown): string | null => (value === null ? null : String(value))
