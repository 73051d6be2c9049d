/**
 * Deletes the start of a stream, for which a checkpoint stands from then on. All of it is one write: the states of every
 * registered fold at the entry that becomes the floor, those of folds over all streams at the last entry that goes, the
 * deletion, and the new floor. A crash leaves either everything as it was or everything done.
 *
 * @since 0.1.0
 */
import type { WriteTransaction } from "@strata/durable/DurableWriter"
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
import * as Entries from "./internal/entries.ts"
import { FoldsNotRegistered, JournalError } from "./JournalError.ts"
import type { Cursor, StoredEntry, StoredState } from "./JournalStorage.ts"
import { JournalStorage } from "./JournalStorage.ts"
import * as Metrics from "./Metrics.ts"
import type { StreamName } from "./StreamName.ts"

// ---------------------------------------------------------------------------------------------------------------------
// service
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Compaction of streams.
 *
 * @since 0.1.0
 * @category services
 */
export class Compaction extends Context.Service<
  Compaction,
  {
    /**
     * Deletes the entries of a stream before `seq`, which has to be one of its entries and becomes its floor, and gives
     * their number. Does nothing when that is the floor already.
     *
     * Takes the states of a checkpoint at `seq`, and folds what it lacks. Refuses, with nothing deleted, when a fold
     * cannot take part: its events do not decode, it came after an earlier compaction (`CheckpointMissing`), or it has
     * a state at the present floor, and is not registered here (`FoldsNotRegistered`), unless `forget` names it. Readers
     * that have not read what goes, of this stream or of all, fail with the position to resume at.
     */
    readonly compact: (options: {
      readonly stream: StreamName
      readonly seq: number
      /** Keys of folds that are given up, with their states. */
      readonly forget?: ReadonlyArray<string> | undefined
    }) => Effect.Effect<{ readonly deleted: number; readonly floor: number }, SqlError | JournalError>
    /**
     * Removes streams as if they had never been, with their archives, checkpoints and identities, and gives the number of
     * their entries. `within` runs first, in the same write, to remove what belongs to them: when it fails, nothing was
     * removed. Folds over all streams keep what they have of the entries, and are refused as by `compact`. A stream that
     * gets the name of a removed one begins behind its last seq.
     */
    readonly remove: <A, E, R>(options: {
      readonly streams: ReadonlyArray<StreamName>
      readonly within: Effect.Effect<A, E, R>
    }) => Effect.Effect<
      { readonly deleted: number; readonly within: A },
      E | SqlError | JournalError,
      Exclude<R, WriteTransaction>
    >
  }
>()("@strata/journal/Compaction") {}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Compaction over the storage in context.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make: Effect.Effect<Compaction["Service"], never, JournalStorage | Folds | DurableWriter> = Effect.gen(
  function* () {
    const storage = yield* JournalStorage
    const folds = yield* Folds
    const writer = yield* DurableWriter
    return { compact: compact(storage, folds, writer), remove: remove(storage, folds, writer) }
  }
)

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Compaction over the storage in context.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<Compaction, never, JournalStorage | Folds | DurableWriter> = Layer.effect(
  Compaction,
  make
)

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

type Storage = JournalStorage["Service"]

/** What is to be done, as it was found before the write. */
interface Plan {
  readonly stream: StreamName
  readonly seq: number
  /** The last entry that goes. */
  readonly last: StoredEntry
  readonly states: ReadonlyArray<StoredState>
  readonly globalStates: Capturing.GlobalStates
  /** Folds that need not take part: those that do, and those that are given up. */
  readonly settled: ReadonlySet<string>
  readonly forget: ReadonlyArray<string>
}

const compact = (
  storage: Storage,
  folds: Folds["Service"],
  writer: DurableWriter["Service"]
): Compaction["Service"]["compact"] =>
  Effect.fn("Compaction.compact")(function* ({ forget = [], seq, stream }) {
    yield* Effect.annotateCurrentSpan({ stream, seq })
    // States are folded before the write, as other writers would wait, and again when they are no longer true in it.
    while (true) {
      yield* Checks.requireEntry(storage, stream, seq)
      const last = yield* storage.lastUpTo(stream, seq - 1)
      if (last === undefined) {
        return { deleted: 0, floor: (yield* storage.stream(stream))?.floor ?? 0 }
      }
      const registered = yield* folds.all
      const plan: Plan = {
        stream,
        seq,
        last,
        states: yield* statesAt(storage, registered, stream, seq),
        globalStates: yield* Capturing.ofAll(storage, registered, last),
        settled: new Set([...registered.map(({ key }) => key), ...forget]),
        forget
      }
      const deleted = yield* writer.write(execute(storage, plan))
      if (deleted !== undefined) {
        yield* Metrics.compactedEntries(deleted)
        return { deleted, floor: seq }
      }
    }
  })

/** The states of a checkpoint at the entry, and those that it lacks. */
const statesAt = Effect.fnUntraced(function* (
  storage: Storage,
  folds: ReadonlyArray<Fold.Any>,
  stream: StreamName,
  seq: number
): Effect.fn.Return<ReadonlyArray<StoredState>, SqlError | JournalError> {
  const taken = new Set((yield* storage.states(stream, seq)).map(({ fold }) => fold))
  return yield* Capturing.ofStream(
    storage,
    folds.filter(({ key }) => !taken.has(key)),
    stream,
    seq
  )
})

/** The write; gives nothing when the plan is no longer true. */
const execute = Effect.fnUntraced(function* (storage: Storage, plan: Plan) {
  const { last, seq, stream } = plan
  yield* Checks.requireEntry(storage, stream, seq)
  if ((yield* storage.lastUpTo(stream, seq - 1))?.seq !== last.seq) return undefined
  if (!(yield* isTrue(storage, plan.globalStates))) return undefined
  const floor = (yield* storage.stream(stream))?.floor ?? 0
  yield* requireSettled([...(yield* storage.states(stream, floor)), ...(yield* storage.globalStates)], plan.settled)

  const now = yield* Clock.currentTimeMillis
  yield* storage.saveStates(now, stream, seq, plan.states)
  yield* saveGlobalStates(storage, now, plan)
  const deleted = yield* storage.deleteBelow(stream, seq)
  yield* storage.raiseFloor(stream, seq, last)
  return deleted
})

/** Whether no entry was rewound since states were folded, and the floor of the journal is not beyond them. */
const isTrue = Effect.fnUntraced(function* (storage: Storage, { generation, states }: Capturing.GlobalStates) {
  if (!(yield* Checks.isPresent(storage, generation))) return false
  const floor = yield* storage.globalFloor
  return !states.some(({ at }) => Entries.isBehind(floor, at))
})

/** Fails when states are of folds that do not take part. */
const requireSettled = Effect.fnUntraced(function* (states: ReadonlyArray<StoredState>, settled: ReadonlySet<string>) {
  const unsettled = states.map(({ fold }) => fold).filter((fold) => !settled.has(fold))
  if (unsettled.length > 0) {
    return yield* new JournalError({ reason: new FoldsNotRegistered({ folds: Array.from(new Set(unsettled)) }) })
  }
})

/** Another compaction may have brought a state further than this one would. */
const saveGlobalStates = Effect.fnUntraced(function* (
  storage: Storage,
  now: number,
  plan: Pick<Plan, "globalStates" | "forget">
) {
  const present = yield* storage.globalStates
  const further = plan.globalStates.states.filter(
    ({ at, fold }) => !present.some((state) => state.fold === fold && !Entries.isBehind(at, state.at))
  )
  yield* storage.dropGlobalStates(plan.forget)
  yield* storage.saveGlobalStates(now, further)
})

const remove = (
  storage: Storage,
  folds: Folds["Service"],
  writer: DurableWriter["Service"]
): Compaction["Service"]["remove"] =>
  Effect.fn("Compaction.remove")(function* ({ streams, within }) {
    yield* Effect.annotateCurrentSpan({ streams: streams.length })
    while (true) {
      const last = yield* lastOf(storage, streams)
      const registered = yield* folds.all
      const globalStates = yield* Capturing.ofAll(storage, registered, last)
      const settled = new Set(registered.map(({ key }) => key))
      const removed = yield* writer.write(
        Effect.gen(function* () {
          // As in `compact`, what was folded before the write has to be true in it.
          if (Entries.isBehind(yield* lastOf(storage, streams), last)) return undefined
          if (!(yield* isTrue(storage, globalStates))) return undefined
          yield* requireSettled(yield* storage.globalStates, settled)
          const done = yield* within
          yield* saveGlobalStates(storage, yield* Clock.currentTimeMillis, { globalStates, forget: [] })
          let deleted = 0
          for (const stream of streams) deleted += yield* storage.remove(stream, last)
          return { deleted, within: done }
        })
      )
      if (removed !== undefined) {
        yield* Metrics.compactedEntries(removed.deleted)
        return removed
      }
    }
  })

/** The cursor of the last entry of some streams. */
const lastOf = Effect.fnUntraced(function* (
  storage: Storage,
  streams: ReadonlyArray<StreamName>
): Effect.fn.Return<Cursor, SqlError> {
  let last: Cursor = Entries.startOfJournal
  for (const stream of streams) {
    const found = yield* storage.lastUpTo(stream, Number.MAX_SAFE_INTEGER)
    if (found !== undefined && Entries.isBehind(found, last)) last = found
  }
  return { transaction: last.transaction, ordinal: last.ordinal }
})
