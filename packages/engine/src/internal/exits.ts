import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"

/** What a clock completes its deferred with, as the Schema of the deferred of a `DurableClock` encodes it. */
export const voidExit: Schema.Json = Schema.encodeSync(
  Schema.toCodecJson(Schema.Exit(Schema.Void, Schema.Never, Schema.Defect()))
)(Exit.void)
