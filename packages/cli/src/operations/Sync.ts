/**
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type { Database } from "../Database.ts"
import type { SharedTier } from "../SharedTier.ts"
import * as Synchronising from "../Synchronising.ts"
import * as Workspace from "../Workspace.ts"

/**
 * Brings the index of every directory in it up to date.
 *
 * @since 0.1.0
 * @category operations
 */
export const syncAll = (database: Database, shared: SharedTier | undefined) =>
  Effect.gen(function* () {
    const { roots } = yield* Workspace.Workspace
    yield* Synchronising.sync((yield* roots).map((scope) => ({ scope, under: "" })))
  }).pipe(Effect.provide(Workspace.layerExisting(database, shared)))
