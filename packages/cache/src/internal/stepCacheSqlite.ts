import * as Migrations from "@strata/durable/Migrations"
import * as Rows from "@strata/durable/Rows"
import * as Effect from "effect/Effect"
import type * as Migrator from "effect/sql/Migrator"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { StagedEvent, StepCacheStorage, StoredHead } from "../StepCacheStorage.ts"
import { migrationsSqlite } from "./stepCacheSchema.ts"
import * as Statements from "./stepCacheStatements.ts"

export const make: Effect.Effect<StepCacheStorage["Service"], SqlError | Migrator.MigrationError, SqlClient.SqlClient> =
  Effect.gen(function* () {
    yield* Migrations.run(migrationsSqlite)
    const run = yield* Rows.run
    return {
      find: (key) =>
        Effect.map(run(Statements.find, [key]), ([row]) => row && { ...toHead(row), value: Rows.text(row[12]) }),
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
      remove: (key, ledger) => Effect.map(run(Statements.remove, [key, ledger]), (rows) => rows.length > 0),
      touch: (now, key, ledger) => Effect.asVoid(run(Statements.touch, [key, ledger, now])),
      heads: (after, limit) => Effect.map(run(Statements.heads, [after, limit]), (rows) => rows.map(toHead)),
      ...staging(run),
      ...collecting(run)
    }
  })

// ---------------------------------------------------------------------------------------------------------------------
// staging
// ---------------------------------------------------------------------------------------------------------------------

const staging = (
  run: Rows.Run
): Pick<StepCacheStorage["Service"], "stageNone" | "stage" | "unjoined" | "differences" | "replace" | "results"> => ({
  stageNone: Effect.fnUntraced(function* (token) {
    yield* run(Statements.dropStaged)
    yield* run(Statements.dropCollected)
    yield* run(Statements.beginStaging, [token])
  }),

  stage: Effect.fnUntraced(function* (token, events, collected) {
    if ((yield* run(Statements.isStaging, [token])).length === 0) return false
    const whole = events.length - (events.length % Statements.stagedAtOnce)
    for (let start = 0; start < whole; start += Statements.stagedAtOnce) {
      yield* run(Statements.stageMany, events.slice(start, start + Statements.stagedAtOnce).flatMap(stagedRow))
    }
    for (const event of events.slice(whole)) yield* run(Statements.stageOne, stagedRow(event))
    if (collected.length > 0) yield* run(Statements.stageCollected, [JSON.stringify(collected)])
    return true
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
  ),

  replace: (now) =>
    withLargeCache(
      run,
      Effect.gen(function* () {
        yield* run(Statements.dropHeads)
        yield* run(Statements.dropLedger)
        yield* run(Statements.restoreLedger)
        const [restored] = yield* run(Statements.isRestored)
        if (Rows.integer(restored?.[0]) === 0) return undefined
        yield* run(Statements.restoreHeads, [now])
        const [row] = yield* run(Statements.countHeads)
        return Rows.integer(row?.[0])
      })
    ),

  results: (after, limit) =>
    Effect.map(run(Statements.results, [after, limit]), (rows) =>
      rows.map((row) => ({ id: Rows.integer(row[0]), digest: Rows.text(row[1]), value: Rows.text(row[2]) }))
    )
})

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

const stagedRow = (event: StagedEvent): ReadonlyArray<unknown> =>
  event.ledger === null
    ? [event.key, null, null, null, null, null, null, null, null, null, null]
    : [
        event.key,
        event.ledger,
        event.recording,
        event.digest,
        event.artifacts,
        event.recordedBy,
        event.recordedAt,
        event.action,
        event.version,
        event.durationMs,
        event.from
      ]

// ---------------------------------------------------------------------------------------------------------------------
// collecting
// ---------------------------------------------------------------------------------------------------------------------

const collecting = (
  run: Rows.Run
): Pick<StepCacheStorage["Service"], "beyond" | "deleteLedger" | "deleteResults" | "unreferenced" | "stats"> => ({
  beyond: ({ maxBytes, maxEntries, usedBefore }) =>
    Effect.map(run(Statements.beyond, [usedBefore, maxEntries, maxBytes]), (rows) => rows.map(toHead)),
  deleteLedger: (recordedBefore, ids) =>
    Effect.map(run(Statements.deleteLedger, [recordedBefore, JSON.stringify(ids)]), (rows) =>
      rows.map((row) => Rows.integer(row[0]))
    ),
  deleteResults: Effect.map(run(Statements.deleteResults), (rows) =>
    rows.map((row) => ({ digest: Rows.text(row[0]), bytes: Rows.integer(row[1]) }))
  ),
  unreferenced: (digests) =>
    Effect.map(run(Statements.unreferenced, [JSON.stringify(digests)]), (rows) => rows.map((row) => Rows.text(row[0]))),
  stats: Effect.map(Effect.all([run(Statements.origins), run(Statements.stats)]), ([origins, [row]]) => ({
    entries: Rows.integer(row?.[0]),
    origins: origins.map((row) => ({ from: Rows.textOrNull(row[0]), entries: Rows.integer(row[1]) })),
    ledger: Rows.integer(row?.[1]),
    results: Rows.integer(row?.[2]),
    resultBytes: Rows.integer(row?.[3]),
    artifacts: Rows.integer(row?.[4]),
    artifactBytes: Rows.integer(row?.[5])
  }))
})

// ---------------------------------------------------------------------------------------------------------------------
// rows
// ---------------------------------------------------------------------------------------------------------------------

const toHead = (row: Rows.Values): StoredHead => ({
  ledger: Rows.integer(row[0]),
  key: Rows.text(row[1]),
  recording: Rows.text(row[2]),
  digest: Rows.text(row[3]),
  artifacts: Rows.text(row[4]),
  recordedBy: Rows.text(row[5]),
  recordedAt: Rows.integer(row[6]),
  action: Rows.text(row[7]),
  version: Rows.text(row[8]),
  durationMs: Rows.integer(row[9]),
  from: Rows.textOrNull(row[10]),
  usedAt: Rows.integer(row[11])
})
