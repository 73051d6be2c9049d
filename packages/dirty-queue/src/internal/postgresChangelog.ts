import * as Migrations from "@strata/durable/Migrations"
import * as Rows from "@strata/durable/Rows"
import * as Effect from "effect/Effect"
import type * as Migrator from "effect/sql/Migrator"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { ChangelogStorage, StoredChange } from "../ChangelogStorage.ts"
import { migrationsPostgres } from "./postgresSchema.ts"
import * as Statements from "./postgresStatements.ts"
import { toEntry } from "./sqliteChangelog.ts"

export const make: Effect.Effect<ChangelogStorage, SqlError | Migrator.MigrationError, SqlClient.SqlClient> =
  Effect.gen(function* () {
    yield* Migrations.run(migrationsPostgres)
    const run = yield* Rows.run
    return {
      databaseTime: Effect.map(run(Statements.databaseTime), ([row]) => Rows.integer(row?.[0])),
      append: (now, changes) => append(run, now, changes),
      appendNow: (changes) => append(run, null, changes),
      read: read(run),
      firstSince: (time) =>
        Effect.map(run(Statements.firstSeqSince, [time]), ([row]) =>
          row === undefined ? undefined : Rows.integer(row[0])
        ),
      prune: prune(run)
    }
  })

/** In one statement, so that the rows of all paths are locked in one order; at the time of the database without one. */
const append = Effect.fnUntraced(function* (run: Rows.Run, now: number | null, changes: ReadonlyArray<StoredChange>) {
  const [row] = yield* run(Statements.appendChanges, [
    changes.map(({ scope }) => scope),
    changes.map(({ path }) => path),
    changes.map(({ op }) => op),
    columnOf(changes.map(({ cid }) => cid)),
    // Of one type, whatever their sizes.
    columnOf(changes.map(({ mtime }) => (mtime !== null && Number.isFinite(mtime) ? BigInt(mtime) : null))),
    now
  ])
  return { first: Rows.integer(row?.[0]), last: Rows.integer(row?.[1]) }
})

const read = (run: Rows.Run): ChangelogStorage["read"] =>
  Effect.fnUntraced(function* (options) {
    const { after, limit, prefix, scope } = options
    const rows = yield* scope === undefined
      ? run(Statements.readChanges(false), [prefix, after, limit])
      : run(Statements.readChanges(true), [prefix, after, limit, scope])
    return rows.map(toEntry)
  })

const prune = (run: Rows.Run): ChangelogStorage["prune"] =>
  Effect.fnUntraced(function* (options) {
    const { before, limit, prefix, scope } = options
    const rows = yield* scope === undefined
      ? run(Statements.pruneChanges(false), [before, limit, prefix])
      : run(Statements.pruneChanges(true), [before, limit, prefix, scope])
    return rows.length
  })

/** The driver gives an array the type of its values, so there is none without any. */
const columnOf = <A>(values: ReadonlyArray<A | null>): ReadonlyArray<A | null> | null =>
  values.every((value) => value === null) ? null : values
