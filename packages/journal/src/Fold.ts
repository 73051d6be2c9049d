/**
 * What entries add up to. A fold says which events it looks at, what state it starts from, and how an event changes the
 * state; entries of other types are passed over. It is of one stream, or over all of them.
 *
 * A fold begins with the state that the checkpoint at the floor holds for it, so that compaction does not change what it
 * gives. Where there is no such state it fails with `CheckpointMissing`, rather than fold what is left as if it were
 * everything. It reads a page at a time, so memory is bounded by the state.
 *
 * @since 0.1.0
 */
import * as CanonicalJson from "@strata/durable/CanonicalJson"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { SqlError } from "effect/sql/SqlError"
import type * as Event from "./Event.ts"
import * as Entries from "./internal/entries.ts"
import * as Folding from "./internal/folding.ts"
import type { Entry } from "./Journal.ts"
import { JournalError, StateFailed } from "./JournalError.ts"
import type { Cursor } from "./JournalStorage.ts"
import { JournalStorage } from "./JournalStorage.ts"
import type { StreamName } from "./StreamName.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A fold on its way through the entries.
 *
 * @since 0.1.0
 * @category models
 */
export interface Accumulator<out State> {
  readonly state: () => State
  /** Takes an entry in; gives the error of one that does not decode. */
  readonly apply: (entry: Entry) => JournalError | undefined
  /** The state as canonical JSON text. */
  readonly encode: () => Result.Result<string, JournalError>
}

/**
 * What every fold has.
 *
 * @since 0.1.0
 * @category models
 */
export interface Any {
  /** The name of its states in checkpoints. Another key for another meaning of the state. */
  readonly key: string
  readonly scope: "stream" | "global"
  readonly events: ReadonlyArray<Event.Any>
  /** Starts with a state from a checkpoint, or with the initial one. */
  readonly begin: (state: Schema.Json | undefined) => Result.Result<Accumulator<unknown>, JournalError>
}

/**
 * A fold.
 *
 * @since 0.1.0
 * @category models
 */
export interface Fold<in out State, out Scope extends Any["scope"] = Any["scope"]> extends Any {
  readonly scope: Scope
  readonly state: Schema.Codec<State, unknown>
  readonly begin: (state: Schema.Json | undefined) => Result.Result<Accumulator<State>, JournalError>
  /** A state as canonical JSON text. */
  readonly encode: (state: State) => Result.Result<string, JournalError>
}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A fold. Every run has a state of its own from `initial`, which `reduce` may change in place and give back. The same
 * entries must always give the same state.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = <State, const Events extends ReadonlyArray<Event.Any>, const Scope extends Any["scope"]>(options: {
  readonly key: string
  readonly scope: Scope
  readonly events: Events
  /** The Schema of the state, for checkpoints. Decoding and encoding must not be asynchronous. */
  readonly state: Schema.Codec<State, unknown>
  readonly initial: () => State
  readonly reduce: (state: State, event: Event.Typed<Events[number]>) => State
}): Fold<State, Scope> => {
  const { events, initial, key, reduce, scope } = options
  const codec = Schema.toCodecJson(options.state)
  const decodeState = Schema.decodeUnknownResult(codec)
  const encodeState = Schema.encodeResult(codec)
  const byType = new Map(events.map((event) => [event.type, event]))

  const encode = (state: State) =>
    Result.flatMap(
      Result.mapError(encodeState(state), (error) => stateFailed(key, error.issue.toString())),
      (json) => Result.mapError(CanonicalJson.encodeResult(json), (error) => stateFailed(key, error.message))
    )

  const accumulate = (from: State): Accumulator<State> => {
    let state = from
    return {
      state: () => state,
      encode: () => encode(state),
      apply: (entry) => {
        const event = byType.get(entry.type)
        if (event === undefined) return undefined
        const payload = event.decodePayload(entry.payload)
        if (Result.isFailure(payload)) return Entries.decodeFailed(entry, payload.failure)
        state = reduce(state, { ...entry, payload: payload.success } as Event.Typed<Events[number]>)
        return undefined
      }
    }
  }

  return {
    key,
    scope,
    events,
    state: options.state,
    encode,
    begin: (state) =>
      state === undefined
        ? Result.succeed(accumulate(initial()))
        : Result.mapBoth(decodeState(state), {
            onFailure: (error) => stateFailed(key, error.issue.toString()),
            onSuccess: accumulate
          })
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// running
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Folds a stream up to and with the seq `upTo` (default: to its end), and gives the state with the seq to which it was
 * folded. What it gives is of one moment: when entries are rewound meanwhile, it starts again.
 *
 * @since 0.1.0
 * @category running
 */
export const run = Effect.fn("Fold.run")(function* <State>(
  fold: Fold<State, "stream">,
  options: { readonly stream: StreamName; readonly upTo?: number | undefined }
): Effect.fn.Return<{ readonly state: State; readonly seq: number }, SqlError | JournalError, JournalStorage> {
  const { stream, upTo } = options
  yield* Effect.annotateCurrentSpan({ fold: fold.key, stream })
  const storage = yield* JournalStorage
  const { accumulator, position } = yield* Folding.ofStream(storage, fold, stream, upTo)
  return { state: accumulator.state(), seq: position }
})

/**
 * Folds all streams up to and with the cursor `upTo` (default: to the end), as {@link run}.
 *
 * @since 0.1.0
 * @category running
 */
export const runAll = Effect.fn("Fold.runAll")(function* <State>(
  fold: Fold<State, "global">,
  options?: { readonly upTo?: Cursor | undefined }
): Effect.fn.Return<{ readonly state: State; readonly at: Cursor }, SqlError | JournalError, JournalStorage> {
  yield* Effect.annotateCurrentSpan({ fold: fold.key })
  const storage = yield* JournalStorage
  const { accumulator, position } = yield* Folding.ofAll(storage, fold, options?.upTo)
  return { state: accumulator.state(), at: position }
})

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const stateFailed = (fold: string, detail: string): JournalError =>
  new JournalError({ reason: new StateFailed({ fold, detail }) })
