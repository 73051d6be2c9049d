/**
 * Keeps one index in step with changing content. A follower claims the paths that changed, reads what their content is
 * now, brings the index up to date and acknowledges the changes, in batches, as often as it is told to `drain`.
 * `FollowerScheduler` tells many followers.
 *
 * @since 0.1.0
 */
import type { DirtyQueue, DirtyQueueError } from "@strata/dirty-queue/DirtyQueue"
import * as P from "@strata/dirty-queue/Path"
import { DurableWriter } from "@strata/durable/DurableWriter"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as PubSub from "effect/PubSub"
import type * as Scope from "effect/Scope"
import type { SqlError } from "effect/sql/SqlError"
import * as Stream from "effect/Stream"
import type { ContentReader } from "./ContentReader.ts"
import type { IndexWriter } from "./IndexWriter.ts"
import * as Batch from "./internal/batch.ts"
import * as Pause from "./internal/pause.ts"
import * as Tick from "./Tick.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * What a follower is made of.
 *
 * @since 0.1.0
 * @category models
 */
export interface FollowerOptions<A> {
  /** Names the index. */
  readonly name: string
  /**
   * Names the state of the code that fills it: another version is another follower, to which all changes come from its
   * registration on. Content from before has to be brought to it: `Rebuild.run` does so, while the old version serves.
   */
  readonly version: string
  /** A scope to register in at once. Others are added with `register`. */
  readonly scope?: P.Scope | undefined
  /** Only paths that start with exactly this are followed. Default: all. */
  readonly prefix?: string | undefined
  readonly queue: DirtyQueue["Service"]
  readonly reader: ContentReader<A>
  readonly writer: IndexWriter<A>
  /** How many paths are claimed, and committed, together. Default 100. */
  readonly batchSize?: number | undefined
  /** How many of a batch's paths are read at a time. Default 8. */
  readonly concurrency?: number | undefined
  /**
   * How much work and memory a value takes, in a unit of the app's own. With `maxWeight` it bounds each write: a batch is
   * committed in portions. What a writer's `weights` tell of the entries that are removed or replaced is added. Default:
   * every batch is one portion.
   */
  readonly weigh?: ((value: A) => number) | undefined
  /**
   * The most that a portion weighs, except that a path which weighs more is a portion of its own. In memory are a portion
   * and the values that are derived at the same time.
   */
  readonly maxWeight?: number | undefined
  /** After how many paths a tick ends. Default 1,000. */
  readonly tickRows?: number | undefined
  /** After what time a tick starts no further batch. Default 1 second. */
  readonly tickTime?: Duration.Input | undefined
  /** How long a claim lasts; it is renewed while its batch is worked on. Default 30 seconds. */
  readonly lease?: Duration.Input | undefined
  /** First pause after a `Busy` failure, doubled while it goes on. Default 1 second. */
  readonly pauseBase?: Duration.Input | undefined
  /** The longest pause. Default 1 minute. */
  readonly pauseCap?: Duration.Input | undefined
}

// ---------------------------------------------------------------------------------------------------------------------
// service
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A follower of one index.
 *
 * @since 0.1.0
 * @category services
 */
export interface Follower {
  /** `name@version`: the name under which its dirty rows are kept. */
  readonly name: P.FollowerName
  readonly queue: DirtyQueue["Service"]
  /** Starts following a scope: from now on its changes are recorded for this follower. */
  readonly register: (scope: P.Scope) => Effect.Effect<void, SqlError | DirtyQueueError>
  /**
   * Works on the ready paths of a scope for one bounded tick. Content is read outside of any transaction; what was
   * derived is then committed with the acknowledgement. A path that fails does not fail the tick. Interruption gives
   * claimed paths back at once. Fails only when the store does.
   */
  readonly drain: (scope: P.Scope) => Effect.Effect<Tick.Tick, SqlError | DirtyQueueError>
  /** When the follower may be asked again, in milliseconds since the epoch: in the future only after a `Busy` failure. */
  readonly pausedUntil: Effect.Effect<number>
  /** Every tick that looked at a path. A slow consumer misses the oldest. */
  readonly ticks: Stream.Stream<Tick.Tick>
}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Makes a follower from values, so that two followers of one app can have different readers and writers. Its writes go
 * through the `DurableWriter` in context, which has to be the one that a `transactional` index writer stores through.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = Effect.fnUntraced(function* <A>(
  options: FollowerOptions<A>
): Effect.fn.Return<Follower, SqlError | DirtyQueueError, DurableWriter | Scope.Scope> {
  const durable = yield* DurableWriter
  const name = P.FollowerName.make(`${options.name}@${options.version}`)
  const pause = Pause.make(options)
  const ticks = yield* Effect.acquireRelease(PubSub.sliding<Tick.Tick>(256), PubSub.shutdown)
  const batch = Batch.make({ ...options, durable, name, pause })

  const register = Effect.fn("Follower.register")(function* (scope: P.Scope) {
    yield* options.queue.register({ follower: name, scope, prefix: options.prefix ?? "" })
  })

  const drain = Effect.fn("Follower.drain")(
    function* (scope: P.Scope) {
      const tick = yield* runTick(options, scope, pause, batch)
      if (tick.scanned > 0) {
        yield* PubSub.publish(ticks, tick)
      }
      return tick
    },
    // Whatever a tick achieved, the scope had its turn.
    (effect, scope) =>
      Effect.ensuring(effect, Effect.ignore(options.queue.markServed({ follower: name, scope }), { log: true }))
  )

  if (options.scope !== undefined) {
    yield* register(options.scope)
  }
  return { name, queue: options.queue, register, drain, pausedUntil: pause.until, ticks: Stream.fromPubSub(ticks) }
})

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/** Batch after batch, until nothing is ready, the budget is used up, or what the follower depends on is out of reach. */
const runTick = Effect.fnUntraced(function* <A>(
  options: FollowerOptions<A>,
  scope: P.Scope,
  pause: Pause.Pause,
  batch: Batch.Run
) {
  const batchSize = options.batchSize ?? 100
  const rows = options.tickRows ?? 1000
  const deadline =
    (yield* Clock.currentTimeMillis) + Duration.toMillis(Duration.fromInputUnsafe(options.tickTime ?? "1 second"))
  let tick = Tick.empty
  while (tick.scanned < rows) {
    const now = yield* Clock.currentTimeMillis
    if (now >= deadline || (yield* pause.until) > now) {
      return { ...tick, hasMore: true }
    }
    const limit = Math.min(batchSize, rows - tick.scanned)
    const next = yield* batch(scope, limit)
    tick = Tick.add(tick, next)
    if (next.scanned < limit) {
      return tick
    }
  }
  return { ...tick, hasMore: true }
})
