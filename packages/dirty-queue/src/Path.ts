/**
 * The names of the queue: paths of content, the scopes that own them, and the followers that process them.
 *
 * All of them are non-empty, well-formed Unicode without NUL, so that a name is the same in JavaScript, in JSON, in
 * SQLite and in Postgres. They are compared by the bytes of their UTF-8 encoding, as databases compare them, which is
 * not the order of JavaScript's own `<`.
 *
 * They are in the indexes of the stores, one of which holds less than 3,000 bytes of a row: names have limits, which are
 * those of all tiers, so that what one of them takes, every other one takes too. They are looked at where a name comes
 * in for good, since what is short within a prefix may be long without it.
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
// limits
// ---------------------------------------------------------------------------------------------------------------------

/**
 * How many bytes of UTF-8 a path has at most, prefixes included.
 *
 * @since 0.1.0
 * @category limits
 */
export const maxPathBytes = 2048

/**
 * How many bytes of UTF-8 a scope has at most, and a name of a follower.
 *
 * @since 0.1.0
 * @category limits
 */
export const maxNameBytes = 512

/**
 * Whether a path has more than {@link maxPathBytes}, so that it can be neither recorded nor enqueued.
 *
 * @since 0.1.0
 * @category limits
 */
export const isTooLong = (path: string): boolean => exceeds(path, maxPathBytes)

/**
 * A path, a scope or the name of a follower has more bytes than the queue takes.
 *
 * @since 0.1.0
 * @category errors
 */
export class NameTooLong extends Schema.TaggedError<NameTooLong>("@strata/dirty-queue/NameTooLong")("NameTooLong", {
  kind: Schema.Literals(["path", "scope", "follower"]),
  text: Schema.String,
  limit: Schema.Int
}) {
  override get message(): string {
    const start = Text.toStorable(this.text, 60)
    return `The ${this.kind} ${JSON.stringify(start)}… has more than ${this.limit} bytes`
  }
}

/**
 * Why a name is not taken, if it is not.
 *
 * @internal
 */
export const refusal = (kind: NameTooLong["kind"], text: string): NameTooLong | undefined => {
  const limit = kind === "path" ? maxPathBytes : maxNameBytes
  return exceeds(text, limit) ? new NameTooLong({ kind, text, limit }) : undefined
}

/** Encodes only what its length does not decide: a UTF-16 unit has one byte to three. */
const exceeds = (text: string, limit: number): boolean =>
  text.length > limit || (text.length * 3 > limit && new TextEncoder().encode(text).length > limit)

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
