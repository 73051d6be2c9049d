import * as Migrations from "@strata/durable/Migrations"
import * as Rows from "@strata/durable/Rows"
import * as Effect from "effect/Effect"
import type * as Migrator from "effect/sql/Migrator"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { DeferredKey, DeferredStorage, StoredDeferred } from "../DeferredStorage.ts"
import * as PostgresStatements from "./deferredPostgresStatements.ts"
import * as SqliteStatements from "./deferredStatements.ts"
import { migrationsPostgres, migrationsSqlite } from "./stateSchema.ts"

type Storage = DeferredStorage["Service"]

/** What both databases have: the same statements with the same parameters, each in its own words. */
type Statements = { readonly [Name in keyof typeof SqliteStatements]: string }

export const make: Effect.Effect<Storage, SqlError | Migrator.MigrationError, SqlClient.SqlClient> =
  SqlClient.SqlClient.use((sql) =>
    sql.onDialectOrElse({
      pg: () => makeWith(migrationsPostgres, PostgresStatements),
      orElse: () => makeWith(migrationsSqlite, SqliteStatements)
    })
  )

const makeWith = Effect.fnUntraced(function* (migrations: Migrations.MigrationSet, statements: Statements) {
  yield* Migrations.run(migrations)
  return storage(yield* Rows.run, statements)
})

const storage = (run: Rows.Run, Statements: Statements): Storage => ({
  insert: (rows) =>
    Effect.map(
      Rows.inChunks(rows, chunk, (rows) =>
        run(Statements.insert, [
          JSON.stringify(
            rows.map(({ completedAt, consumedAt, executionId, exit, metadata, name }) => [
              executionId,
              name,
              exit,
              metadata,
              completedAt,
              consumedAt
            ])
          )
        ])
      ),
      (rows) => rows.map(toKey)
    ),
  consume: (now, keys) => Effect.map(run(Statements.consume, [pairs(keys), now]), (rows) => rows.map(toKey)),

  find: (keys) => Effect.map(run(Statements.find, [pairs(keys)]), (rows) => rows.map(toDeferred)),
  ofRun: (executionId) => Effect.map(run(Statements.ofRun, [executionId]), (rows) => rows.map(toDeferred)),
  count: Effect.map(run(Statements.count), ([row]) => Rows.integer(row?.[0])),

  stamp: (rows) =>
    Effect.asVoid(
      Rows.inChunks(rows, chunk, (rows) =>
        run(Statements.stamp, [
          JSON.stringify(
            rows.map(({ completedAt, consumedAt, executionId, name }) => [executionId, name, completedAt, consumedAt])
          )
        ])
      )
    ),
  remove: (keys) => Effect.asVoid(run(Statements.remove, [pairs(keys)])),
  removeOf: (executionIds) =>
    Effect.map(run(Statements.removeOf, [JSON.stringify(executionIds)]), (rows) => rows.length)
})

const chunk = 1000

const pairs = (keys: ReadonlyArray<DeferredKey>): string =>
  JSON.stringify(keys.map(({ executionId, name }) => [executionId, name]))

/** Read by position, see the columns of the statements. */
const toKey = (row: Rows.Values): DeferredKey => ({ executionId: Rows.text(row[0]), name: Rows.text(row[1]) })

const toDeferred = (row: Rows.Values): StoredDeferred => ({
  executionId: Rows.text(row[0]),
  name: Rows.text(row[1]),
  exit: Rows.text(row[2]),
  metadata: Rows.textOrNull(row[3]),
  completedAt: Rows.integerOrNull(row[4]),
  consumedAt: Rows.integerOrNull(row[5])
})
