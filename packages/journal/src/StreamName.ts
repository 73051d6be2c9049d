/**
 * The names of streams. A stream is a sequence of entries of its own, such as that of one run.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import * as Text from "@strata/durable/Text"

/**
 * The name of a stream: non-empty, well-formed Unicode without NUL, so that it is the same in JavaScript, in JSON, in
 * SQLite and in Postgres.
 *
 * @since 0.1.0
 * @category models
 */
export const StreamName = Schema.String.check(
  Schema.isNonEmpty(),
  Schema.makeFilter((text: string) => Text.isStorable(text) || "well-formed Unicode without NUL")
).pipe(Schema.brand("@strata/journal/StreamName"))

/**
 * @since 0.1.0
 * @category models
 */
export type StreamName = typeof StreamName.Type
