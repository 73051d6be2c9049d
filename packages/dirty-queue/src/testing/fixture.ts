/**
 * What the suites of this package have in common.
 *
 * @since 0.1.0
 */
import { DurableWriter } from "@strata/durable/DurableWriter"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type { SqlError } from "effect/sql/SqlError"
import { type Change, Changelog, put, remove } from "../Changelog.ts"
import type { ChangeSignal } from "../ChangeSignal.ts"
import { type Claim, DirtyQueue, type DirtyQueueOptions } from "../DirtyQueue.ts"
import * as P from "../Path.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * What a tier provides.
 *
 * @since 0.1.0
 * @category models
 */
export type Services = Changelog | DirtyQueue | DurableWriter | ChangeSignal

/**
 * A tier to test.
 *
 * @since 0.1.0
 * @category models
 */
export interface Tier<E> {
  /** Services over an empty store. `clock` is for both the queue and the changelog. */
  readonly layer: (options?: DirtyQueueOptions) => Layer.Layer<Services, E>
  /** Two independently built tiers over one store, where the store is outside of the process. */
  readonly twoConnections?:
    | ((
        options?: DirtyQueueOptions
      ) => Effect.Effect<readonly [Context.Context<Services>, Context.Context<Services>], E, Scope.Scope>)
    | undefined
}

// ---------------------------------------------------------------------------------------------------------------------
// names
// ---------------------------------------------------------------------------------------------------------------------

/**
 * @since 0.1.0
 * @category names
 */
export const search = P.FollowerName.make("search")

/**
 * @since 0.1.0
 * @category names
 */
export const thumbnails = P.FollowerName.make("thumbnails")

/**
 * @since 0.1.0
 * @category names
 */
export const home = P.Scope.make("home")

/**
 * @since 0.1.0
 * @category names
 */
export const path = (name: string): P.Path => P.Path.make(name)

/**
 * `count` paths that are in order.
 *
 * @since 0.1.0
 * @category names
 */
export const numbered = (count: number, prefix = ""): ReadonlyArray<P.Path> =>
  Array.from({ length: count }, (_, i) => path(`${prefix}${String(i).padStart(6, "0")}`))

// ---------------------------------------------------------------------------------------------------------------------
// steps
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Records changes in a write of their own.
 *
 * @since 0.1.0
 * @category steps
 */
export const record = (changes: ReadonlyArray<Change>): Effect.Effect<void, SqlError, Changelog | DurableWriter> =>
  Effect.gen(function* () {
    const changelog = yield* Changelog
    const writer = yield* DurableWriter
    yield* writer.write(changelog.record(changes))
  })

/**
 * Records puts of paths in {@link home}.
 *
 * @since 0.1.0
 * @category steps
 */
export const putAll = (...names: ReadonlyArray<string>) =>
  record(names.map((name) => put({ scope: home, path: path(name) })))

/**
 * Records deletes of paths in {@link home}.
 *
 * @since 0.1.0
 * @category steps
 */
export const removeAll = (...names: ReadonlyArray<string>) =>
  record(names.map((name) => remove({ scope: home, path: path(name) })))

/**
 * Claims for {@link search} in {@link home}.
 *
 * @since 0.1.0
 * @category steps
 */
export const claim = (limit = 100) => DirtyQueue.use((queue) => queue.claim({ follower: search, scope: home, limit }))

/**
 * Claims one row that has to be there.
 *
 * @since 0.1.0
 * @category steps
 */
export const claimOne = Effect.flatMap(claim(1), ([first]) =>
  first === undefined ? Effect.die("nothing is ready") : Effect.succeed(first)
)

/**
 * @since 0.1.0
 * @category steps
 */
export const ack = (...claims: ReadonlyArray<Claim>) => DirtyQueue.use((queue) => queue.ack(claims))

/**
 * @since 0.1.0
 * @category steps
 */
export const fail = (...claims: ReadonlyArray<Claim>) =>
  DirtyQueue.use((queue) => queue.fail(claims.map((claim) => ({ claim, error: "broken" }))))

/**
 * @since 0.1.0
 * @category steps
 */
export const register = (prefix = "") =>
  DirtyQueue.use((queue) => queue.register({ follower: search, scope: home, prefix }))

/**
 * @since 0.1.0
 * @category steps
 */
export const rows = DirtyQueue.use((queue) => queue.pending({ limit: 10_000 }))

/**
 * The only row there is.
 *
 * @since 0.1.0
 * @category steps
 */
export const row = Effect.flatMap(rows, ([first, second]) =>
  first === undefined || second !== undefined ? Effect.die("there is not exactly one row") : Effect.succeed(first)
)

/**
 * @since 0.1.0
 * @category steps
 */
export const pathsOf = (items: ReadonlyArray<{ readonly path: P.Path }>): ReadonlyArray<string> =>
  items.map((item) => item.path)
