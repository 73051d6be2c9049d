import * as Rows from "@strata/durable/Rows"
import * as Effect from "effect/Effect"
import type { StepCacheStorage, StoredHead } from "../StepCacheStorage.ts"

/*
 * What the collector asks of SQLite and of Postgres: the statements differ, what goes in and comes out does not.
 */

/** What of the storage serves the collector. */
export type Operations =
  | "cutoff"
  | "beyond"
  | "outdated"
  | "deleteLedger"
  | "unused"
  | "deleteResults"
  | "unreferenced"
  | "stats"

type Statements = Readonly<Record<Operations | "origins", string>>

export const make = (run: Rows.Run, statements: Statements): Pick<StepCacheStorage["Service"], Operations> => ({
  cutoff: ({ maxBytes, maxEntries, usedBefore }) =>
    Effect.map(
      run(statements.cutoff, [usedBefore, maxEntries, maxBytes]),
      ([row]) => row && { usedAt: Rows.integer(row[0]), key: Rows.text(row[1]) }
    ),
  beyond: ({ key, usedAt }, after, limit) =>
    Effect.map(run(statements.beyond, [usedAt, key, after, limit]), (rows) => rows.map(toHead)),
  outdated: (recordedBefore, after, limit) =>
    Effect.map(run(statements.outdated, [recordedBefore, after, limit]), (rows) =>
      rows.map((row) => Rows.integer(row[0]))
    ),
  deleteLedger: (ids) =>
    Effect.map(run(statements.deleteLedger, [JSON.stringify(ids)]), (rows) => rows.map((row) => Rows.integer(row[0]))),
  unused: (after, limit) =>
    Effect.map(run(statements.unused, [after, limit]), (rows) => rows.map((row) => Rows.text(row[0]))),
  deleteResults: (digests) =>
    Effect.map(run(statements.deleteResults, [JSON.stringify(digests)]), (rows) =>
      rows.map((row) => ({ digest: Rows.text(row[0]), bytes: Rows.integer(row[1]) }))
    ),
  unreferenced: (digests) =>
    Effect.map(run(statements.unreferenced, [JSON.stringify(digests)]), (rows) => rows.map((row) => Rows.text(row[0]))),
  stats: Effect.gen(function* () {
    const origins = yield* run(statements.origins)
    const [row] = yield* run(statements.stats)
    return {
      entries: Rows.integer(row?.[0]),
      origins: origins.map((row) => ({ from: Rows.textOrNull(row[0]), entries: Rows.integer(row[1]) })),
      ledger: Rows.integer(row?.[1]),
      results: Rows.integer(row?.[2]),
      resultBytes: Rows.integer(row?.[3]),
      artifacts: Rows.integer(row?.[4]),
      artifactBytes: Rows.integer(row?.[5])
    }
  })
})

export const toHead = (row: Rows.Values): StoredHead => ({
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
