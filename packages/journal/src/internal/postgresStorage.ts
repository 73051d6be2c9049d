import * as Migrations from "@strata/durable/Migrations"
import * as Rows from "@strata/durable/Rows"
import * as Effect from "effect/Effect"
import type * as Migrator from "effect/sql/Migrator"
import type * as SqlClient from "effect/sql/SqlClient"
import { SerializationError, SqlError } from "effect/sql/SqlError"
import type { Cursor, JournalStorage, Page, StoredEntry, StoredStream } from "../JournalStorage.ts"
import * as Entries from "./entries.ts"
import { migrationsPostgres } from "./postgresSchema.ts"
import * as Statements from "./postgresStatements.ts"

type Storage = JournalStorage["Service"]

export const make: Effect.Effect<Storage, SqlError | Migrator.MigrationError, SqlClient.SqlClient> = Effect.gen(
  function* () {
    yield* Migrations.run(migrationsPostgres)
    const run = yield* Rows.run
    return {
      ...appending(run),
      ...streams(run),
      ...reading(run),
      ...checkpoints(run),
      ...compaction(run),
      ...rewinding(run)
    }
  }
)

// ---------------------------------------------------------------------------------------------------------------------
// appending
// ---------------------------------------------------------------------------------------------------------------------

const appending = (run: Rows.Run): Pick<Storage, "append" | "appendAll" | "identities"> => ({
  appendAll: Effect.fnUntraced(function* (now, appends) {
    const heads = new Map<string, { readonly id: number; readonly head: number }>()
    let transaction = 0
    // In one order, so that two writes wait for each other's streams, and not for ever.
    const inOrder = appends.toSorted((a, b) => (a.stream < b.stream ? -1 : 1))
    const wanted = JSON.stringify(inOrder.map(({ events, stream }) => [stream, events.length]))
    for (const row of yield* run(Statements.allocateAll, [wanted])) {
      heads.set(Rows.text(row[1]), { id: Rows.integer(row[0]), head: Rows.integer(row[2]) })
      transaction = Rows.integer(row[3])
    }
    const entries: Array<ReadonlyArray<unknown>> = []
    for (const { events, stream } of appends) {
      let at = heads.get(stream)
      if (at === undefined) {
        const [allocated] = yield* run(Statements.allocate, [stream, events.length])
        if (allocated === undefined) return yield* overtaken("append")
        at = { id: Rows.integer(allocated[0]), head: Rows.integer(allocated[1]) }
        transaction = Rows.integer(allocated[2])
      }
      const { head, id } = at
      for (const [i, { payload, type }] of events.entries()) {
        entries.push([id, head - events.length + 1 + i, type, payload])
      }
    }
    yield* run(Statements.appendAll, [JSON.stringify(entries), now, transaction])
  }),

  append: Effect.fnUntraced(function* (now, name, events) {
    const [allocated] = yield* run(Statements.allocate, [name, events.length])
    if (allocated === undefined) return yield* overtaken("append")
    const stream = Rows.integer(allocated[0])
    const transaction = Rows.integer(allocated[2])
    let before = Rows.integer(allocated[1]) - events.length
    const appended = yield* Rows.inChunks(events, chunkSize, (chunk) => {
      const batch = JSON.stringify(chunk.map(({ identity, payload, type }) => [type, payload, identity]))
      const start = before
      before += chunk.length
      return Effect.map(run(Statements.append, [batch, stream, start, now, transaction]), (rows) =>
        rows
          .map((row) => ({ transaction, ordinal: Rows.integer(row[1]), seq: Rows.integer(row[0]) }))
          .toSorted((a, b) => a.seq - b.seq)
      )
    })
    const identities = events.flatMap(({ digest, identity }, i) =>
      identity === null ? [] : [[identity, digest, appended[i]!.seq, appended[i]!.ordinal]]
    )
    if (identities.length > 0) {
      const kept = yield* run(Statements.insertIdentities, [JSON.stringify(identities), stream, transaction])
      if (kept.length < identities.length) return yield* overtaken("append")
    }
    return appended
  }),

  identities: (stream, identities) =>
    Effect.map(run(Statements.findIdentities, [stream, JSON.stringify(identities)]), (rows) =>
      rows.map((row) => ({
        identity: Rows.text(row[0]),
        digest: Rows.text(row[1]),
        seq: Rows.integer(row[2]),
        ...cursor(row[3], row[4])
      }))
    )
})

/** Another transaction came first; the write has to run again, with what it did in view. */
const overtaken = (operation: string): Effect.Effect<never, SqlError> =>
  Effect.fail(
    new SqlError({
      reason: new SerializationError({
        cause: undefined,
        message: "Another transaction has written to the journal meanwhile",
        operation
      })
    })
  )

// ---------------------------------------------------------------------------------------------------------------------
// streams
// ---------------------------------------------------------------------------------------------------------------------

const streams = (run: Rows.Run): Pick<Storage, "stream" | "streams"> => ({
  stream: (name) =>
    Effect.map(run(Statements.findStream, [name]), ([row]) => (row === undefined ? undefined : toStream(row))),
  streams: ({ after, limit, prefix }) =>
    Effect.map(run(Statements.listStreams, [prefix, after, limit]), (rows) => rows.map(toStream))
})

// ---------------------------------------------------------------------------------------------------------------------
// reading
// ---------------------------------------------------------------------------------------------------------------------

const reading = (run: Rows.Run): Pick<Storage, "read" | "readAll" | "lastUpTo" | "firstAfter"> => ({
  read: ({ after, limit, stream, types, upTo }) =>
    Effect.map(
      types === undefined
        ? run(Statements.readStream(false), [stream, after, upTo, limit])
        : run(Statements.readStream(true), [stream, after, upTo, limit, JSON.stringify(types)]),
      (rows) => {
        const page = rows.find((row) => !isEntry(row))
        const head = Rows.integer(page?.[2] ?? 0)
        const entries = rows
          .filter(isEntry)
          .map((row) => toEntry(stream, row))
          .toSorted((a, b) => a.seq - b.seq)
        const complete = entries.length < limit
        return {
          entries,
          complete,
          through: complete ? Math.max(after, Math.min(head, upTo)) : entries.at(-1)!.seq,
          floor: Rows.integer(page?.[0] ?? 0),
          generation: Rows.integer(page?.[6] ?? 0)
        }
      }
    ),

  readAll: (options) => readAll(run, options),

  lastUpTo: (stream, seq) =>
    Effect.map(run(Statements.lastUpTo, [stream, seq]), ([row]) => row && toEntry(stream, row)),

  firstAfter: (stream, seq) =>
    Effect.map(run(Statements.firstAfter, [stream, seq]), ([row]) => row && toEntry(stream, row))
})

/**
 * A read up to a cursor is one up to an entry that was seen in its stream. It waits for transactions that may still come
 * before that entry; in a transaction, which would not see what they did, it gives up for the write to be replayed.
 */
const readAll = Effect.fnUntraced(function* (
  run: Rows.Run,
  { after, limit, types, upTo }: Parameters<Storage["readAll"]>[0]
): Effect.fn.Return<Page<Cursor>, SqlError> {
  const end = upTo ?? Entries.endOfJournal
  const parameters = [after.transaction, after.ordinal, end.transaction, end.ordinal, limit]
  while (true) {
    const rows = yield* types === undefined
      ? run(Statements.readAll(false), parameters)
      : run(Statements.readAll(true), [...parameters, JSON.stringify(types)])
    const found = (kind: string) => rows.find((row) => !isEntry(row) && row[3] === kind)
    const now = found("now")
    const horizon = Rows.integer(now?.[0])
    const own = Rows.integer(now?.[6])
    if (upTo === undefined || upTo.transaction < horizon || (upTo.transaction === own && own <= horizon)) {
      const entries = rows
        .filter(isEntry)
        .map((row) => toEntry(Rows.text(row[7]), row))
        .toSorted(byCursor)
      const complete = entries.length < limit
      const head = cursor(found("head")?.[0] ?? 0, found("head")?.[2] ?? 0)
      const floor = cursor(found("floor")?.[0], found("floor")?.[2])
      const through = complete ? later(after, earlier(head, end)) : entries.at(-1)!
      return { entries, complete, through: at(through), floor, generation: Rows.integer(now?.[2]) }
    }
    if (own !== 0) return yield* overtaken("readAll")
    yield* run(Statements.pause)
  }
})

// ---------------------------------------------------------------------------------------------------------------------
// checkpoints
// ---------------------------------------------------------------------------------------------------------------------

const checkpoints = (
  run: Rows.Run
): Pick<
  Storage,
  "saveStates" | "states" | "checkpoints" | "saveGlobalStates" | "globalStates" | "dropGlobalStates" | "globalFloor"
> => ({
  saveStates: (now, stream, seq, states) =>
    Effect.forEach(states, ({ fold, state }) => run(Statements.saveState, [stream, seq, fold, state, now]), {
      discard: true
    }),
  states: (stream, seq) =>
    Effect.map(run(Statements.findStates, [stream, seq]), (rows) =>
      rows.map((row) => ({ fold: Rows.text(row[0]), state: Rows.text(row[1]) }))
    ),
  checkpoints: (stream) =>
    Effect.map(run(Statements.listCheckpoints, [stream]), (rows) =>
      rows.map((row) => ({ seq: Rows.integer(row[0]), fold: Rows.text(row[1]) }))
    ),
  saveGlobalStates: (now, states) =>
    Effect.forEach(
      states,
      ({ at, fold, state }) => run(Statements.saveGlobalState, [fold, at.transaction, at.ordinal, state, now]),
      { discard: true }
    ),
  globalStates: Effect.map(run(Statements.findGlobalStates), (rows) =>
    rows.map((row) => ({ fold: Rows.text(row[0]), at: cursor(row[1], row[2]), state: Rows.text(row[3]) }))
  ),
  dropGlobalStates: (folds) => Effect.asVoid(run(Statements.deleteGlobalStates, [JSON.stringify(folds)])),
  globalFloor: Effect.map(run(Statements.globalFloor), ([row]) => cursor(row?.[0], row?.[1]))
})

// ---------------------------------------------------------------------------------------------------------------------
// compaction
// ---------------------------------------------------------------------------------------------------------------------

const compaction = (run: Rows.Run): Pick<Storage, "deleteBelow" | "raiseFloor" | "remove"> => ({
  deleteBelow: (stream, seq) => count(run(Statements.deleteBelow, [stream, seq])),
  raiseFloor: Effect.fnUntraced(function* (stream, seq, global) {
    yield* run(Statements.deleteStatesBelow, [stream, seq])
    yield* run(Statements.raiseFloor, [stream, seq])
    yield* run(Statements.raiseGlobalFloor, [global.transaction, global.ordinal])
  }),
  remove: Effect.fnUntraced(function* (stream, global) {
    yield* run(Statements.keepHead, [stream])
    const removed = yield* count(run(Statements.deleteEntriesOf, [stream]))
    for (const statement of Statements.deleteRestOf) yield* run(statement, [stream])
    yield* run(Statements.deleteStream, [stream])
    yield* run(Statements.raiseGlobalFloor, [global.transaction, global.ordinal])
    return removed
  })
})

// ---------------------------------------------------------------------------------------------------------------------
// rewinding
// ---------------------------------------------------------------------------------------------------------------------

const rewinding = (run: Rows.Run): Pick<Storage, "archive" | "archived"> => ({
  archive: Effect.fnUntraced(function* (now, stream, after) {
    const [row] = yield* run(Statements.insertRewind, [stream, after])
    const rewind = Rows.integer(row?.[0])
    yield* run(Statements.countRewind)
    const archived = yield* count(run(Statements.archive, [stream, after, rewind, now]))
    yield* run(Statements.deleteEntriesAfter, [stream, after])
    yield* run(Statements.deleteIdentitiesAfter, [stream, after])
    yield* run(Statements.deleteStatesAfter, [stream, after])
    return { rewind, archived }
  }),

  archived: ({ before, limit, rewind, stream }) =>
    Effect.map(
      rewind === undefined
        ? run(Statements.readArchive(false), [stream, before, limit])
        : run(Statements.readArchive(true), [stream, before, limit, rewind]),
      (rows) =>
        rows.map((row) => ({
          ...toEntry(stream, row),
          rewind: Rows.integer(row[7]),
          archivedAt: Rows.integer(row[8])
        }))
    )
})

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/** Keeps the JSON parameter of a statement small. */
const chunkSize = 500

const isEntry = (row: Rows.Values): boolean => row[1] !== null

const count = (rows: ReturnType<Rows.Run>) => Effect.map(rows, ([row]) => Rows.integer(row?.[0]))

const cursor = (transaction: unknown, ordinal: unknown): Cursor => ({
  transaction: Rows.integer(transaction),
  ordinal: Rows.integer(ordinal)
})

const at = ({ ordinal, transaction }: Cursor): Cursor => ({ transaction, ordinal })

const later = (a: Cursor, b: Cursor): Cursor => (Entries.isBehind(a, b) ? a : b)

const earlier = (a: Cursor, b: Cursor): Cursor => (Entries.isBehind(a, b) ? b : a)

const byCursor = (a: Cursor, b: Cursor): number => a.transaction - b.transaction || a.ordinal - b.ordinal

const toStream = (row: Rows.Values): StoredStream => ({
  stream: Rows.text(row[0]),
  head: Rows.integer(row[1]),
  floor: Rows.integer(row[2])
})

const toEntry = (stream: string, row: Rows.Values): StoredEntry => ({
  ...cursor(row[0], row[1]),
  stream,
  seq: Rows.integer(row[2]),
  type: Rows.text(row[3]),
  payload: Rows.text(row[4]),
  identity: Rows.textOrNull(row[5]),
  recordedAt: Rows.integer(row[6])
})
