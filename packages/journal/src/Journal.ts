/**
 * Why the state is what it is. The journal holds, for each stream, the events that happened there, in order: entries are
 * appended in the write that does what they tell, so that no state is without its record nor the reverse. Entries are
 * read, followed and folded; the start of a stream can be compacted into a checkpoint, its end can be rewound.
 *
 * @since 0.1.0
 */
import type { DurableWriter, WriteTransaction } from "@strata/durable/DurableWriter"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Schema from "effect/Schema"
import type * as Migrator from "effect/sql/Migrator"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type * as Stream from "effect/Stream"
import type { NewEvent } from "./Event.ts"
import * as Service from "./internal/journalService.ts"
import type { JournalError } from "./JournalError.ts"
import type { Cursor, JournalStorage } from "./JournalStorage.ts"
import * as Storage from "./JournalStorage.ts"
import type { StreamName } from "./StreamName.ts"

export {
  /**
   * @since 0.1.0
   * @category errors
   */
  JournalError
} from "./JournalError.ts"

export type {
  /**
   * @since 0.1.0
   * @category models
   */
  Cursor
} from "./JournalStorage.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * An entry of the journal. It is a cursor too: the position of its own.
 *
 * @since 0.1.0
 * @category models
 */
export interface Entry extends Cursor {
  readonly stream: StreamName
  /** Position in the stream. Rises, not always by one, and is never used again. */
  readonly seq: number
  readonly type: string
  readonly payload: Schema.Json
  readonly identity: string | undefined
  /** Milliseconds since the epoch. */
  readonly recordedAt: number
}

/**
 * Where an event went, in the order of the events. `duplicate` when it was there already, and this is its first place.
 *
 * @since 0.1.0
 * @category models
 */
export interface Appended extends Cursor {
  readonly seq: number
  readonly duplicate: boolean
}

/**
 * A stream that has, or had, entries.
 *
 * @since 0.1.0
 * @category models
 */
export interface StreamInfo {
  readonly stream: StreamName
  /** The seq of its last entry. */
  readonly head: number
  /** The seq of the first entry that compaction has left; 0 before the first compaction. */
  readonly floor: number
}

/**
 * The cursor before all entries.
 *
 * @since 0.1.0
 * @category models
 */
export const start: Cursor = { transaction: 0, ordinal: 0 }

/**
 * How the journal is followed.
 *
 * @since 0.1.0
 * @category models
 */
export interface JournalOptions {
  /**
   * How often a follower that has nothing to read looks for entries that other processes have committed. It is woken at
   * once by commits of its own process. Default 100 ms.
   */
  readonly pollInterval?: Duration.Input | undefined
  /** How many entries a follower reads at a time, and so holds in memory. Default 500. */
  readonly pageSize?: number | undefined
}

// ---------------------------------------------------------------------------------------------------------------------
// service
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The journal.
 *
 * @since 0.1.0
 * @category services
 */
export class Journal extends Context.Service<
  Journal,
  {
    /**
     * Appends events to a stream in the write that is under way; they can be read once it has committed. Payloads are
     * redacted here, see `Redaction`.
     *
     * An event with an identity that the stream has already is not appended again when type and redacted payload are
     * the same, and fails with `IdentityConflict` when they are not. Identities outlive compaction, and are free again
     * when their entries are rewound.
     */
    readonly append: (
      stream: StreamName,
      events: ReadonlyArray<NewEvent>
    ) => Effect.Effect<ReadonlyArray<Appended>, SqlError | JournalError, WriteTransaction>

    /**
     * As `append`, to many streams at once, at little more than the cost of one. The events have no identities, and a
     * stream is in the list once.
     */
    readonly appendAll: (
      appends: ReadonlyArray<{ readonly stream: StreamName; readonly events: ReadonlyArray<NewEvent> }>
    ) => Effect.Effect<void, SqlError | JournalError, WriteTransaction>

    /**
     * Entries of a stream behind the seq `after` (default 0), up to and with `upTo`, in order. Fails with `BelowFloor`
     * when compaction has deleted some of them. Default limit 1,000.
     */
    readonly read: (options: {
      readonly stream: StreamName
      readonly after?: number | undefined
      readonly upTo?: number | undefined
      readonly types?: ReadonlyArray<string> | undefined
      readonly limit?: number | undefined
    }) => Effect.Effect<ReadonlyArray<Entry>, SqlError | JournalError>
    /**
     * Entries of all streams behind the cursor `after` (default: all), in the order in which they became visible.
     * Fails with `BelowGlobalFloor` when compaction has deleted some of them; `compacted: "skip"` gives those that are
     * left. A read for few `types` looks at all entries on its way. Default limit 1,000.
     */
    readonly readAll: (options?: {
      readonly after?: Cursor | undefined
      readonly types?: ReadonlyArray<string> | undefined
      readonly limit?: number | undefined
      readonly compacted?: "fail" | "skip" | undefined
    }) => Effect.Effect<ReadonlyArray<Entry>, SqlError | JournalError>

    /**
     * The entries of a stream behind `after` (default 0), then those that are committed, by whichever process, for as
     * long as the stream is run: each once, in order. A page at a time is read, when it is asked for. Entries that are
     * rewound before they were read are left out; a rewind itself is an entry, of the type of `Rewind.Rewound`. Fails with
     * `BelowFloor` when compaction overtakes it.
     */
    readonly follow: (options: {
      readonly stream: StreamName
      readonly after?: number | undefined
      readonly types?: ReadonlyArray<string> | undefined
    }) => Stream.Stream<Entry, SqlError | JournalError>
    /** As `follow`, over all streams and as `readAll`. */
    readonly followAll: (options?: {
      readonly after?: Cursor | undefined
      readonly types?: ReadonlyArray<string> | undefined
      readonly compacted?: "fail" | "skip" | undefined
    }) => Stream.Stream<Entry, SqlError | JournalError>

    /** The seq of the last entry of a stream; 0 when it never had one. */
    readonly head: (stream: StreamName) => Effect.Effect<number, SqlError>
    /** The seq of the first entry that compaction has left; 0 when there was no compaction. */
    readonly floor: (stream: StreamName) => Effect.Effect<number, SqlError>
    /** Streams by name, in the order of UTF-8 bytes. Default limit 1,000. */
    readonly streams: (options?: {
      /** What the names start with, compared in bytes. */
      readonly prefix?: string | undefined
      /** The last name of the page before. */
      readonly after?: StreamName | undefined
      readonly limit?: number | undefined
    }) => Effect.Effect<ReadonlyArray<StreamInfo>, SqlError>
  }
>()("@strata/journal/Journal") {}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The journal over the storage in context, with the `Redactor` in context.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make: (options?: JournalOptions) => Effect.Effect<Journal["Service"], never, JournalStorage> = Service.make

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * The journal over the storage in context.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options?: JournalOptions): Layer.Layer<Journal, never, JournalStorage> =>
  Layer.effect(Journal, make(options))

/**
 * A journal in memory, with its storage. No other process can see it, so it is not polled.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerMemory = (
  options?: Omit<JournalOptions, "pollInterval">
): Layer.Layer<Journal | JournalStorage, never, DurableWriter> =>
  layer({ ...options, pollInterval: Infinity }).pipe(Layer.provideMerge(Storage.layerMemory))

/**
 * The journal on SQLite or Postgres, with its storage, see `JournalStorage.layerSql`. Creates what is missing of its
 * tables.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerSql = (
  options?: JournalOptions
): Layer.Layer<Journal | JournalStorage, SqlError | Migrator.MigrationError, SqlClient.SqlClient> =>
  layer(options).pipe(Layer.provideMerge(Storage.layerSql))
