import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { ChangelogOptions } from "../Changelog.ts"
import type { DirtyQueueOptions } from "../DirtyQueue.ts"
import * as PostgresChangelog from "./postgresChangelog.ts"
import * as PostgresQueue from "./postgresQueue.ts"
import * as SqliteChangelog from "./sqliteChangelog.ts"
import * as SqliteQueue from "./sqliteQueue.ts"

/*
 * The storage that fits the `SqlClient` in context, and whose time counts there: a Postgres is shared by machines whose
 * clocks disagree.
 */

export const changelog = Effect.fnUntraced(function* (options: ChangelogOptions = {}) {
  const isShared = yield* isPostgres
  const storage = yield* isShared ? PostgresChangelog.make : SqliteChangelog.make
  return { storage, options: { ...options, clock: options.clock ?? ownClock(isShared) } }
})

export const queue = Effect.fnUntraced(function* (options: DirtyQueueOptions = {}) {
  const isShared = yield* isPostgres
  const storage = yield* isShared ? PostgresQueue.make : SqliteQueue.make
  return { storage, options: { ...options, clock: options.clock ?? ownClock(isShared) } }
})

const ownClock = (isShared: boolean) => (isShared ? "database" : "effect")

const isPostgres = Effect.map(SqlClient.SqlClient, (sql) =>
  sql.onDialectOrElse({ pg: () => true, orElse: () => false })
)
