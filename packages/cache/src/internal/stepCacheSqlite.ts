import * as Migrations from "@strata/durable/Migrations"
import * as Rows from "@strata/durable/Rows"
import * as Effect from "effect/Effect"
import type * as Migrator from "effect/sql/Migrator"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { StepCacheStorage, StoredHead } from "../StepCacheStorage.ts"
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
      heads: (after, limit) => Effect.map(run(Statements.heads, [after, limit]), (rows) => rows.map(toHead))
    }
  })

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
