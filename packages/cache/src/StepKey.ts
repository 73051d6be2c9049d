/**
 * The name of a step's result: the digest of everything the result depends on. Two machines that compute the same key
 * may share the result.
 *
 * @since 0.1.0
 */
import { Digest } from "@strata/durable/Digest"
import * as Schema from "effect/Schema"

/**
 * A SHA-256 digest as 64 lower-case hexadecimal digits.
 *
 * @since 0.1.0
 * @category models
 */
export const StepKey = Digest.pipe(Schema.brand("@strata/cache/StepKey"))

/**
 * @since 0.1.0
 * @category models
 */
export type StepKey = typeof StepKey.Type
