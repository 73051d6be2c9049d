import * as Migrations from "@strata/durable/Migrations"
import * as Effect from "effect/Effect"
import type * as Migrator from "effect/sql/Migrator"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Cursor, JournalStorage, StoredEntry, StoredEvent, StoredStream } from "../JournalStorage.ts"
import { migrationsSqlite } from "./schema.ts"
import * as Rows from "@strata/durable/Rows"
import * as Statements from "./statements.ts"

type Storage = JournalStorage["Service"]

export const make: Effect.Effect<Storage, SqlError | Migrator.MigrationError, SqlClient.SqlClient> = Effect.gen(
  function* () {
    yield* Migrations.run(migrationsSqlite)
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

type Appended = Cursor & { readonly seq: number }

const appending = (run: Rows.Run): Pick<Storage, "append" | "appendAll" | "identities"> => ({
  appendAll: Effect.fnUntraced(function* (now, appends) {
    const heads = new Map<string, { readonly id: number; readonly head: number }>()
    const wanted = JSON.stringify(appends.map(({ events, stream }) => [stream, events.length]))
    for (const row of yield* run(Statements.allocateAll, [wanted])) {
      heads.set(Rows.text(row[1]), { id: Rows.integer(row[0]), head: Rows.integer(row[2]) })
    }
    const entries: Array<ReadonlyArray<unknown>> = []
    for (const { events, stream } of appends) {
      let at = heads.get(stream)
      if (at === undefined) {
        const [allocated] = yield* run(Statements.allocate, [stream, events.length])
        at = { id: Rows.integer(allocated?.[0]), head: Rows.integer(allocated?.[1]) }
      }
      const { head, id } = at
      for (const [i, { payload, type }] of events.entries()) {
        entries.push([id, head - events.length + 1 + i, type, payload])
      }
    }
    yield* run(Statements.appendAll, [JSON.stringify(entries), now])
  }),

  append: Effect.fnUntraced(function* (now, name, events) {
    const [allocated] = yield* run(Statements.allocate, [name, events.length])
    const stream = Rows.integer(allocated?.[0])
    const before = Rows.integer(allocated?.[1]) - events.length
    const appended: Array<Appended> = []
    for (let start = 0; start < events.length; start += chunkSize) {
      const chunk = events.slice(start, start + chunkSize)
      appended.push(...(yield* insert(run, now, stream, before + start, chunk)))
    }
    const identities = events.flatMap(({ digest, identity }, i) =>
      identity === null ? [] : [[identity, digest, appended[i]!.seq, appended[i]!.ordinal]]
    )
    if (identities.length > 0) {
      yield* run(Statements.insertIdentities, [JSON.stringify(identities), stream])
    }
    return appended
  }),

  identities: (stream, identities) =>
    Effect.map(run(Statements.findIdentities, [stream, JSON.stringify(identities)]), (rows) =>
      rows.map((row) => ({
        identity: Rows.text(row[0]),
        digest: Rows.text(row[1]),
        seq: Rows.integer(row[2]),
        ...cursor(row[3])
      }))
    )
})

/** A lone event is spared the detour through JSON. */
const insert = (
  run: Rows.Run,
  now: number,
  stream: number,
  before: number,
  events: ReadonlyArray<StoredEvent>
): Effect.Effect<ReadonlyArray<Appended>, SqlError> => {
  const [event] = events
  if (event !== undefined && events.length === 1) {
    const { identity, payload, type } = event
    return Effect.map(
      run(Statements.appendOne, [stream, before + 1, type, payload, identity, now]),
      (rows): ReadonlyArray<Appended> => rows.map((row) => ({ ...cursor(row[0]), seq: before + 1 }))
    )
  }
  const batch = JSON.stringify(events.map(({ identity, payload, type }) => [type, payload, identity]))
  return Effect.map(run(Statements.appendMany, [batch, stream, before, now]), (rows): ReadonlyArray<Appended> =>
    rows.map((row) => ({ ...cursor(row[1]), seq: Rows.integer(row[0]) })).toSorted((a, b) => a.seq - b.seq)
  )
}

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
        const { floor, generation, head } = toPage(rows)
        const entries = rows.filter(isEntry).map((row) => toEntry(stream, row))
        const complete = entries.length < limit
        const through = complete ? Math.max(after, Math.min(head, upTo)) : entries.at(-1)!.seq
        return { entries, complete, through, floor, generation }
      }
    ),

  readAll: ({ after, limit, types, upTo }) => {
    const end = upTo === undefined ? Number.MAX_SAFE_INTEGER : upTo.ordinal
    return Effect.map(
      types === undefined
        ? run(Statements.readAll(false), [after.ordinal, end, limit])
        : run(Statements.readAll(true), [after.ordinal, end, limit, JSON.stringify(types)]),
      (rows) => {
        const { floor, generation, head } = toPage(rows)
        const entries = rows.filter(isEntry).map((row) => toEntry(Rows.text(row[6]), row))
        const complete = entries.length < limit
        const through = complete ? Math.max(after.ordinal, Math.min(head, end)) : entries.at(-1)!.ordinal
        return { entries, complete, through: cursor(through), floor: cursor(floor), generation }
      }
    )
  },

  lastUpTo: (stream, seq) =>
    Effect.map(run(Statements.lastUpTo, [stream, seq]), ([row]) => row && toEntry(stream, row)),

  firstAfter: (stream, seq) =>
    Effect.map(run(Statements.firstAfter, [stream, seq]), ([row]) => row && toEntry(stream, row))
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
    Effect.forEach(states, ({ at, fold, state }) => run(Statements.saveGlobalState, [fold, at.ordinal, state, now]), {
      discard: true
    }),
  globalStates: Effect.map(run(Statements.findGlobalStates), (rows) =>
    rows.map((row) => ({ fold: Rows.text(row[0]), at: cursor(row[1]), state: Rows.text(row[2]) }))
  ),
  dropGlobalStates: (folds) => Effect.asVoid(run(Statements.deleteGlobalStates, [JSON.stringify(folds)])),
  globalFloor: Effect.map(run(Statements.globalFloor), ([row]) => cursor(row?.[0]))
})

// ---------------------------------------------------------------------------------------------------------------------
// compaction
// ---------------------------------------------------------------------------------------------------------------------

const compaction = (run: Rows.Run): Pick<Storage, "deleteBelow" | "raiseFloor" | "remove"> => ({
  deleteBelow: (stream, seq) => change(run, Statements.deleteBelow, [stream, seq]),
  raiseFloor: Effect.fnUntraced(function* (stream, seq, global) {
    yield* run(Statements.deleteStatesBelow, [stream, seq])
    yield* run(Statements.raiseFloor, [stream, seq])
    yield* run(Statements.raiseGlobalFloor, [global.ordinal])
  }),
  remove: Effect.fnUntraced(function* (stream, global) {
    yield* run(Statements.keepHead, [stream])
    const removed = yield* change(run, Statements.deleteEntriesOf, [stream])
    for (const statement of Statements.deleteRestOf) yield* run(statement, [stream])
    yield* run(Statements.deleteStream, [stream])
    yield* run(Statements.raiseGlobalFloor, [global.ordinal])
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
    const archived = yield* change(run, Statements.archive, [stream, after, rewind, now])
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
          rewind: Rows.integer(row[6]),
          archivedAt: Rows.integer(row[7])
        }))
    )
})

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/** Keeps the JSON parameter of a statement small. */
const chunkSize = 500

const isEntry = (row: Rows.Values): boolean => row[0] !== null

/** What is told of a page beside its entries; nothing of a stream that does not exist. */
const toPage = (rows: ReadonlyArray<Rows.Values>) => {
  const row = rows.find((row) => !isEntry(row))
  return {
    floor: Rows.integer(row?.[1] ?? 0),
    head: Rows.integer(row?.[2] ?? 0),
    generation: Rows.integer(row?.[3] ?? 0)
  }
}

const change = (run: Rows.Run, statement: string, parameters: ReadonlyArray<unknown>) =>
  Effect.andThen(
    run(statement, parameters),
    Effect.map(run(Statements.changes), ([row]) => Rows.integer(row?.[0]))
  )

const cursor = (ordinal: unknown): Cursor => ({ transaction: 0, ordinal: Rows.integer(ordinal) })

const toStream = (row: Rows.Values): StoredStream => ({
  stream: Rows.text(row[0]),
  head: Rows.integer(row[1]),
  floor: Rows.integer(row[2])
})

const toEntry = (stream: string, row: Rows.Values): StoredEntry => ({
  transaction: 0,
  ordinal: Rows.integer(row[0]),
  stream,
  seq: Rows.integer(row[1]),
  type: Rows.text(row[2]),
  payload: Rows.text(row[3]),
  identity: Rows.textOrNull(row[4]),
  recordedAt: Rows.integer(row[5])
})
