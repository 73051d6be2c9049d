/**
 * Kinds of events, each with the Schema of its payload. They make events for `Journal.append`, and turn what is read
 * into typed entries. The journal itself does not know them: entries of unknown types are kept and passed over.
 *
 * A payload holds names and digests. Results, files and completions have rows or blobs of their own, to which the digest
 * in the journal is the link; the payload of an entry can neither grow with them nor leak them.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Entries from "./internal/entries.ts"
import * as RedactedCodec from "./internal/redactedCodec.ts"
import type { Entry } from "./Journal.ts"
import { EncodeFailed, JournalError } from "./JournalError.ts"
import { marker } from "./Redaction.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * An event that is ready to be appended. Its payload shows only when the journal encodes it.
 *
 * @since 0.1.0
 * @category models
 */
export interface NewEvent {
  readonly type: string
  /** Names the event within its stream, so that it is not appended twice. */
  readonly identity: string | undefined
  readonly encode: Effect.Effect<Schema.Json, JournalError>
}

/**
 * How an event is appended.
 *
 * @since 0.1.0
 * @category models
 */
export interface EventOptions {
  /** Names the event within its stream: any well-formed text without NUL. Default: none. */
  readonly identity?: string | undefined
}

/**
 * What every kind of events has.
 *
 * @since 0.1.0
 * @category models
 */
export interface Any {
  readonly type: string
  /** The typed payload of an entry of this type. */
  readonly decodePayload: (payload: Schema.Json) => Result.Result<unknown, Schema.SchemaError>
}

/**
 * A kind of events.
 *
 * @since 0.1.0
 * @category models
 */
export interface Event<Type extends string, in out A> extends Any {
  readonly type: Type
  readonly schema: Schema.Codec<A, unknown>
  readonly make: (payload: A, options?: EventOptions) => NewEvent
  readonly decodePayload: (payload: Schema.Json) => Result.Result<A, Schema.SchemaError>
}

/**
 * An entry with the typed payload of its kind.
 *
 * @since 0.1.0
 * @category models
 */
export type Typed<E extends Any> =
  E extends Event<infer Type, infer A>
    ? Omit<Entry, "type" | "payload"> & { readonly type: Type; readonly payload: A }
    : never

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A kind of events. Payloads are stored in the JSON form of the Schema, without what is `Redacted`: a decoded `Redacted`
 * has no content. Decoding must not be asynchronous. Types that begin with `~` are those of the journal itself.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = <const Type extends string, A>(type: Type, schema: Schema.Codec<A, unknown>): Event<Type, A> => {
  const codec = once(() => RedactedCodec.make(schema, marker))
  const encode = once(() => Schema.encodeEffect(codec()))
  const decode = once(() => Schema.decodeUnknownResult(codec()))
  return {
    type,
    schema,
    make: (payload, options) => ({
      type,
      identity: options?.identity,
      encode: Effect.suspend(() =>
        Effect.mapErrorEager(
          encode()(payload),
          (error) => new JournalError({ reason: new EncodeFailed({ type, detail: error.issue.toString() }) })
        )
      )
    }),
    decodePayload: (payload) => decode()(payload)
  }
}

/**
 * An event of which only the type is known.
 *
 * @since 0.1.0
 * @category constructors
 */
export const json = (type: string, payload: Schema.Json, options?: EventOptions): NewEvent => ({
  type,
  identity: options?.identity,
  encode: Effect.succeed(payload)
})

// ---------------------------------------------------------------------------------------------------------------------
// decoding
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Makes a function that gives an entry its typed payload. It gives `None` for an entry of another type, and fails with
 * `DecodeFailed`, which names stream and seq, for one of these types that its Schema refuses.
 *
 * @since 0.1.0
 * @category decoding
 */
export const decoder = <const Events extends ReadonlyArray<Any>>(
  events: Events
): ((entry: Entry) => Effect.Effect<Option.Option<Typed<Events[number]>>, JournalError>) => {
  const decode = decoderResult(events)
  return (entry) => Effect.suspend(() => Effect.fromResult(decode(entry)))
}

/**
 * As {@link decoder}, as a plain function.
 *
 * @since 0.1.0
 * @category decoding
 */
export const decoderResult = <const Events extends ReadonlyArray<Any>>(
  events: Events
): ((entry: Entry) => Result.Result<Option.Option<Typed<Events[number]>>, JournalError>) => {
  const byType = new Map(events.map((event) => [event.type, event]))
  return (entry) => {
    const event = byType.get(entry.type)
    if (event === undefined) return Result.succeed(Option.none())
    return Result.mapBoth(event.decodePayload(entry.payload), {
      onFailure: (error) => Entries.decodeFailed(entry, error),
      onSuccess: (payload) => Option.some({ ...entry, payload } as Typed<Events[number]>)
    })
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/** Schemas can refer to Schemas that are declared later, so they are compiled when they are first used. */
const once = <A>(make: () => A): (() => A) => {
  let made: { readonly value: A } | undefined
  return () => (made ??= { value: make() }).value
}
