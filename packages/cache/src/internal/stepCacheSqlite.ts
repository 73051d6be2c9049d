import * as Migrations from "@strata/durable/Migrations"
import * as Rows from "@strata/durable/Rows"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type * as Migrator from "effect/sql/Migrator"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Restoring, StagedEvent, Staging, StepCacheStorage, StoredLedgerRow } from "../StepCacheStorage.ts"
import * as Collecting from "./stepCacheCollecting.ts"
import { guardHeads, migrationsSqlite, temporaryTables, unguardHeads } from "./stepCacheSchema.ts"
import * as Statements from "./stepCacheStatements.ts"

export const make: Effect.Effect<StepCacheStorage["Service"], SqlError | Migrator.MigrationError, SqlClient.SqlClient> =
  Effect.gen(function* () {
    yield* Migrations.run(migrationsSqlite)
    const run = yield* Rows.run
    for (const table of temporaryTables) yield* run(table)
    return {
      // Writers of SQLite wait for each other anyway.
      lock: Effect.void,
      find: (key) =>
        Effect.map(
          run(Statements.find, [key]),
          ([row]) => row && { ...Collecting.toHead(row), value: Rows.text(row[12]) }
        ),
      insert: Effect.fnUntraced(function* (now, record) {
        yield* run(Statements.insertResult, [record.digest, record.value])
        const [row] = yield* run(Statements.insertLedger, [
          record.key,
          record.recording,
          record.digest,
          record.artifacts,
          record.recordedBy,
          record.recordedAt,
          record.action,
          record.version,
          record.durationMs,
          record.from
        ])
        const ledger = Rows.integer(row?.[0])
        yield* run(Statements.insertHead, [ledger, now])
        return ledger
      }),
      remove: (key, ledger, usedAt) =>
        Effect.map(run(Statements.remove, [key, ledger, usedAt ?? null]), (rows) => rows.length > 0),
      touch: (now, key, ledger) => Effect.asVoid(run(Statements.touch, [key, ledger, now])),
      heads: (after, limit) => Effect.map(run(Statements.heads, [after, limit]), (rows) => rows.map(Collecting.toHead)),
      withRestoring: withRestoring(run),
      results: readResults(run),
      withStaging: withStaging(run),
      ...Collecting.make(run, Statements)
    }
  })

// ---------------------------------------------------------------------------------------------------------------------
// restoring
// ---------------------------------------------------------------------------------------------------------------------

const withRestoring =
  (run: Rows.Run): StepCacheStorage["Service"]["withRestoring"] =>
  (use) =>
    withLargeCache(
      run,
      Effect.gen(function* () {
        yield* run(Statements.dropHeads)
        yield* run(Statements.dropLedger)
        yield* run(Statements.dropRemoved)
        const restored = yield* use(makeRestoring(run))
        yield* run(Statements.dropRemoved)
        return restored
      })
    )

const makeRestoring = (run: Rows.Run): Restoring => {
  const last = { ledger: 0, result: 0 }
  return {
    rows: Effect.fnUntraced(function* (events, collected) {
      yield* inBatches(run, removals(last.ledger, events), pushRemoval, Statements.removeMany, Statements.removeOne)
      const rows = events.filter(isRow)
      const unjoined = yield* restoreRows(run, rows, last)
      last.ledger = rows.at(-1)?.ledger ?? last.ledger
      if (collected.length > 0) yield* run(Statements.dropRows, [JSON.stringify(collected)])
      return unjoined
    }),
    heads: Effect.fnUntraced(function* (now) {
      yield* run(unguardHeads)
      yield* run(Statements.restoreHeads, [now])
      yield* run(guardHeads)
      const [row] = yield* run(Statements.countHeads)
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

const restoreRows = Effect.fnUntraced(function* (
  run: Rows.Run,
  rows: ReadonlyArray<StoredLedgerRow>,
  last: { result: number }
) {
  const unjoined: Array<StoredLedgerRow> = []
  for (let start = 0; start < rows.length; start += Statements.rowsAtOnce) {
    const batch = rows.slice(start, start + Statements.rowsAtOnce)
    const expecting = batch.map((row, i): ExpectingRow => ({ row, result: last.result + i + 1 }))
    yield* inBatches(run, expecting, pushExpecting, Statements.restoreMany, Statements.restoreOne)
    const [row] = yield* run(Statements.restored)
    last.result = Rows.integer(row?.[1])
    // Rows after the whole batch go one by one, and only the last one is counted: those are looked up anyway.
    if (batch.length === Statements.rowsAtOnce && Rows.integer(row?.[0]) === batch.length) continue
    for (const event of batch) {
      if ((yield* run(Statements.hasResult, [event.digest])).length === 0) unjoined.push(event)
    }
  }
  return unjoined
})

interface ExpectingRow {
  readonly row: StoredLedgerRow
  readonly result: number
}

const isRow = (event: StagedEvent): event is StoredLedgerRow => event.ledger !== null

const readResults =
  (run: Rows.Run): StepCacheStorage["Service"]["results"] =>
  (after, limit) =>
    Effect.map(run(Statements.results, [after, limit]), (rows) =>
      rows.map((row) => ({ id: Rows.integer(row[0]), digest: Rows.text(row[1]), value: Rows.text(row[2]) }))
    )

// ---------------------------------------------------------------------------------------------------------------------
// staging
// ---------------------------------------------------------------------------------------------------------------------

/** The tables are those of the connection, which all fibers share. */
const withStaging = (run: Rows.Run): StepCacheStorage["Service"]["withStaging"] => {
  const turn = Semaphore.makeUnsafe(1)
  const empty = Effect.andThen(run(Statements.dropStaged), run(Statements.dropCollected))
  const staging: Staging = {
    stage: Effect.fnUntraced(function* (events, collected) {
      yield* inBatches(run, events, pushStaged, Statements.stageMany, Statements.stageOne)
      if (collected.length > 0) yield* run(Statements.stageCollected, [JSON.stringify(collected)])
    }),
    unjoined: Effect.map(run(Statements.unjoined), (rows) =>
      rows.map((row) => ({ key: Rows.text(row[0]), digest: Rows.text(row[1]) }))
    ),
    differences: Effect.map(
      Effect.all([run(Statements.missing), run(Statements.unexplained)]),
      ([missing, unexplained]) => ({
        missing: missing.map((row) => Rows.text(row[0])),
        unexplained: unexplained.map((row) => Rows.text(row[0]))
      })
    )
  }
  return (use) =>
    turn.withPermit(
      Effect.andThen(
        empty,
        Effect.ensuring(
          Effect.suspend(() => use(staging)),
          Effect.ignore(empty, { log: true })
        )
      )
    )
}

// ---------------------------------------------------------------------------------------------------------------------
// batches
// ---------------------------------------------------------------------------------------------------------------------

/** Runs the long statement for as many items as it takes, as often as there are so many, and the short one for each of the rest. */
const inBatches = Effect.fnUntraced(function* <A>(
  run: Rows.Run,
  items: ReadonlyArray<A>,
  push: (parameters: Array<unknown>, item: A) => void,
  many: string,
  one: string
) {
  let start = 0
  for (; start + Statements.rowsAtOnce <= items.length; start += Statements.rowsAtOnce) {
    const parameters: Array<unknown> = []
    for (let i = start; i < start + Statements.rowsAtOnce; i++) push(parameters, items[i]!)
    yield* run(many, parameters)
  }
  for (; start < items.length; start++) {
    const parameters: Array<unknown> = []
    push(parameters, items[start]!)
    yield* run(one, parameters)
  }
})

const pushRemoval = (parameters: Array<unknown>, { key, last }: Removal): void => {
  parameters.push(key, last)
}

const pushExpecting = (parameters: Array<unknown>, { result, row }: ExpectingRow): void => {
  pushRow(parameters, row)
  parameters.push(result)
}

const pushRow = (parameters: Array<unknown>, row: StoredLedgerRow): void => {
  parameters.push(
    row.key,
    row.ledger,
    row.recording,
    row.digest,
    row.artifacts,
    row.recordedBy,
    row.recordedAt,
    row.action,
    row.version,
    row.durationMs,
    row.from
  )
}

const pushStaged = (parameters: Array<unknown>, event: StagedEvent): void => {
  if (isRow(event)) pushRow(parameters, event)
  else parameters.push(event.key, null, null, null, null, null, null, null, null, null, null)
}

/** With its usual cache, SQLite would write pages of the indices out again and again. */
const withLargeCache = <A, E, R>(run: Rows.Run, effect: Effect.Effect<A, E, R>) =>
  Effect.acquireUseRelease(
    Effect.tap(
      Effect.map(run(Statements.cacheSize), ([row]) => Rows.integer(row?.[0])),
      () => run(Statements.raiseCacheSize)
    ),
    () => effect,
    (pages) => run(Statements.setCacheSize(pages))
  )
