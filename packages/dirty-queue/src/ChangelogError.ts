/**
 * How recording changes fails, apart from the store itself, whose failures stay `SqlError`.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import { NameTooLong } from "./Path.ts"

/**
 * Changes that the changelog refused; none of them was recorded.
 *
 * @since 0.1.0
 * @category errors
 */
export class ChangelogError extends Schema.TaggedError<ChangelogError>("@strata/dirty-queue/ChangelogError")(
  "ChangelogError",
  { reason: Schema.Union([NameTooLong]) }
) {
  override get message(): string {
    return this.reason.message
  }
}
