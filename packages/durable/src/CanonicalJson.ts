/**
 * JSON with one spelling. The canonical text of a value does not depend on the order of its keys or on who wrote it, so
 * that its digest names the value. Encoding follows the JSON Canonicalization Scheme, RFC 8785: no white space, keys
 * ordered by their UTF-16 units, numbers as ECMAScript prints them.
 *
 * Source: https://www.rfc-editor.org/rfc/rfc8785
 *
 * @since 0.1.0
 */
import canonicalize from "canonicalize"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Digest } from "./Digest.ts"
import { sha256 } from "./Digest.ts"

// ---------------------------------------------------------------------------------------------------------------------
// errors
// ---------------------------------------------------------------------------------------------------------------------

const at = { path: Schema.Array(Schema.Union([Schema.String, Schema.Int])) }

/**
 * A number that JSON has no spelling for: NaN or an infinity.
 *
 * @since 0.1.0
 * @category reasons
 */
export class NonFiniteNumber extends Schema.TaggedError<NonFiniteNumber>(
  "@strata/durable/CanonicalJsonError/NonFiniteNumber"
)("NonFiniteNumber", at) {
  override get message(): string {
    return `The number at ${pointer(this.path)} is not finite`
  }
}

/**
 * A text, or the name of a key, with half of a surrogate pair: it has no UTF-8 encoding. The path ends with the key.
 *
 * @since 0.1.0
 * @category reasons
 */
export class LoneSurrogate extends Schema.TaggedError<LoneSurrogate>(
  "@strata/durable/CanonicalJsonError/LoneSurrogate"
)("LoneSurrogate", at) {
  override get message(): string {
    return `The text at ${pointer(this.path)} has a lone surrogate`
  }
}

/**
 * Something that is no JSON value: a bigint, or an object that contains itself.
 *
 * @since 0.1.0
 * @category reasons
 */
export class NotJson extends Schema.TaggedError<NotJson>("@strata/durable/CanonicalJsonError/NotJson")("NotJson", at) {
  override get message(): string {
    return `What is at ${pointer(this.path)} is no JSON value`
  }
}

/**
 * A value that has no canonical JSON. Neither the error nor its message holds any part of the value but keys.
 *
 * @since 0.1.0
 * @category errors
 */
export class CanonicalJsonError extends Schema.TaggedError<CanonicalJsonError>("@strata/durable/CanonicalJsonError")(
  "CanonicalJsonError",
  { reason: Schema.Union([NonFiniteNumber, LoneSurrogate, NotJson]) }
) {
  override get message(): string {
    return this.reason.message
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// encoding
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The canonical text of a value. Keys whose value is `undefined` are left out, as by `JSON.stringify`.
 *
 * @since 0.1.0
 * @category encoding
 */
export const encodeResult = (value: Schema.Json): Result.Result<string, CanonicalJsonError> =>
  Result.try({
    try: () => canonicalize(value),
    // Looking for the reason costs a second walk, which only what fails has to pay.
    catch: () => new CanonicalJsonError({ reason: findReason(value) })
  }).pipe(
    Result.flatMap((text) =>
      text === undefined
        ? Result.fail(new CanonicalJsonError({ reason: new NotJson({ path: [] }) }))
        : Result.succeed(text)
    )
  )

/**
 * As {@link encodeResult}, as an effect.
 *
 * @since 0.1.0
 * @category encoding
 */
export const encode = (value: Schema.Json): Effect.Effect<string, CanonicalJsonError> =>
  Effect.suspend(() => Effect.fromResult(encodeResult(value)))

/**
 * The canonical text of a value in UTF-8.
 *
 * @since 0.1.0
 * @category encoding
 */
export const encodeBytes = (value: Schema.Json): Effect.Effect<Uint8Array, CanonicalJsonError> =>
  Effect.map(encode(value), (text) => new TextEncoder().encode(text))

/**
 * The SHA-256 digest of the canonical text: equal for values that differ in nothing but the order of their keys.
 *
 * @since 0.1.0
 * @category encoding
 */
export const digest = (value: Schema.Json): Effect.Effect<Digest, CanonicalJsonError> =>
  Effect.map(encode(value), sha256)

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

type Path = ReadonlyArray<string | number>

/** The first part of a refused value, by depth, that is no JSON. */
const findReason = (root: unknown): CanonicalJsonError["reason"] => {
  const seen = new Set<unknown>()
  let level: ReadonlyArray<{ readonly value: unknown; readonly path: Path }> = [{ value: root, path: [] }]
  while (level.length > 0) {
    for (const { path, value } of level) {
      if (typeof value === "number" && !Number.isFinite(value)) return new NonFiniteNumber({ path })
      if (typeof value === "string" && !value.isWellFormed()) return new LoneSurrogate({ path })
      if (typeof value === "bigint") return new NotJson({ path })
    }
    const next: Array<{ readonly value: unknown; readonly path: Path }> = []
    for (const { path, value } of level) {
      if (typeof value !== "object" || value === null || seen.has(value)) continue
      seen.add(value)
      for (const [key, member] of members(value)) {
        if (typeof key === "string" && !key.isWellFormed()) return new LoneSurrogate({ path: [...path, key] })
        next.push({ value: member, path: [...path, key] })
      }
    }
    level = next
  }
  return new NotJson({ path: [] })
}

const members = (value: object): ReadonlyArray<readonly [key: string | number, member: unknown]> =>
  Array.isArray(value) ? value.map((member, index) => [index, member] as const) : Object.entries(value)

/** A JSON pointer, RFC 6901. */
const pointer = (path: Path): string =>
  path.length === 0
    ? "the root"
    : path
        .map((key) => `/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`)
        .join("")
        .toWellFormed()
