/**
 * Writes of two small rows each: through the `DurableWriter`, in a transaction
 * each, and with plain `node:sqlite` in transactions of 64. All with WAL and
 * `synchronous=FULL`.
 */
import * as SqliteClient from "@strata/sqlite/SqliteClient"
import * as DurableWriter from "@strata/durable/DurableWriter"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { type Bench, type Case, type Run, temporaryFolder, timed } from "./Harness.ts"

const createEvent = "CREATE TABLE event (id INTEGER PRIMARY KEY, stream TEXT NOT NULL, payload TEXT NOT NULL)"
const createState = "CREATE TABLE state (key TEXT PRIMARY KEY, value TEXT NOT NULL)"
const insertEvent = "INSERT INTO event (stream, payload) VALUES (?, ?)"
const upsertState = "INSERT INTO state (key, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"

/** The same two rows for every contender; a thousand states, so that most writes update. */
const rows = (i: number) =>
  [
    [`run-${i % 100}`, `{"step":${i}}`],
    [`state-${i % 1000}`, `value-${i}`]
  ] as const

const twoRows = (sql: SqlClient.SqlClient, i: number) => {
  const [event, state] = rows(i)
  return Effect.andThen(sql.unsafe(insertEvent, event), sql.unsafe(upsertState, state))
}

/** Writes per second of `write` in `concurrency` fibers. */
const writesPerSecond = (
  writes: number,
  concurrency: number,
  write: (i: number) => Effect.Effect<unknown, unknown, DurableWriter.DurableWriter | SqlClient.SqlClient>
): Run =>
  Effect.gen(function* () {
    const filename = join(yield* temporaryFolder, "durable.db")
    const layer = DurableWriter.layer().pipe(Layer.provideMerge(SqliteClient.layer({ filename, synchronous: "FULL" })))
    return yield* Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql.unsafe(createEvent)
      yield* sql.unsafe(createState)
      const indices = Array.from({ length: writes }, (_, i) => i)
      const ms = yield* timed(Effect.forEach(indices, write, { concurrency, discard: true }))
      return (writes * 1000) / ms
    }).pipe(Effect.provide(layer))
  })

const ours = (writes: number, concurrency: number): Run =>
  writesPerSecond(writes, concurrency, (i) => SqlClient.SqlClient.use((sql) => DurableWriter.write(twoRows(sql, i))))

const withTransaction = (writes: number, concurrency: number): Run =>
  writesPerSecond(writes, concurrency, (i) => SqlClient.SqlClient.use((sql) => sql.withTransaction(twoRows(sql, i))))

/** What SQLite itself can do: no Effect, 64 writes a transaction. */
const raw = (writes: number): Run =>
  Effect.gen(function* () {
    const filename = join(yield* temporaryFolder, "raw.db")
    const database = yield* Effect.acquireRelease(
      Effect.sync(() => new DatabaseSync(filename)),
      (database) => Effect.sync(() => database.close())
    )
    for (const statement of ["PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", createEvent, createState]) {
      database.exec(statement)
    }
    const event = database.prepare(insertEvent)
    const state = database.prepare(upsertState)
    const ms = yield* timed(
      Effect.sync(() => {
        for (let start = 0; start < writes; start += 64) {
          database.exec("BEGIN IMMEDIATE")
          for (let i = start; i < Math.min(start + 64, writes); i++) {
            const [eventRow, stateRow] = rows(i)
            event.run(...eventRow)
            state.run(...stateRow)
          }
          database.exec("COMMIT")
        }
      })
    )
    return (writes * 1000) / ms
  })

const writeCase = (concurrency: number, writes: number): Case => ({
  name: `write-c${concurrency}`,
  about: `${writes} writes of two rows by ${concurrency} fiber${concurrency === 1 ? "" : "s"}, synchronous=FULL`,
  unit: "writes/s",
  better: "higher",
  contenders: Effect.succeed({
    ours: ours(writes, concurrency),
    rivals: { withTransaction: withTransaction(writes, concurrency), raw: raw(writes) }
  })
})

export const durable: Bench = { name: "durable", cases: [writeCase(1, 2000), writeCase(64, 8000)] }
