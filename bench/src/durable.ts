/**
 * Writes of two small rows each: through the `DurableWriter`, in a transaction
 * each, and with plain `node:sqlite` in transactions of 64. All with WAL and
 * `synchronous=FULL`.
 */
import * as SqliteClient from "@strata/sqlite/SqliteClient"
import * as DurableWriter from "@strata/durable/DurableWriter"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as SqlClient from "effect/sql/SqlClient"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { type Bench, type Case, type Run, temporaryFolder, timed } from "./Harness.ts"

// ---------------------------------------------------------------------------------------------------------------------
// what is written
// ---------------------------------------------------------------------------------------------------------------------

const createEvent = "CREATE TABLE event (id INTEGER PRIMARY KEY, stream TEXT NOT NULL, payload TEXT NOT NULL)"
const createState = "CREATE TABLE state (key TEXT PRIMARY KEY, value TEXT NOT NULL)"
const insertEvent = "INSERT INTO event (stream, payload) VALUES (?, ?)"
const upsertState = "INSERT INTO state (key, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"

/** The same two rows for every contender; a thousand states, so that most writes update. */
const rows = (i: number, states = 1000) =>
  [
    [`run-${i % 100}`, `{"step":${i}}`],
    [`state-${(i * 7919) % states}`, `value-${i}`]
  ] as const

/** As an app would write them. */
const twoRows = (sql: SqlClient.SqlClient, i: number, states?: number) => {
  const [[stream, payload], [key, value]] = rows(i, states)
  return Effect.andThen(
    sql`INSERT INTO event (stream, payload) VALUES (${stream}, ${payload})`,
    sql`INSERT INTO state (key, value) VALUES (${key}, ${value}) ON CONFLICT DO UPDATE SET value = excluded.value`
  )
}

// ---------------------------------------------------------------------------------------------------------------------
// ways to write
// ---------------------------------------------------------------------------------------------------------------------

type Write = <A, E>(
  effect: Effect.Effect<A, E>
) => Effect.Effect<unknown, unknown, DurableWriter.DurableWriter | SqlClient.SqlClient>

const ours: Write = DurableWriter.write

const withTransaction: Write = (effect) => SqlClient.SqlClient.use((sql) => sql.withTransaction(effect))

const layer = (filename: string) =>
  DurableWriter.layer().pipe(Layer.provideMerge(SqliteClient.layer({ filename, synchronous: "FULL" })))

/** Runs a measurement on a database of its own. */
const onEmptyTables = <A>(
  measure: (sql: SqlClient.SqlClient) => Effect.Effect<A, unknown, DurableWriter.DurableWriter | SqlClient.SqlClient>
): Effect.Effect<A, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const filename = join(yield* temporaryFolder, "durable.db")
    return yield* Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql.unsafe(createEvent)
      yield* sql.unsafe(createState)
      return yield* measure(sql)
    }).pipe(Effect.provide(layer(filename)))
  })

/** Writes per second. */
const rate = <R>(
  writes: number,
  concurrency: number,
  write: (i: number) => Effect.Effect<unknown, unknown, R>
): Effect.Effect<number, unknown, R> => {
  const indices = Array.from({ length: writes }, (_, i) => i)
  return Effect.map(
    timed(Effect.forEach(indices, write, { concurrency, discard: true })),
    (millis) => (writes * 1000) / millis
  )
}

/** How long each of `writes` lone writes took, in microseconds, of two ways by turns: what the disk does falls on both. */
const latencies = (
  writes: number,
  one: Write,
  other: Write
): Effect.Effect<readonly [ReadonlyArray<number>, ReadonlyArray<number>], unknown, Scope.Scope> =>
  onEmptyTables((sql) =>
    Effect.gen(function* () {
      const micros: readonly [Array<number>, Array<number>] = [[], []]
      for (let i = 0; i < 2 * writes; i++) {
        const start = yield* Clock.monotonicTimeNanos
        yield* (i % 2 === 0 ? one : other)(twoRows(sql, i))
        micros[i % 2 === 0 ? 0 : 1].push(Number((yield* Clock.monotonicTimeNanos) - start) / 1000)
      }
      return micros
    })
  )

const plain = (writes: number, concurrency: number, write: Write): Run =>
  onEmptyTables((sql) => rate(writes, concurrency, (i) => write(twoRows(sql, i))))

/** One in eight fails after it has written. */
const failing = (writes: number, concurrency: number, write: Write): Run =>
  onEmptyTables((sql) =>
    rate(writes, concurrency, (i) =>
      i % 8 === 7 ? Effect.exit(write(Effect.andThen(twoRows(sql, i), Effect.fail("no")))) : write(twoRows(sql, i))
    )
  )

/** What SQLite itself can do: no Effect, 64 writes a transaction. */
const raw = (writes: number): Run =>
  Effect.gen(function* () {
    const filename = join(yield* temporaryFolder, "raw.db")
    const database = yield* openRaw(filename)
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

const openRaw = (filename: string): Effect.Effect<DatabaseSync, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const database = new DatabaseSync(filename)
      for (const statement of ["PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", createEvent, createState]) {
        database.exec(statement)
      }
      return database
    }),
    (database) => Effect.sync(() => database.close())
  )

// ---------------------------------------------------------------------------------------------------------------------
// growth
// ---------------------------------------------------------------------------------------------------------------------

/** A database whose tables have `size` rows each, and the rate of writes to it. The next run goes on where one ended. */
const grown = Effect.fnUntraced(function* (size: number, writes: number, concurrency: number) {
  const filename = join(yield* temporaryFolder, `grown-${size}.db`)
  yield* Effect.scoped(Effect.flatMap(openRaw(filename), (database) => fill(database, size)))
  let done = 0
  return Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const start = done
    done += writes
    return yield* rate(writes, concurrency, (i) => ours(twoRows(sql, start + i, size)))
  }).pipe(Effect.provide(layer(filename)))
})

const fill = (database: DatabaseSync, size: number): Effect.Effect<void> =>
  Effect.sync(() => {
    database.exec("BEGIN")
    for (const [table, columns, values] of [
      ["event", "stream, payload", `'run-' || (i % 100), '{"step":' || i || '}'`],
      ["state", "key, value", "'state-' || i, 'value-' || i"]
    ]) {
      database.exec(
        `WITH n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ${size})
        INSERT INTO ${table} (${columns}) SELECT ${values} FROM n`
      )
    }
    database.exec("COMMIT")
  })

const growthCase = (concurrency: number, writes: number): Case => ({
  name: `growth-c${concurrency}`,
  about: `${writes} writes by ${concurrency} fiber${concurrency === 1 ? "" : "s"} to tables of 1,000,000 rows each, against tables of 10,000`,
  unit: "writes/s",
  better: "higher",
  contenders: Effect.gen(function* () {
    const small = yield* grown(10_000, writes, concurrency)
    const large = yield* grown(1_000_000, writes, concurrency)
    return { ours: large, rivals: { "rows-10k": small } }
  })
})

// ---------------------------------------------------------------------------------------------------------------------
// cases
// ---------------------------------------------------------------------------------------------------------------------

const writeCase = (concurrency: number, writes: number): Case => ({
  name: `write-c${concurrency}`,
  about: `${writes} writes of two rows by ${concurrency} fiber${concurrency === 1 ? "" : "s"}, synchronous=FULL`,
  unit: "writes/s",
  better: "higher",
  minRounds: 15,
  contenders: Effect.succeed({
    ours: plain(writes, concurrency, ours),
    // What waits for the disk comes last: the one that follows it finds a rested processor, each of the others in turn.
    rivals: { "raw-64": raw(writes), "with-transaction": plain(writes, concurrency, withTransaction) }
  })
})

const failingCase = (concurrency: number, writes: number): Case => ({
  name: `write-c${concurrency}-failing`,
  about: `${writes} writes of two rows by ${concurrency} fibers, one in eight fails, synchronous=FULL`,
  unit: "writes/s",
  better: "higher",
  contenders: Effect.succeed({
    ours: failing(writes, concurrency, ours),
    rivals: { "with-transaction": failing(writes, concurrency, withTransaction) }
  })
})

/** Both figures of a round come from one measurement, made by whoever is first in it. */
const latencyCase = (name: string, quantile: number, writes: number): Case => ({
  name: `write-c1-${name}`,
  about: `${name} of ${writes} lone writes of two rows, by turns with the rival, synchronous=FULL`,
  unit: "µs",
  better: "lower",
  contenders: Effect.sync(() => {
    const at = (micros: ReadonlyArray<number>) => micros.toSorted((a, b) => a - b)[Math.floor(quantile * writes)]!
    const measured: { ours: Array<number>; theirs: Array<number> } = { ours: [], theirs: [] }
    const take = (side: keyof typeof measured): Run =>
      Effect.gen(function* () {
        if (measured[side].length === 0) {
          const [mine, others] = yield* latencies(writes, ours, withTransaction)
          measured.ours.push(at(mine))
          measured.theirs.push(at(others))
        }
        return measured[side].shift()!
      })
    return { ours: take("ours"), rivals: { "with-transaction": take("theirs") } }
  })
})

export const durable: Bench = {
  name: "durable",
  cases: [
    writeCase(1, 2000),
    latencyCase("p50", 0.5, 2000),
    latencyCase("p99", 0.99, 2000),
    writeCase(64, 16_000),
    failingCase(64, 16_000),
    growthCase(1, 2000),
    growthCase(64, 16_000)
  ]
}
