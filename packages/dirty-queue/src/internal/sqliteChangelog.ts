import * as Migrations from "@strata/durable/Migrations"
import * as Effect from "effect/Effect"
import type * as Migrator from "effect/sql/Migrator"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { ChangelogStorage, StoredChange, StoredEntry } from "../ChangelogStorage.ts"
import { migrationsSqlite } from "./schema.ts"
import * as Rows from "@strata/durable/Rows"
import * as Statements from "./statements.ts"
import { operation } from "./operation.ts"

export const make: Effect.Effect<ChangelogStorage, SqlError | Migrator.MigrationError, SqlClient.SqlClient> =
  Effect.gen(function* () {
    yield* Migrations.run(migrationsSqlite)
    const run = yield* Rows.run
    return { ...single(run), append: append(run) }
  })

/** What is one statement, and so the same on D1. */
export const single = (run: Rows.Run): Omit<ChangelogStorage<never>, "append"> => ({
  databaseTime: Effect.map(run(Statements.databaseTime), ([row]) => Rows.integer(row?.[0])),
  read: read(run),
  firstSince: (time) =>
    Effect.map(run(Statements.firstSeqSince, [time]), ([row]) =>
      row === undefined ? undefined : Rows.integer(row[0])
    ),
  prune: prune(run)
})

const append = (run: Rows.Run): ChangelogStorage["append"] =>
  Effect.fnUntraced(function* (now, changes) {
    yield* Rows.inChunks(changes, chunkSize, (chunk) =>
      run(Statements.appendChanges, [JSON.stringify(chunk.map(encodeChange)), now])
    )
    const [last] = yield* run(Statements.lastSeq)
    const seq = Rows.integer(last?.[0])
    return { first: seq - changes.length + 1, last: seq }
  })

const read = (run: Rows.Run): ChangelogStorage["read"] =>
  Effect.fnUntraced(function* (options) {
    const { after, limit, prefix, scope } = options
    const rows = yield* scope === undefined
      ? run(Statements.readChanges(false), [prefix, after, limit])
      : run(Statements.readChanges(true), [prefix, after, limit, scope])
    return rows.map(toEntry)
  })

const prune = (run: Rows.Run): ChangelogStorage<never>["prune"] =>
  Effect.fnUntraced(function* (options) {
    const { before, limit, prefix, scope } = options
    const rows = yield* scope === undefined
      ? run(Statements.pruneChanges(false), [before, limit, prefix])
      : run(Statements.pruneChanges(true), [before, limit, prefix, scope])
    return rows.length
  })

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const chunkSize = 500

export const encodeChange = (change: StoredChange) => [change.scope, change.path, change.op, change.cid, change.mtime]

/** A row of either SQL tier. */
export const toEntry = (row: Rows.Values): StoredEntry => ({
  seq: Rows.integer(row[0]),
  scope: Rows.text(row[1]),
  path: Rows.text(row[2]),
  op: operation(row[3]),
  cid: Rows.textOrNull(row[4]),
  mtime: Rows.integerOrNull(row[5]),
  recordedAt: Rows.integer(row[6])
})
