import type { CacheError } from "@strata/cache/CacheError"
import type { StepKey } from "@strata/cache/StepKey"
import type { CanonicalJsonError } from "@strata/durable/CanonicalJson"
import * as CanonicalJson from "@strata/durable/CanonicalJson"
import { type Digest, sha256 } from "@strata/durable/Digest"
import * as Event from "@strata/journal/Event"
import type { JournalError } from "@strata/journal/JournalError"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { SqlError } from "effect/sql/SqlError"
import type { ActionOptions } from "../Action.ts"
import { ActionError, type ActionErrorReason, CacheFailed, InputInvalid, SuccessInvalid } from "../ActionError.ts"
import type { Artifacts } from "../Artifacts.ts"
import * as StepKeys from "../StepKeys.ts"
import { issuePaths } from "./issuePaths.ts"
import { inputOf, keyOf, textOf } from "./stepKeys.ts"

/** A result as it is stored. */
export interface Encoded {
  readonly result: string
  readonly digest: Digest
}

/** An input with its key. */
export interface Keyed<I> {
  readonly key: StepKey
  /** What a body runs on: made of what the key is made of, so that what shares a result is the same input. */
  readonly input: Effect.Effect<I, ActionError>
}

/** What is made of an action's options once. */
export interface Definition<I, A, E, R> {
  readonly options: ActionOptions<I, A, E, R>
  readonly keyed: (input: I) => Effect.Effect<Keyed<I>, E | ActionError, Exclude<R, Artifacts>>
  readonly encode: (value: A) => Effect.Effect<Encoded, ActionError>
  readonly decode: (result: string) => Effect.Effect<A, Schema.SchemaError>
  /** The digest of an error without what is `Redacted`. Fails for what is no error of the Schema. */
  readonly digestOf: (error: unknown) => Effect.Effect<Digest, JournalError | CanonicalJsonError | Schema.SchemaError>
  readonly fail: (reason: ActionErrorReason) => ActionError
  readonly cacheFailed: (stage: CacheFailed["stage"]) => (cause: CacheError | SqlError | JournalError) => ActionError
}

export const make = <I, A, E, R>(options: ActionOptions<I, A, E, R>): Definition<I, A, E, R> => {
  const fail = (reason: ActionErrorReason) => new ActionError({ action: options.name, reason })
  return {
    options,
    fail,
    cacheFailed: (stage) => (cause) => fail(new CacheFailed({ stage, cause })),
    keyed: makeKeyed(options, fail),
    encode: makeEncode(options, fail),
    decode: Schema.decodeUnknownEffect(Schema.fromJsonString(Schema.toCodecJson(options.success))),
    digestOf: makeDigestOf(options.error)
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

type Fail = (reason: ActionErrorReason) => ActionError

const makeKeyed = <I, A, E, R>({ environment, input, name, version }: ActionOptions<I, A, E, R>, fail: Fail) => {
  const codec = Schema.toCodecJson(input)
  const encode = Schema.encodeEffect(codec)
  const decode = Schema.decodeUnknownEffect(codec)
  const invalid = (paths: ReadonlyArray<string>) => fail(new InputInvalid({ paths }))
  const atPaths = (error: Schema.SchemaError) => invalid(issuePaths(error))
  return Effect.fnUntraced(function* (value: I): Effect.fn.Return<Keyed<I>, E | ActionError, Exclude<R, Artifacts>> {
    const encoded = yield* Effect.mapError(encode(value), atPaths)
    const parts = { action: name, version, input: encoded, environment: yield* environment ?? Effect.undefined }
    const text = yield* Effect.mapError(textOf(parts, yield* StepKeys.Environment), () => invalid([]))
    return {
      key: keyOf(text, yield* StepKeys.Pepper),
      input: Effect.suspend(() => Effect.mapError(decode(inputOf(text)), atPaths))
    }
  })
}

const makeEncode = <I, A, E, R>({ success }: ActionOptions<I, A, E, R>, fail: Fail) => {
  const encode = Schema.encodeEffect(Schema.toCodecJson(success))
  const invalid = (paths: ReadonlyArray<string>) => fail(new SuccessInvalid({ paths }))
  return Effect.fnUntraced(function* (value: A): Effect.fn.Return<Encoded, ActionError> {
    const json = yield* Effect.mapError(encode(value), (error) => invalid(issuePaths(error)))
    const result = yield* Effect.mapError(CanonicalJson.encode(json), () => invalid([]))
    return { result, digest: sha256(result) }
  })
}

/** An event's encoding is the one that leaves out what is `Redacted`. */
const makeDigestOf = <E>(error: Schema.Codec<E, unknown> | undefined) => {
  if (error === undefined) return () => Effect.fail(new CanonicalJson.CanonicalJsonError({ reason: noEncoding }))
  const event = Event.make("error", error)
  const decode = Schema.decodeUnknownEffect(Schema.toType(error))
  return (value: unknown) =>
    Effect.flatMap(decode(value), (typed) => Effect.flatMap(event.make(typed).encode, CanonicalJson.digest))
}

const noEncoding = new CanonicalJson.NotJson({ path: [] })
