/**
 * The names of the queue: paths of content, the scopes that own them, and the followers that process them.
 *
 * All of them are non-empty, well-formed Unicode without NUL, so that a name is the same in JavaScript, in JSON, in
 * SQLite and in Postgres. They are compared by the bytes of their UTF-8 encoding, as databases compare them, which is
 * not the order of JavaScript's own `<`.
 *
 * @since 0.1.0
 */
import * as Order from "effect/Order"
import * as Schema from "effect/Schema"
import * as Text from "@strata/durable/Text"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

const Name = Schema.String.check(
  Schema.isNonEmpty(),
  Schema.makeFilter((text: string) => Text.isStorable(text) || "well-formed Unicode without NUL")
)

/**
 * A slash-separated key of content within a {@link Scope}. Slashes have no meaning of their own: any string prefix of a
 * path is a prefix to followers.
 *
 * @since 0.1.0
 * @category models
 */
export const Path = Name.pipe(Schema.brand("@strata/dirty-queue/Path"))

/**
 * @since 0.1.0
 * @category models
 */
export type Path = typeof Path.Type

/**
 * A tenant or space that owns paths.
 *
 * @since 0.1.0
 * @category models
 */
export const Scope = Name.pipe(Schema.brand("@strata/dirty-queue/Scope"))

/**
 * @since 0.1.0
 * @category models
 */
export type Scope = typeof Scope.Type

/**
 * The name of a consumer of changes that has dirty rows of its own.
 *
 * @since 0.1.0
 * @category models
 */
export const FollowerName = Name.pipe(Schema.brand("@strata/dirty-queue/FollowerName"))

/**
 * @since 0.1.0
 * @category models
 */
export type FollowerName = typeof FollowerName.Type

// ---------------------------------------------------------------------------------------------------------------------
// ordering
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The order of the UTF-8 bytes, which is that of the code points: `"\uFFFD"` comes before `"😀"`, where JavaScript's
 * comparison of UTF-16 units says the opposite.
 *
 * @since 0.1.0
 * @category ordering
 */
export const OrderBytes: Order.Order<string> = Order.make(Text.compareBytes)
