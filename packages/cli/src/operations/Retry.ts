/**
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Progress } from "../Progress.ts"
import * as Workspace from "../Workspace.ts"
import { report } from "./Index.ts"

/**
 * Gives dead letters another chance, and brings the index up to date.
 *
 * @since 0.1.0
 * @category operations
 */
export const retry = (options: { readonly database: string; readonly progress: Progress }) =>
  Effect.gen(function* () {
    const start = yield* Clock.currentTimeMillis
    const { follower, queue, roots } = yield* Workspace.Workspace
    const revived = yield* queue.revive({ follower: follower.name })
    const targets = (yield* roots).map((scope) => ({ scope, under: "" }))
    const { failures, result } = yield* report(yield* Workspace.sync(targets, options), start, targets)
    return { failures, result: { ...result, revived } }
  }).pipe(Effect.provide(Workspace.layerExisting(options.database)))
