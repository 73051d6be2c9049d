import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import type { Outcome } from "../../RunEvents.ts"

/*
 * Exits as JSON. Values and errors are encoded by their own Schemas before they come here; a value that is absent is
 * stored as `null`.
 */

const codec = (defect: Schema.Codec<unknown, unknown>) => {
  const schema = Schema.toCodecJson(Schema.Exit(Schema.Any, Schema.Any, defect))
  const encodeExit = Schema.encodeSync(schema)
  const decodeExit = Schema.decodeUnknownSync(schema)
  return {
    encode: (exit: Exit.Exit<unknown, unknown>): Schema.Json =>
      Exit.isSuccess(exit)
        ? { _tag: "Success", value: (exit.value ?? null) as Schema.Json }
        : (encodeExit(Exit.mapError(exit, (error) => error ?? null)) as Schema.Json),
    decode: (json: unknown): Exit.Exit<unknown, unknown> =>
      isSuccess(json) ? Exit.succeed(json.value) : decodeExit(json)
  }
}

const isSuccess = (json: unknown): json is { readonly value: unknown } =>
  typeof json === "object" && json !== null && "_tag" in json && json._tag === "Success"

const ofActivity = codec(Schema.Defect())

/** Defects are whatever was thrown. */
export const activity = {
  encode: (exit: Exit.Exit<unknown, unknown>): string => JSON.stringify(ofActivity.encode(exit)),
  decode: (text: string): Exit.Exit<unknown, unknown> => ofActivity.decode(JSON.parse(text))
}

/** Defects are JSON already. */
export const deferred = codec(Schema.Any)

export const outcome = (exit: Exit.Exit<unknown, unknown>): Outcome => {
  if (Exit.isSuccess(exit)) return "success"
  if (Cause.hasDies(exit.cause)) return "defect"
  return Cause.hasFails(exit.cause) ? "failure" : "interrupted"
}

export const cutOff = (exit: Exit.Exit<unknown, unknown>): boolean =>
  Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)

const causeCodec = Schema.toCodecJson(Schema.Cause(Schema.Never, Schema.Defect()))

const encodeCauseJson = Schema.encodeSync(causeCodec)

const decodeCauseJson = Schema.decodeUnknownEffect(causeCodec)

export const encodeCause = (cause: Cause.Cause<never>): string => JSON.stringify(encodeCauseJson(cause))

export const decodeCause = (text: string): Effect.Effect<Cause.Cause<never>, Schema.SchemaError> =>
  Effect.suspend(() => decodeCauseJson(JSON.parse(text)))
