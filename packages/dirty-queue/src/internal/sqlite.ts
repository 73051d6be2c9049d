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

/** Runs a batch in pieces that keep the JSON parameter of a statement small. */
export const inChunks = <A, B, E, R>(
  items: ReadonlyArray<A>,
  size: number,
  f: (chunk: ReadonlyArray<A>) => Effect.Effect<ReadonlyArray<B>, E, R>
): Effect.Effect<ReadonlyArray<B>, E, R> => {
  if (items.length <= size) return f(items)
  const chunks: Array<ReadonlyArray<A>> = []
  for (let start = 0; start < items.length; start += size) {
    chunks.push(items.slice(start, start + size))
  }
  return Effect.map(Effect.forEach(chunks, f), (results) => results.flat())
}

/*
 * Columns are declared NOT NULL and CHECKed in the schema that this package owns, so that reading them back is a matter
 * of naming their type.
 */

export const integer = (value: unknown): number => Number(value)

export const integerOrNull = (value: unknown): number | null => (value === null ? null : Number(value))

export const text = (value: unknown): string => String(value)

export const textOrNull = (value: unknown): string | null => (value === null ? null : String(value))

export const operation = (value: unknown): "put" | "delete" => (value === "delete" ? "delete" : "put")
