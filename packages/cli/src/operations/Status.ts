/**
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { statSync } from "node:fs"
import type { Database } from "../Database.ts"
import * as Findings from "../Findings.ts"
import * as Unpublished from "../internal/unpublished.ts"
import type { StatusResult } from "../Results.ts"
import * as Workspace from "../Workspace.ts"

/**
 * What is in an index, and what waits to get there.
 *
 * @since 0.1.0
 * @category operations
 */
export const status = (options: { readonly database: Database }) =>
  Effect.gen(function* () {
    const { base, follower, index, queue, roots } = yield* Workspace.Workspace
    const { indexed } = yield* index.documents
    const { total } = yield* queue.stats({ follower: follower.name })
    const scopes = yield* roots
    const now = yield* Clock.currentTimeMillis
    return {
      database: options.database.name,
      databaseBytes: yield* bytesOf(options.database),
      directories: scopes.map((scope) => Workspace.display(base, scope, "")),
      documents: indexed,
      dirty: total.rows - total.dead,
      oldestDirtyMs: total.oldestDirtyAt === undefined ? 0 : Math.max(0, now - total.oldestDirtyAt),
      failing: total.failing,
      deadLetters: total.dead,
      unpublished: yield* Unpublished.waiting,
      ...(yield* Findings.list(scopes.map((scope) => ({ scope, under: "" }))))
    } satisfies StatusResult
  }).pipe(Effect.provide(Workspace.layerExisting(options.database)))

const bytesOf = ({ _tag, name }: Database): Effect.Effect<number, SqlError, SqlClient.SqlClient> =>
  _tag === "File"
    ? Effect.sync(() => sizeOf(name) + sizeOf(`${name}-wal`))
    : SqlClient.SqlClient.use((sql) => Effect.map(sql.unsafe(tableBytes).values, ([row]) => Number(row?.[0])))

/** Of our tables, with their indexes. */
const tableBytes = String.raw`SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)
  FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
  WHERE n.nspname = current_schema() AND c.relkind = 'r' AND c.relname LIKE 'strata\_%'`

const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0
