/**
 * Fixed statements and their rows, for backends that own their tables: statements whose text never changes stay prepared
 * in the driver, and rows are read by position. It is a seam below `SqlSchema`: the schema of a table, with its `CHECK`s,
 * is what makes reading a column back a matter of naming its type.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A row of a result, by position.
 *
 * @since 0.1.0
 * @category models
 */
export type Values = ReadonlyArray<unknown>

/**
 * Runs a statement with its parameters, by position.
 *
 * @since 0.1.0
 * @category models
 */
export type Run = (
  statement: string,
  parameters?: ReadonlyArray<unknown>
) => Effect.Effect<ReadonlyArray<Values>, SqlError>

// ---------------------------------------------------------------------------------------------------------------------
// running
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A runner over the `SqlClient` in context. Rows come as arrays, which no renaming of columns touches.
 *
 * @since 0.1.0
 * @category running
 */
export const run: Effect.Effect<Run, never, SqlClient.SqlClient> = Effect.map(
  SqlClient.SqlClient,
  (sql): Run =>
    (statement, parameters = []) =>
      sql.unsafe(statement, parameters).values
)

/**
 * Runs a batch in pieces that keep the JSON parameter of a statement small, and joins what they give.
 *
 * @since 0.1.0
 * @category running
 */
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

// ---------------------------------------------------------------------------------------------------------------------
// columns
// ---------------------------------------------------------------------------------------------------------------------

/**
 * @since 0.1.0
 * @category columns
 */
export const integer = (value: unknown): number => Number(value)

/**
 * @since 0.1.0
 * @category columns
 */
export const integerOrNull = (value: unknown): number | null => (value === null ? null : Number(value))

/**
 * @since 0.1.0
 * @category columns
 */
export const text = (value: unknown): string => String(value)

/**
 * @since 0.1.0
 * @category columns
 */
export const textOrNull = (value: unknown): string | null => (value === null ? null : String(value))
