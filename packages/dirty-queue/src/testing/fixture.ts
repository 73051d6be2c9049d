/**
 * What the suites of this package have in common.
 *
 * @since 0.1.0
 */
import { DurableWriter } from "@strata/durable/DurableWriter"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import type { SqlError } from "effect/sql/SqlError"
import { type Change, Changelog, type ChangelogError, prefixed, put, remove } from "../Changelog.ts"
import type { ChangeSignal } from "../ChangeSignal.ts"
import { type Claim, DirtyQueue, type DirtyQueueOptions } from "../DirtyQueue.ts"
import * as P from "../Path.ts"
import type { Prefix } from "../Prefix.ts"

// ---------------------------------------------------------------------------------------------------------------------
// services
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A changelog by which changes are recorded alone, all of some or none: what every tier can do.
 *
 * @since 0.1.0
 * @category models
 */
export interface Records extends Pick<Changelog["Service"], "read" | "prune"> {
  readonly record: (
    changes: ReadonlyArray<Change>
  ) => Effect.Effect<Option.Option<{ readonly first: number; readonly last: number }>, SqlError | ChangelogError>
}

/**
 * The changelog of a tier, and views of it.
 *
 * @since 0.1.0
 * @category services
 */
export class Recorder extends Context.Service<Recorder, Records & { readonly prefixed: (prefix: Prefix) => Records }>()(
  "@strata/dirty-queue/testing/Recorder"
) {}

/**
 * Records each time in a write of its own.
 *
 * @since 0.1.0
 * @category services
 */
export const recorder: Layer.Layer<Recorder, never, Changelog | DurableWriter> = Layer.effect(
  Recorder,
  Effect.gen(function* () {
    const changelog = yield* Changelog
    const writer = yield* DurableWriter
    const inWrites = (changelog: Changelog["Service"]): Records => ({
      ...changelog,
      record: (changes) => writer.write(changelog.record(changes))
    })
    return { ...inWrites(changelog), prefixed: (prefix) => inWrites(prefixed(changelog, prefix)) }
  })
)

// ---------------------------------------------------------------------------------------------------------------------
// tiers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * What a tier with transactions provides.
 *
 * @since 0.1.0
 * @category models
 */
export type Services = Changelog | DirtyQueue | DurableWriter | ChangeSignal

/**
 * What a tier without transactions provides, and what is made of one that has them.
 *
 * @since 0.1.0
 * @category models
 */
export type Unjoined = Recorder | DirtyQueue | ChangeSignal

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
  readonly twoConnections?: TwoConnections<Services, E> | undefined
}

/**
 * A tier without transactions to test: what is promised of writes is left out.
 *
 * @since 0.1.0
 * @category models
 */
export interface UnjoinedTier<E> {
  /** As the layer of {@link Tier}. */
  readonly unjoined: (options?: DirtyQueueOptions) => Layer.Layer<Unjoined, E>
  readonly twoConnections?: TwoConnections<Unjoined, E> | undefined
}

/**
 * @since 0.1.0
 * @category models
 */
export type TwoConnections<R, E> = (
  options?: DirtyQueueOptions
) => Effect.Effect<readonly [Context.Context<R>, Context.Context<R>], E, Scope.Scope>

/**
 * What a suite needs of either kind of tier. `layer` is only there with transactions.
 *
 * @since 0.1.0
 * @category models
 */
export interface Tested<E> {
  readonly unjoined: (options?: DirtyQueueOptions) => Layer.Layer<Unjoined, E>
  readonly layer: ((options?: DirtyQueueOptions) => Layer.Layer<Services | Unjoined, E>) | undefined
  readonly twoConnections: TwoConnections<Unjoined, E> | undefined
}

/**
 * @since 0.1.0
 * @category models
 */
export const tested = <E>(tier: Tier<E> | UnjoinedTier<E>): Tested<E> => {
  if ("unjoined" in tier) return { ...tier, layer: undefined, twoConnections: tier.twoConnections }
  const layer = (options?: DirtyQueueOptions) => Layer.provideMerge(recorder, tier.layer(options))
  const { twoConnections } = tier
  return {
    unjoined: layer,
    layer,
    twoConnections:
      twoConnections &&
      ((options) =>
        Effect.flatMap(twoConnections(options), ([one, other]) => Effect.all([withRecorder(one), withRecorder(other)])))
  }
}

const withRecorder = (context: Context.Context<Services>) =>
  Layer.build(Layer.provideMerge(recorder, Layer.succeedContext(context)))

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

/**
 * A name of so many bytes, which is always the same one, and which a store cannot make shorter by compressing it.
 *
 * @since 0.1.0
 * @category names
 */
export const incompressible = (bytes: number): string => {
  let state = 1
  // Of the minimal standard generator, whose lowest bits are poor.
  const next = () => Math.floor((state = (state * 48271) % 0x7fffffff) / 0x2000000)
  return Array.from({ length: bytes }, () => alphabet[next()]).join("")
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// ---------------------------------------------------------------------------------------------------------------------
// steps
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Records changes alone, and gives their sequence numbers.
 *
 * @since 0.1.0
 * @category steps
 */
export const record = (changes: ReadonlyArray<Change>) => Recorder.use((changelog) => changelog.record(changes))

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
