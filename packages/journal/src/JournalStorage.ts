/**
 * What a backend of the journal has to do, in plain values: text, numbers, and payloads and states as JSON text. The
 * typed services are made of it, and know no database; backends know no Schemas.
 *
 * @since 0.1.0
 */
import type { DurableWriter, WriteTransaction } from "@strata/durable/DurableWriter"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Migrator from "effect/sql/Migrator"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import * as Memory from "./internal/memoryStorage.ts"
import * as Postgres from "./internal/postgresStorage.ts"
import * as Sqlite from "./internal/sqliteStorage.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A position over all streams. Entries become visible in the order of their cursors: by the transaction that appended
 * them, and by ordinal within one. Where commits come in the order of ordinals, as on SQLite, the transaction is 0.
 *
 * @since 0.1.0
 * @category models
 */
export interface Cursor {
  readonly transaction: number
  readonly ordinal: number
}

/**
 * An event to be appended.
 *
 * @since 0.1.0
 * @category models
 */
export interface StoredEvent {
  readonly type: string
  /** Canonical JSON. */
  readonly payload: string
  readonly identity: string | null
  /** Of type and payload; absent without an identity. */
  readonly digest: string | null
}

/**
 * An entry of the journal.
 *
 * @since 0.1.0
 * @category models
 */
export interface StoredEntry extends Cursor {
  readonly stream: string
  readonly seq: number
  readonly type: string
  readonly payload: string
  readonly identity: string | null
  /** Milliseconds since the epoch. */
  readonly recordedAt: number
}

/**
 * An entry that was rewound.
 *
 * @since 0.1.0
 * @category models
 */
export interface StoredArchived extends StoredEntry {
  readonly rewind: number
  /** Milliseconds since the epoch. */
  readonly archivedAt: number
}

/**
 * Where an event with an identity went.
 *
 * @since 0.1.0
 * @category models
 */
export interface StoredIdentity extends Cursor {
  readonly identity: string
  readonly digest: string
  readonly seq: number
}

/**
 * A stream that has, or had, entries.
 *
 * @since 0.1.0
 * @category models
 */
export interface StoredStream {
  readonly stream: string
  /** The seq given last. */
  readonly head: number
  /** The seq of the first entry that compaction has left; 0 before the first compaction. */
  readonly floor: number
}

/**
 * What a read found, all of it as of one moment. `through` is how far it looked: behind that, and up to the limit of the
 * read, there may be more.
 *
 * @since 0.1.0
 * @category models
 */
export interface Page<Position> {
  readonly entries: ReadonlyArray<StoredEntry>
  readonly through: Position
  /** Whether nothing was left to look at, `through` apart. */
  readonly complete: boolean
  readonly floor: Position
  /** Changes whenever entries are rewound, of whichever stream. */
  readonly generation: number
}

/**
 * The state of a fold, as JSON text.
 *
 * @since 0.1.0
 * @category models
 */
export interface StoredState {
  readonly fold: string
  readonly state: string
}

/**
 * The state of a fold over all streams, which covers every entry up to a cursor.
 *
 * @since 0.1.0
 * @category models
 */
export interface StoredGlobalState extends StoredState {
  readonly at: Cursor
}

// ---------------------------------------------------------------------------------------------------------------------
// service
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A backend.
 *
 * @since 0.1.0
 * @category services
 */
export class JournalStorage extends Context.Service<
  JournalStorage,
  {
    /**
     * Appends events in order. Each gets the next seq of the stream, and an ordinal, that were never given before, and
     * the identities are kept beyond compaction.
     */
    readonly append: (
      now: number,
      stream: string,
      events: ReadonlyArray<StoredEvent>
    ) => Effect.Effect<ReadonlyArray<Cursor & { readonly seq: number }>, SqlError, WriteTransaction>
    /** Appends events to many streams at once, none of which has an identity. A stream is in the list once. */
    readonly appendAll: (
      now: number,
      appends: ReadonlyArray<{ readonly stream: string; readonly events: ReadonlyArray<StoredEvent> }>
    ) => Effect.Effect<void, SqlError, WriteTransaction>
    /** Those of the identities that the stream has. */
    readonly identities: (
      stream: string,
      identities: ReadonlyArray<string>
    ) => Effect.Effect<ReadonlyArray<StoredIdentity>, SqlError>

    readonly stream: (stream: string) => Effect.Effect<StoredStream | undefined, SqlError>
    /** By name, in the order of UTF-8 bytes. */
    readonly streams: (options: {
      readonly prefix: string
      readonly after: string
      readonly limit: number
    }) => Effect.Effect<ReadonlyArray<StoredStream>, SqlError>

    /** Entries of a stream with `after < seq <= upTo`, in order. */
    readonly read: (options: {
      readonly stream: string
      readonly after: number
      readonly upTo: number
      readonly types: ReadonlyArray<string> | undefined
      readonly limit: number
    }) => Effect.Effect<Page<number>, SqlError>
    /**
     * Entries of all streams behind `after`, up to and with `upTo`, in the order of their cursors. Never shows an entry
     * while one with a lesser cursor may still become visible.
     */
    readonly readAll: (options: {
      readonly after: Cursor
      readonly upTo: Cursor | undefined
      readonly types: ReadonlyArray<string> | undefined
      readonly limit: number
    }) => Effect.Effect<Page<Cursor>, SqlError>
    /** The entry of a stream with the greatest seq that is at most `seq`, if there is one. */
    readonly lastUpTo: (stream: string, seq: number) => Effect.Effect<StoredEntry | undefined, SqlError>
    /** The entry of a stream with the least seq that is greater than `seq`, if there is one. */
    readonly firstAfter: (stream: string, seq: number) => Effect.Effect<StoredEntry | undefined, SqlError>

    /** Sets states of folds at an entry, beside those that are there. */
    readonly saveStates: (
      now: number,
      stream: string,
      seq: number,
      states: ReadonlyArray<StoredState>
    ) => Effect.Effect<void, SqlError, WriteTransaction>
    /** The states at an entry. */
    readonly states: (stream: string, seq: number) => Effect.Effect<ReadonlyArray<StoredState>, SqlError>
    /** Which folds have states at which entries of a stream, in order. */
    readonly checkpoints: (
      stream: string
    ) => Effect.Effect<ReadonlyArray<{ readonly seq: number; readonly fold: string }>, SqlError>
    /** Sets the one state that each fold over all streams has. */
    readonly saveGlobalStates: (
      now: number,
      states: ReadonlyArray<StoredGlobalState>
    ) => Effect.Effect<void, SqlError, WriteTransaction>
    readonly globalStates: Effect.Effect<ReadonlyArray<StoredGlobalState>, SqlError>
    readonly dropGlobalStates: (folds: ReadonlyArray<string>) => Effect.Effect<void, SqlError, WriteTransaction>
    readonly globalFloor: Effect.Effect<Cursor, SqlError>

    /** Deletes the entries of a stream with a lesser seq, and gives their number. */
    readonly deleteBelow: (stream: string, seq: number) => Effect.Effect<number, SqlError, WriteTransaction>
    /** Moves the floor of a stream, drops the states below it, and moves that of the journal to at least `global`. */
    readonly raiseFloor: (
      stream: string,
      seq: number,
      global: Cursor
    ) => Effect.Effect<void, SqlError, WriteTransaction>
    /**
     * Removes a stream with all that there is of it, its archive and identities too, gives the number of its entries, and
     * moves the floor of the journal to at least `global`. Streams that are created later get greater seqs than it had.
     */
    readonly remove: (stream: string, global: Cursor) => Effect.Effect<number, SqlError, WriteTransaction>

    /**
     * Takes the entries of a stream behind `after` into the archive, with their identities, drops the states at them,
     * and gives the number of the rewind and how many there were.
     */
    readonly archive: (
      now: number,
      stream: string,
      after: number
    ) => Effect.Effect<{ readonly rewind: number; readonly archived: number }, SqlError, WriteTransaction>
    /** Archived entries of a stream, and of one rewind if it is given, with a lesser seq, greatest first. */
    readonly archived: (options: {
      readonly stream: string
      readonly rewind: number | undefined
      readonly before: number
      readonly limit: number
    }) => Effect.Effect<ReadonlyArray<StoredArchived>, SqlError>
  }
>()("@strata/journal/JournalStorage") {}

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A journal in memory, empty: for tests, and where nothing has to survive the process. Goes with
 * `DurableWriter.layerMemory`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerMemory: Layer.Layer<JournalStorage, never, DurableWriter> = Layer.effect(JournalStorage, Memory.make)

/**
 * The journal on SQLite or Postgres, whichever the `SqlClient` in context is of. Creates what is missing of its tables.
 *
 * On Postgres, transactions commit in any order, and `readAll` shows what none of those that still run can come before.
 * So an entry is shown to readers of all streams when no older transaction of that server runs any more.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerSql: Layer.Layer<JournalStorage, SqlError | Migrator.MigrationError, SqlClient.SqlClient> =
  Layer.effect(
    JournalStorage,
    SqlClient.SqlClient.use((sql) => sql.onDialectOrElse({ pg: () => Postgres.make, orElse: () => Sqlite.make }))
  )
