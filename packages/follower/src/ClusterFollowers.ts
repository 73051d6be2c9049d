/**
 * Followers spread over the machines of an Effect Cluster. Each scope is a singleton of the cluster, so that its
 * follower runs on one runner at a time, and on another when that one stops or dies. Who has which scope is decided by
 * the `Sharding` in context: locks and membership are in its `RunnerStorage`, as `SqlRunnerStorage` keeps them in
 * Postgres. Nothing is sent between runners, so a cluster without message storage will do.
 *
 * @since 0.1.0
 */
import { ChangeSignal } from "@strata/dirty-queue/ChangeSignal"
import type { DirtyQueue } from "@strata/dirty-queue/DirtyQueue"
import type * as P from "@strata/dirty-queue/Path"
import { Sharding } from "effect/cluster/Sharding"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FiberMap from "effect/FiberMap"
import * as Layer from "effect/Layer"
import type * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { SqlError } from "effect/sql/SqlError"
import type { Follower } from "./Follower.ts"
import type { FollowerSchedulerOptions } from "./FollowerScheduler.ts"
import * as Stay from "./internal/stay.ts"
import { storeRetry } from "./internal/storeRetry.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Followers to be placed, one for each scope. All runners of a cluster place the same.
 *
 * @since 0.1.0
 * @category models
 */
export interface Placed<E1, R1, E2, R2> {
  /** Tells these followers from others in the cluster, whose scopes may be the same. */
  readonly name: string
  /**
   * The scopes that are followed, all of them, as they are now; {@link registeredScopes} are those of a follower. A scope
   * that is not among them any more is stopped.
   */
  readonly scopes: Effect.Effect<Iterable<P.Scope>, E1, R1>
  /**
   * Makes the follower of a scope when it comes to this runner, in a `Scope` that closes when it leaves; eight at a time.
   * What fails is logged and tried again with growing delays, and holds up no other scope.
   */
  readonly follower: (scope: P.Scope) => Effect.Effect<Follower, E2, R2>
  /** How often `scopes` is asked. Default 5 seconds. */
  readonly refresh?: Duration.Input | undefined
  /** The shard group, of those that the cluster has: one that no runner is assigned is not served. Default `default`. */
  readonly shardGroup?: string | undefined
}

/**
 * What of the followers that were placed is on this runner.
 *
 * @since 0.1.0
 * @category models
 */
export interface Placement {
  /** The scopes whose followers are here, in no order. */
  readonly here: Effect.Effect<ReadonlyArray<P.Scope>>
}

// ---------------------------------------------------------------------------------------------------------------------
// errors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Followers of this name are placed by this process already.
 *
 * @since 0.1.0
 * @category errors
 */
export class AlreadyPlaced extends Schema.TaggedError<AlreadyPlaced>("@strata/follower/AlreadyPlaced")(
  "AlreadyPlaced",
  { name: Schema.String }
) {
  override get message(): string {
    return `The followers ${this.name} are placed already`
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// service
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Places followers on the runners of a cluster.
 *
 * **At most one at a time.** A scope belongs to a shard, and a runner serves it only while it holds the lock of that
 * shard. A runner that cannot confirm its locks interrupts its followers before others can have them, and a follower that
 * is interrupted gives its claims back. A process that was frozen may go on for a moment beside its successor when it
 * wakes up. The leases of the queue guard that moment: an acknowledgement of what another has claimed since is `Lost`,
 * and what a transactional index wrote with it is rolled back.
 *
 * **Nothing is lost when a scope moves.** What is to be done is in the queue, not in the follower. What a dead runner had
 * claimed is ready again when its leases have ended.
 *
 * **Takeover.** A runner that ends hands its shards over: others have them after a `refreshAssignmentsInterval` and about
 * a second. One that dies is noticed once it was silent for `shardLockExpiration`, so its scopes are served again after
 * that, a `refreshAssignmentsInterval` and about two seconds: 40 seconds with the defaults of `ShardingConfig`, or when
 * the claims' leases have ended if that is later. The runner that checks the health of the others may notice earlier.
 *
 * @since 0.1.0
 * @category services
 */
export class ClusterFollowers extends Context.Service<
  ClusterFollowers,
  {
    /**
     * Serves those of the scopes that the cluster gives to this runner, until the scope closes: their followers are
     * interrupted then, and claimed paths are given back. A store that fails is logged and tried again with growing
     * delays, and so are bugs of the app's own code.
     */
    readonly run: <E1, R1, E2, R2>(
      placed: Placed<E1, R1, E2, R2>
    ) => Effect.Effect<Placement, AlreadyPlaced, R1 | Exclude<R2, Scope.Scope> | Scope.Scope>
  }
>()("@strata/follower/ClusterFollowers") {}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Placement by the `Sharding` in context; followers are woken by the `ChangeSignal` in context, which has to hear of the
 * changes of other machines to be quicker than `backstop`. `concurrency` counts the followers of this runner.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = Effect.fnUntraced(function* (
  options: FollowerSchedulerOptions = {}
): Effect.fn.Return<ClusterFollowers["Service"], never, Sharding | ChangeSignal> {
  const sharding = yield* Sharding
  const signal = yield* ChangeSignal
  const turns = yield* Semaphore.make(options.concurrency ?? 2)
  const makings = yield* Semaphore.make(madeAtOnce)
  const backstop = options.backstop ?? "5 seconds"
  const retry = storeRetry(options)
  const names = new Set<string>()

  return ClusterFollowers.of({
    run: Effect.fnUntraced(function* <E1, R1, E2, R2>(placed: Placed<E1, R1, E2, R2>) {
      if (names.has(placed.name)) {
        return yield* new AlreadyPlaced({ name: placed.name })
      }
      yield* Effect.acquireRelease(
        Effect.sync(() => names.add(placed.name)),
        () => Effect.sync(() => names.delete(placed.name))
      )
      const stays: Stay.Stays = new Map()
      const registrations = yield* FiberMap.make<P.Scope>()

      const stay = (scope: P.Scope) =>
        Effect.gen(function* () {
          const follower = yield* makings.withPermit(placed.follower(scope))
          const stay = yield* Stay.begin(stays, scope, follower)
          return yield* forever(Stay.serve(stay, scope, turns), "A follower's store failed", retry)
        }).pipe(Effect.scoped, (run) => forever(run, "A follower could not be made", retry), annotate(placed, scope))

      // The registration ends with its fiber, and waits until the follower has stopped.
      const register = (scope: P.Scope) =>
        sharding
          .registerSingleton(`${encodeURIComponent(placed.name)}/${scope}`, stay(scope), {
            shardGroup: placed.shardGroup
          })
          .pipe(Effect.andThen(Effect.never), Effect.scoped)

      const refresh = Effect.gen(function* () {
        const listed = new Set(yield* placed.scopes)
        for (const scope of listed) {
          yield* FiberMap.run(registrations, scope, register(scope), { onlyIfMissing: true })
        }
        const gone = Array.from(registrations, ([scope]) => scope).filter((scope) => !listed.has(scope))
        yield* Effect.forEach(gone, (scope) => FiberMap.remove(registrations, scope), { concurrency: "unbounded" })
        yield* Effect.sleep(placed.refresh ?? "5 seconds")
      })

      yield* Effect.forkScoped(
        forever(refresh, "The scopes to be followed could not be listed", retry).pipe(annotate(placed))
      )
      yield* Effect.forkScoped(
        forever(Stay.wakeReady(stays, signal, backstop), "A follower's store failed", retry).pipe(annotate(placed))
      )
      return { here: Effect.sync(() => [...stays.keys()]) }
    })
  })
})

/**
 * The scopes in which a follower is registered with the queue. With them as `scopes`, a scope is placed once somebody
 * has registered the follower in it, as in the write that creates a tenant, and taken off by `unregister`.
 *
 * @since 0.1.0
 * @category constructors
 */
export const registeredScopes = (
  queue: DirtyQueue["Service"],
  follower: P.FollowerName
): Effect.Effect<ReadonlyArray<P.Scope>, SqlError> =>
  Effect.map(queue.registrations({ follower }), (registrations) => registrations.map(({ scope }) => scope))

// ---------------------------------------------------------------------------------------------------------------------
// layers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Placement as a service.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  options?: FollowerSchedulerOptions
): Layer.Layer<ClusterFollowers, never, Sharding | ChangeSignal> => Layer.effect(ClusterFollowers, make(options))

/**
 * Serves followers for the life of the layer.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerFollowers = <E1, R1, E2, R2>(
  placed: Placed<E1, R1, E2, R2>
): Layer.Layer<never, AlreadyPlaced, ClusterFollowers | R1 | Exclude<R2, Scope.Scope>> =>
  Layer.effectDiscard(ClusterFollowers.use((followers) => followers.run(placed)))

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/** How many followers are made at a time, as thousands may come to a runner at once. */
const madeAtOnce = 8

/** Repeats what may fail. A bug in one scope ends neither its follower for good nor anybody else's. */
const forever = <E, R>(
  effect: Effect.Effect<void, E, R>,
  message: string,
  retry: Schedule.Schedule<unknown>
): Effect.Effect<never, Cause.Cause<E>, R> =>
  effect.pipe(
    Effect.sandbox,
    Effect.tapError((cause) => (Cause.hasInterruptsOnly(cause) ? Effect.void : Effect.logError(message, cause))),
    Effect.retry(retry),
    Effect.forever
  )

const annotate = (placed: { readonly name: string }, scope?: P.Scope) =>
  Effect.annotateLogs({ followers: placed.name, ...(scope !== undefined && { scope }) })
