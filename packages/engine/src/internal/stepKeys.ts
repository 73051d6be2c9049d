import { StepKey } from "@strata/cache/StepKey"
import * as CanonicalJson from "@strata/durable/CanonicalJson"
import { sha256 } from "@strata/durable/Digest"
import type * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as Schema from "effect/Schema"
import { createHmac } from "node:crypto"
import type { Parts } from "../StepKeys.ts"

/** What a key is the digest of. `environment` is the app's. */
export const textOf = (
  parts: Parts,
  environment: Schema.Json
): Effect.Effect<string, CanonicalJson.CanonicalJsonError> =>
  CanonicalJson.encode({
    action: parts.action,
    version: parts.version,
    input: parts.input,
    environment: [environment, parts.environment ?? null]
  })

/** The encoded input in it. */
export const inputOf = (text: string): unknown => JSON.parse(text).input

export const keyOf = (text: string, pepper: Redacted.Redacted | undefined): StepKey =>
  StepKey.make(pepper === undefined ? sha256(text) : hmac(pepper, text))

const hmac = (pepper: Redacted.Redacted, text: string): string =>
  createHmac("sha256", Redacted.value(pepper)).update(text).digest("hex")
