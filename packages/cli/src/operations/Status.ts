/**
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { statSync } from "node:fs"
import * as Findings from "../Findings.ts"
import type { StatusResult } from "../Results.ts"
import * as Workspace from "../Workspace.ts"

/**
 * What is in an index, and what waits to get there.
 *
 * @since 0.1.0
 * @category operations
 */
export const status = (options: { readonly database: string }) =>
  Effect.gen(function* () {
    const { base, follower, index, queue, roots } = yield* Workspace.Workspace
    const { indexed } = yield* index.documents
    const { total } = yield* queue.stats({ follower: follower.name })
    const scopes = yield* roots
    const now = yield* Clock.currentTimeMillis
    return {
      database: options.database,
      databaseBytes: sizeOf(options.database) + sizeOf(`${options.database}-wal`),
      directories: scopes.map((scope) => Workspace.display(base, scope, "")),
      documents: indexed,
      dirty: total.rows - total.dead,
      oldestDirtyMs: total.oldestDirtyAt === undefined ? 0 : Math.max(0, now - total.oldestDirtyAt),
      failing: total.failing,
      deadLetters: total.dead,
      ...(yield* Findings.list(scopes.map((scope) => ({ scope, under: "" }))))
    } satisfies StatusResult
  }).pipe(Effect.provide(Workspace.layerExisting(options.database)))

const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0
