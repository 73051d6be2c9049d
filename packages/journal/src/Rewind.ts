/**
 * Takes back the end of a stream: entries go into an archive, and the rows that they explain go with them, in one write,
 * so that what is live is always what the entries that remain add up to. Their seqs are not given again.
 *
 * @since 0.1.0
 */
import { DurableWriter } from "@strata/durable/DurableWriter"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { SqlError } from "effect/sql/SqlError"
import * as Stream from "effect/Stream"
import * as Event from "./Event.ts"
import * as Entries from "./internal/entries.ts"
import type { Entry } from "./Journal.ts"
import { Journal } from "./Journal.ts"
import { BelowFloor, CheckpointedGlobally, JournalError, ProjectionFailed } from "./JournalError.ts"
import type { StoredEntry } from "./JournalStorage.ts"
import { JournalStorage } from "./JournalStorage.ts"
import * as Metrics from "./Metrics.ts"
import { Projections } from "./Projections.ts"
import type { StreamName } from "./StreamName.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The event that a rewind leaves at the end of its stream, so that followers know of it: the entries behind `after`, up
 * to this one, are not there any more, `archived` in number.
 *
 * @since 0.1.0
 * @category models
 */
export const Rewound = Event.make(
  "~rewound",
  Schema.Struct({ rewind: Schema.Int, after: Schema.Int, archived: Schema.Int })
)

/**
 * An entry in the archive.
 *
 * @since 0.1.0
 * @category models
 */
export interface ArchivedEntry extends Entry {
  /** The number of the rewind that took it. */
  readonly rewind: number
  /** Milliseconds since the epoch. */
  readonly archivedAt: number
}

// ---------------------------------------------------------------------------------------------------------------------
// service
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Rewinding of streams.
 *
 * @since 0.1.0
 * @category services
 */
export class Rewind extends Context.Service<
  Rewind,
  {
    /**
     * Archives the entries of a stream behind the seq `after`, lets every registered projection take back what they
     * explain, and gives their number: 0, when there are none, without an event. Their identities are free again.
     *
     * Refuses with `BelowFloor` when `after` is below the floor, with `CheckpointedGlobally` when compaction of some
     * stream has put one of them into the state of a fold over all streams, and with `ProjectionFailed`.
     */
    readonly rewind: (options: {
      readonly stream: StreamName
      readonly after: number
    }) => Effect.Effect<{ readonly archived: number }, SqlError | JournalError>
    /** Archived entries of a stream with a lesser seq than `before` (default: all), newest first. Default limit 1,000. */
    readonly archived: (options: {
      readonly stream: StreamName
      readonly before?: number | undefined
      readonly limit?: number | undefined
    }) => Effect.Effect<ReadonlyArray<ArchivedEntry>, SqlError>
  }
>()("@strata/journal/Rewind") {}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Rewinding over the journal and the storage in context.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make: Effect.Effect<Rewind["Service"], never, Journal | JournalStorage | Projections | DurableWriter> =
  Effect.gen(function* () {
    const journal = yield* Journal
    const storage = yield* JournalStorage
    const projections = yield* Projections
    const writer = yield* DurableWriter
    return { rewind: rewind({ journal, storage, projections, writer }), archived: archived(storage) }
  })

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Rewinding over the journal and the storage in context.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<Rewind, never, Journal | JournalStorage | Projections | DurableWriter> = Layer.effect(
  Rewind,
  make
)

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

type Storage = JournalStorage["Service"]

interface Parts {
  readonly journal: Journal["Service"]
  readonly storage: Storage
  readonly projections: Projections["Service"]
  readonly writer: DurableWriter["Service"]
}

const rewind = ({ journal, projections, storage, writer }: Parts): Rewind["Service"]["rewind"] =>
  Effect.fn("Rewind.rewind")(function* ({ after, stream }) {
    yield* Effect.annotateCurrentSpan({ stream, after })
    const archived = yield* writer.write(
      Effect.gen(function* () {
        const first = yield* storage.firstAfter(stream, after)
        if (first === undefined) return 0
        yield* requireAboveFloor(storage, stream, after)
        yield* requireOutsideStates(storage, first)
        const { archived, rewind } = yield* storage.archive(yield* Clock.currentTimeMillis, stream, after)
        for (const { name, rewind: takeBack } of yield* projections.all) {
          const entries = entriesOf(storage, stream, rewind)
          yield* Effect.mapError(
            takeBack({ stream, after, entries }),
            (cause) => new JournalError({ reason: new ProjectionFailed({ projection: name, cause }) })
          )
        }
        yield* journal.append(stream, [Rewound.make({ rewind, after, archived })])
        return archived
      })
    )
    yield* Metrics.rewoundEntries(archived)
    return { archived }
  })

const requireAboveFloor = Effect.fnUntraced(function* (storage: Storage, stream: StreamName, after: number) {
  const floor = (yield* storage.stream(stream))?.floor ?? 0
  if (after < floor) {
    return yield* new JournalError({ reason: new BelowFloor({ stream, resumeAt: floor }) })
  }
})

/** An entry that is in the state of a fold over all streams cannot be taken out of it again. */
const requireOutsideStates = Effect.fnUntraced(function* (storage: Storage, first: StoredEntry) {
  const covering = (yield* storage.globalStates).filter(({ at }) => !Entries.isBehind(first, at))
  if (covering.length > 0) {
    const { seq, stream } = first
    const folds = covering.map(({ fold }) => fold)
    return yield* new JournalError({ reason: new CheckpointedGlobally({ stream, seq, folds }) })
  }
})

/** A page at a time, newest first. */
const entriesOf = (storage: Storage, stream: StreamName, rewind: number): Stream.Stream<Entry, SqlError> =>
  Stream.paginate(Number.MAX_SAFE_INTEGER, (before) =>
    Effect.map(storage.archived({ stream, rewind, before, limit: pageSize }), (entries) => [
      entries.map(Entries.toEntry),
      entries.length < pageSize ? Option.none() : Option.some(entries.at(-1)!.seq)
    ])
  )

const pageSize = 500

const archived = (storage: Storage): Rewind["Service"]["archived"] =>
  Effect.fn("Rewind.archived")(({ before = Number.MAX_SAFE_INTEGER, limit = 1000, stream }) =>
    Effect.map(storage.archived({ stream, rewind: undefined, before, limit }), (entries) =>
      entries.map((entry) => ({ ...Entries.toEntry(entry), rewind: entry.rewind, archivedAt: entry.archivedAt }))
    )
  )
