/**
 * SHA-256 digests of content, the name of everything that is addressed by what
 * it is.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import { hash } from "node:crypto"

/**
 * A SHA-256 digest as 64 lower-case hexadecimal digits.
 *
 * @since 0.1.0
 * @category models
 */
export const Digest = Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/)).pipe(
  Schema.brand("@strata/durable/Digest")
)

/**
 * @since 0.1.0
 * @category models
 */
export type Digest = typeof Digest.Type

/**
 * The digest of bytes, or of the UTF-8 encoding of a string.
 *
 * @since 0.1.0
 * @category constructors
 */
export const sha256 = (content: Uint8Array | string): Digest =>
  // Hexadecimal SHA-256 needs no check, which would cost as much as the digest of a short text.
  hash("sha256", content, "hex") as Digest
