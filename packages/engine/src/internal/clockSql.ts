import * as Migrations from "@strata/durable/Migrations"
import * as Rows from "@strata/durable/Rows"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Migrator from "effect/sql/Migrator"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { ClockKey, ClockStorage, ClockStorageOptions, StoredClock } from "../ClockStorage.ts"
import type { ClockOutcome } from "../StateEvents.ts"
import * as PostgresStatements from "./clockPostgresStatements.ts"
import * as SqliteStatements from "./clockStatements.ts"
import { migrationsPostgres, migrationsSqlite } from "./stateSchema.ts"

type Storage = ClockStorage["Service"]

/** What both databases have: the same statements with the same parameters, each in its own words. */
type Statements = { readonly [Name in keyof typeof SqliteStatements]: string }

export const make = (
  options: ClockStorageOptions = {}
): Effect.Effect<Storage, SqlError | Migrator.MigrationError, SqlClient.SqlClient> =>
  SqlClient.SqlClient.use((sql) => sql.onDialectOrElse({ pg: () => makePostgres(options), orElse: () => makeSqlite }))

const makeSqlite = Effect.gen(function* () {
  yield* Migrations.run(migrationsSqlite)
  return storage(yield* Rows.run, SqliteStatements, Clock.currentTimeMillis, Effect.void)
})

const makePostgres = Effect.fnUntraced(function* ({ clock = "database" }: ClockStorageOptions) {
  yield* Migrations.run(migrationsPostgres)
  const run = yield* Rows.run
  const now =
    clock === "effect"
      ? Clock.currentTimeMillis
      : Effect.map(run(PostgresStatements.now), ([row]) => Rows.integer(row?.[0]))
  return storage(run, PostgresStatements, now, Effect.asVoid(run(PostgresStatements.announce)))
})

const storage = (
  run: Rows.Run,
  Statements: Statements,
  now: Effect.Effect<number, SqlError>,
  announce: Effect.Effect<void, SqlError>
): Storage => ({
  now,
  next: Effect.gen(function* () {
    const [row] = yield* run(Statements.next)
    return { deadline: Rows.integerOrNull(row?.[0] ?? null), now: yield* now }
  }),

  insert: Effect.fnUntraced(function* (rows) {
    const inserted = yield* Rows.inChunks(rows, chunk, (rows) => run(Statements.insert, [tuples(rows)]))
    if (inserted.length > 0) yield* announce
    return inserted.map(toKey)
  }),
  fire: (now, limit) => Effect.map(run(Statements.fire, [now, limit]), toClocks),
  complete: (now, outcome, keys) => Effect.map(run(Statements.complete, [pairs(keys), now, outcome]), toClocks),
  completeOf: (now, outcome, executionIds) =>
    Effect.map(run(Statements.completeOf, [JSON.stringify(executionIds), now, outcome]), toClocks),

  find: (keys) => Effect.map(run(Statements.find, [pairs(keys)]), toClocks),
  ofRun: (executionId) => Effect.map(run(Statements.ofRun, [executionId]), toClocks),

  put: Effect.fnUntraced(function* (rows) {
    if (rows.length === 0) return
    yield* Rows.inChunks(rows, chunk, (rows) => run(Statements.put, [tuples(rows)]))
    yield* announce
  }),
  remove: (keys) => Effect.asVoid(run(Statements.remove, [pairs(keys)])),
  removeOf: (executionIds) =>
    Effect.map(run(Statements.removeOf, [JSON.stringify(executionIds)]), (rows) => rows.length),
  removeAll: Effect.asVoid(run(Statements.removeAll))
})

const chunk = 1000

const pairs = (keys: ReadonlyArray<ClockKey>): string =>
  JSON.stringify(keys.map(({ executionId, name }) => [executionId, name]))

const tuples = (rows: ReadonlyArray<StoredClock>): string =>
  JSON.stringify(
    rows.map(({ completedAt, deadline, deferred, executionId, name, outcome, scheduledAt }) => [
      executionId,
      name,
      deferred,
      deadline,
      scheduledAt,
      completedAt,
      outcome
    ])
  )

/** Read by position, see the columns of the statements. */
const toKey = (row: Rows.Values): ClockKey => ({ executionId: Rows.text(row[0]), name: Rows.text(row[1]) })

/** By deadline: a statement that changes rows gives them in any order. */
const toClocks = (rows: ReadonlyArray<Rows.Values>): ReadonlyArray<StoredClock> =>
  rows.map(toClock).toSorted((a, b) => a.deadline - b.deadline)

const toClock = (row: Rows.Values): StoredClock => ({
  executionId: Rows.text(row[0]),
  name: Rows.text(row[1]),
  deferred: Rows.text(row[2]),
  deadline: Rows.integer(row[3]),
  scheduledAt: Rows.integer(row[4]),
  completedAt: Rows.integerOrNull(row[5]),
  outcome: Rows.textOrNull(row[6]) as ClockOutcome | null
})
