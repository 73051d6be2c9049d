/**
 * How the key of a step is made: the digest of the canonical JSON of everything its result depends on. Machines that
 * agree on the parts agree on the key, and share the result.
 *
 * What is `Redacted` in an input is part of the key. A digest does not give it away, but whoever sees the key and can
 * guess everything else can try secrets until the digest is the same, which succeeds for a password or a PIN, though
 * not for a random token. With a {@link Pepper}, which is not stored anywhere, there is nothing to try.
 *
 * @since 0.1.0
 */
import type { StepKey } from "@strata/cache/StepKey"
import type * as CanonicalJson from "@strata/durable/CanonicalJson"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import type * as Schema from "effect/Schema"
import { keyOf, textOf } from "./internal/stepKeys.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * What a result depends on.
 *
 * @since 0.1.0
 * @category models
 */
export interface Parts {
  readonly action: string
  readonly version: string
  /** As its Schema encodes it. */
  readonly input: Schema.Json
  /** What the action itself adds, such as the version of a tool that it calls. */
  readonly environment?: Schema.Json | undefined
}

// ---------------------------------------------------------------------------------------------------------------------
// references
// ---------------------------------------------------------------------------------------------------------------------

/**
 * What the app adds to the key of every action, such as the platform. Default: nothing.
 *
 * @since 0.1.0
 * @category references
 */
export const Environment: Context.Reference<Schema.Json> = Context.Reference<Schema.Json>(
  "@strata/engine/StepKeys/Environment",
  {
    defaultValue: () => null
  }
)

/**
 * A secret of the app. With it keys are HMAC-SHA256 digests instead of plain ones, so that nobody without it can find
 * out by trying what was in an input. Only machines with the same pepper share results. Default: none.
 *
 * @since 0.1.0
 * @category references
 */
export const Pepper: Context.Reference<Redacted.Redacted | undefined> = Context.Reference<
  Redacted.Redacted | undefined
>("@strata/engine/StepKeys/Pepper", { defaultValue: () => undefined })

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The key of a step, with the {@link Environment} and the {@link Pepper} in context. Fails when one of the parts has no
 * canonical JSON.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = Effect.fnUntraced(function* (
  parts: Parts
): Effect.fn.Return<StepKey, CanonicalJson.CanonicalJsonError> {
  return keyOf(yield* textOf(parts, yield* Environment), yield* Pepper)
})
