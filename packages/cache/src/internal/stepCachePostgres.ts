import * as Migrations from "@strata/durable/Migrations"
import * as Rows from "@strata/durable/Rows"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Migrator from "effect/sql/Migrator"
import * as SqlClient from "effect/sql/SqlClient"
import { SerializationError, SqlError } from "effect/sql/SqlError"
import type { Restoring, StagedEvent, Staging, StepCacheStorage, StoredLedgerRow } from "../StepCacheStorage.ts"
import * as Collecting from "./stepCacheCollecting.ts"
import { migrationsPostgres, restoringTables, stagingTables } from "./stepCachePostgresSchema.ts"
import * as Statements from "./stepCachePostgresStatements.ts"

type Storage = StepCacheStorage["Service"]

export const make: Effect.Effect<Storage, SqlError | Migrator.MigrationError, SqlClient.SqlClient> = Effect.gen(
  function* () {
    yield* Migrations.run(migrationsPostgres)
    const sql = yield* SqlClient.SqlClient
    const run = yield* Rows.run
    return {
      lock: Effect.asVoid(run(Statements.lock)),
      find: (key) =>
        Effect.map(
          run(Statements.find, [key]),
          ([row]) => row && { ...Collecting.toHead(row), value: Rows.text(row[12]) }
        ),
      insert: Effect.fnUntraced(function* (now, record) {
        const [row] = yield* run(Statements.insert, [
          record.key,
          record.recording,
          record.digest,
          record.artifacts,
          record.recordedBy,
          record.recordedAt,
          record.action,
          record.version,
          record.durationMs,
          record.from,
          record.value,
          now
        ])
        return row === undefined ? yield* overtaken : Rows.integer(row[0])
      }),
      remove: (key, ledger, usedAt) =>
        Effect.map(run(Statements.remove, [key, ledger, usedAt ?? null]), (rows) => rows.length > 0),
      touch: (now, key, ledger) => Effect.asVoid(run(Statements.touch, [key, ledger, now])),
      heads: (after, limit) => Effect.map(run(Statements.heads, [after, limit]), (rows) => rows.map(Collecting.toHead)),
      withRestoring: withRestoring(run),
      results: (after, limit) =>
        Effect.map(run(Statements.results, [after, limit]), (rows) =>
          rows.map((row) => ({ id: Rows.integer(row[0]), digest: Rows.text(row[1]), value: Rows.text(row[2]) }))
        ),
      withStaging: withStaging(sql, run),
      ...Collecting.make(run, Statements)
    }
  }
)

/** Another write came first; this one has to run again, with what that did in view. */
const overtaken: Effect.Effect<never, SqlError> = Effect.suspend(() =>
  Effect.fail(
    new SqlError({
      reason: new SerializationError({
        cause: undefined,
        message: "Another write has recorded an entry under this key meanwhile",
        operation: "insert"
      })
    })
  )
)

// ---------------------------------------------------------------------------------------------------------------------
// restoring
// ---------------------------------------------------------------------------------------------------------------------

const withRestoring =
  (run: Rows.Run): Storage["withRestoring"] =>
  (use) =>
    Effect.gen(function* () {
      yield* run(Statements.lock)
      for (const statement of restoringTables) yield* run(statement)
      yield* run(Statements.dropHeads)
      yield* run(Statements.dropLedger)
      return yield* use(makeRestoring(run))
    })

const makeRestoring = (run: Rows.Run): Restoring => {
  let last = 0
  return {
    rows: Effect.fnUntraced(function* (events, collected) {
      const removed = removals(last, events)
      yield* inChunks(removed, (chunk) => run(Statements.addRemoved, [JSON.stringify(chunk)]))
      const rows = events.filter(isRow)
      const unjoined = yield* inChunks(rows, (chunk) =>
        Effect.map(run(Statements.restoreRows, [JSON.stringify(chunk)]), (ids) => {
          const missing = new Set(ids.map((row) => Rows.integer(row[0])))
          return missing.size === 0 ? [] : chunk.filter(({ ledger }) => missing.has(ledger))
        })
      )
      last = rows.at(-1)?.ledger ?? last
      if (collected.length > 0) yield* run(Statements.dropRows, [JSON.stringify(collected)])
      return unjoined
    }),
    heads: Effect.fnUntraced(function* (now) {
      if (last > 0) yield* run(Statements.passIds, [last])
      const [row] = yield* run(Statements.restoreHeads, [now])
      return Rows.integer(row?.[0])
    })
  }
}

interface Removal {
  readonly key: string
  /** The last ledger row before it. */
  readonly last: number
}

const removals = (last: number, events: ReadonlyArray<StagedEvent>): ReadonlyArray<Removal> => {
  const found: Array<Removal> = []
  for (const { key, ledger } of events) {
    if (ledger === null) found.push({ key, last })
    else last = ledger
  }
  return found
}

const isRow = (event: StagedEvent): event is StoredLedgerRow => event.ledger !== null

// ---------------------------------------------------------------------------------------------------------------------
// staging
// ---------------------------------------------------------------------------------------------------------------------

/** One transaction, which sees one moment of journal and tables, and makes nobody wait. */
const withStaging =
  (sql: SqlClient.SqlClient, run: Rows.Run): Storage["withStaging"] =>
  (use) =>
    inSnapshot(
      sql,
      Effect.gen(function* () {
        for (const statement of stagingTables) yield* run(statement)
        return yield* use(makeStaging(run))
      })
    )

const inSnapshot = <A, E, R>(
  sql: SqlClient.SqlClient,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E | SqlError, R> =>
  Effect.withFiber((fiber) => {
    // What begins this transaction is not what a transaction of another client inside of it begins with.
    const own = Context.get(fiber.context, SqlClient.BeginTransaction)
    return sql
      .withTransaction(Effect.provideService(effect, SqlClient.BeginTransaction, own))
      .pipe(Effect.provideService(SqlClient.BeginTransaction, "BEGIN ISOLATION LEVEL REPEATABLE READ"))
  })

const makeStaging = (run: Rows.Run): Staging => {
  let staged = 0
  const analyzed = Effect.forEach(Statements.analyzeStaged, (statement) => run(statement), { discard: true })
  return {
    stage: Effect.fnUntraced(function* (events, collected) {
      yield* inChunks(events, (chunk) => {
        const before = staged
        staged += chunk.length
        return run(Statements.stage, [JSON.stringify(chunk), before])
      })
      if (collected.length > 0) yield* run(Statements.stageCollected, [JSON.stringify(collected)])
    }),
    unjoined: Effect.andThen(
      analyzed,
      Effect.map(run(Statements.unjoined), (rows) =>
        rows.map((row) => ({ key: Rows.text(row[0]), digest: Rows.text(row[1]) }))
      )
    ),
    differences: Effect.gen(function* () {
      yield* analyzed
      const missing = yield* run(Statements.missing)
      const unexplained = yield* run(Statements.unexplained)
      return {
        missing: missing.map((row) => Rows.text(row[0])),
        unexplained: unexplained.map((row) => Rows.text(row[0]))
      }
    })
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/** Keeps the JSON parameter of a statement small. */
const inChunks = <A, B, E, R>(
  items: ReadonlyArray<A>,
  f: (chunk: ReadonlyArray<A>) => Effect.Effect<ReadonlyArray<B>, E, R>
): Effect.Effect<ReadonlyArray<B>, E, R> => (items.length === 0 ? Effect.succeed([]) : Rows.inChunks(items, 1000, f))
