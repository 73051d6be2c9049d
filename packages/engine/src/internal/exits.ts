import * as CanonicalJson from "@strata/durable/CanonicalJson"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"

/** What a clock completes its deferred with, as canonical JSON, in the form that the Schema of the deferred of a `DurableClock` has. */
export const voidExit: string = Result.getOrThrow(
  CanonicalJson.encodeResult(
    Schema.encodeSync(Schema.toCodecJson(Schema.Exit(Schema.Void, Schema.Never, Schema.Defect())))(Exit.void)
  )
)
