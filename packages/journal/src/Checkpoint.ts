/**
 * States of folds at a committed entry: what stands for the entries before it once they are compacted. A checkpoint names
 * the entry by its seq, and has the state of every registered fold of one stream, that entry included, by the fold's
 * key. Folds over all streams have a state of their own, which compaction keeps.
 *
 * @since 0.1.0
 */
import { DurableWriter } from "@strata/durable/DurableWriter"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { SqlError } from "effect/sql/SqlError"
import type * as Fold from "./Fold.ts"
import { Folds } from "./Folds.ts"
import * as Capturing from "./internal/capturing.ts"
import * as Checks from "./internal/checks.ts"
import type { JournalError } from "./JournalError.ts"
import { JournalStorage } from "./JournalStorage.ts"
import type { StreamName } from "./StreamName.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A checkpoint of a stream.
 *
 * @since 0.1.0
 * @category models
 */
export interface Checkpoint {
  readonly stream: StreamName
  readonly seq: number
  /** The keys of the folds whose states it has, in the order of their bytes. */
  readonly folds: ReadonlyArray<string>
}

// ---------------------------------------------------------------------------------------------------------------------
// service
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The checkpoints of streams.
 *
 * @since 0.1.0
 * @category services
 */
export class Checkpoints extends Context.Service<
  Checkpoints,
  {
    /**
     * Folds a stream up to the entry `seq` (default: its last one), and keeps the states: compaction at that entry then
     * has little left to do. Fails with `NoSuchEntry` when there is no such entry, and with `BelowFloor` when it was
     * compacted.
     */
    readonly take: (options: {
      readonly stream: StreamName
      readonly seq?: number | undefined
    }) => Effect.Effect<Checkpoint, SqlError | JournalError>
    /** The checkpoints of a stream, in the order of their entries. */
    readonly list: (stream: StreamName) => Effect.Effect<ReadonlyArray<Checkpoint>, SqlError>
    /**
     * Says what the state of a fold was at the floor of a stream, that entry included, for a fold that came after the
     * compaction: the initial one, where none of its events can have been there. Does nothing on a stream that was never
     * compacted.
     */
    readonly adopt: <State>(
      fold: Fold.Fold<State, "stream">,
      options: { readonly stream: StreamName; readonly state: State }
    ) => Effect.Effect<void, SqlError | JournalError>
    /** As `adopt`, of a fold over all streams: its state at the last entry that compaction has deleted. */
    readonly adoptAll: <State>(
      fold: Fold.Fold<State, "global">,
      options: { readonly state: State }
    ) => Effect.Effect<void, SqlError | JournalError>
  }
>()("@strata/journal/Checkpoints") {}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The checkpoints over the storage in context.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make: Effect.Effect<Checkpoints["Service"], never, JournalStorage | Folds | DurableWriter> = Effect.gen(
  function* () {
    const storage = yield* JournalStorage
    const folds = yield* Folds
    const writer = yield* DurableWriter
    return {
      take: take(storage, folds, writer),
      list: list(storage),
      adopt: adopt(storage, writer),
      adoptAll: adoptAll(storage, writer)
    }
  }
)

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The checkpoints over the storage in context.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<Checkpoints, never, JournalStorage | Folds | DurableWriter> = Layer.effect(
  Checkpoints,
  make
)

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

type Storage = JournalStorage["Service"]

const take = (
  storage: Storage,
  folds: Folds["Service"],
  writer: DurableWriter["Service"]
): Checkpoints["Service"]["take"] =>
  Effect.fn("Checkpoints.take")(function* (options) {
    const { stream } = options
    const seq = options.seq ?? (yield* storage.stream(stream))?.head ?? 0
    yield* Effect.annotateCurrentSpan({ stream, seq })
    yield* Checks.requireEntry(storage, stream, seq)
    const states = yield* Capturing.ofStream(storage, yield* folds.all, stream, seq)
    yield* writer.write(
      Effect.gen(function* () {
        // What was folded is true while the entry is there.
        yield* Checks.requireEntry(storage, stream, seq)
        yield* storage.saveStates(yield* Clock.currentTimeMillis, stream, seq, states)
      })
    )
    return { stream, seq, folds: states.map(({ fold }) => fold).toSorted() }
  })

const list = (storage: Storage): Checkpoints["Service"]["list"] =>
  Effect.fn("Checkpoints.list")(function* (stream) {
    const bySeq = new Map<number, Array<string>>()
    for (const { fold, seq } of yield* storage.checkpoints(stream)) {
      bySeq.set(seq, [...(bySeq.get(seq) ?? []), fold])
    }
    return Array.from(bySeq, ([seq, folds]) => ({ stream, seq, folds }))
  })

const adopt = (storage: Storage, writer: DurableWriter["Service"]): Checkpoints["Service"]["adopt"] =>
  Effect.fn("Checkpoints.adopt")(function* (fold, { state, stream }) {
    const encoded = yield* Effect.fromResult(fold.encode(state))
    yield* writer.write(
      Effect.gen(function* () {
        const floor = (yield* storage.stream(stream))?.floor ?? 0
        if (floor === 0) return
        const now = yield* Clock.currentTimeMillis
        yield* storage.saveStates(now, stream, floor, [{ fold: fold.key, state: encoded }])
      })
    )
  })

const adoptAll = (storage: Storage, writer: DurableWriter["Service"]): Checkpoints["Service"]["adoptAll"] =>
  Effect.fn("Checkpoints.adoptAll")(function* (fold, { state }) {
    const encoded = yield* Effect.fromResult(fold.encode(state))
    yield* writer.write(
      Effect.gen(function* () {
        const at = yield* storage.globalFloor
        if (at.ordinal === 0) return
        const now = yield* Clock.currentTimeMillis
        yield* storage.saveGlobalStates(now, [{ fold: fold.key, at, state: encoded }])
      })
    )
  })
