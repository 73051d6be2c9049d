/**
 * Waits for the deadlines of clocks, and fires them. It sleeps until the next deadline, whichever process set it, and is
 * woken when an earlier one comes: by the commits of this process at once, by those of others as its `signal` tells.
 *
 * Any number of processes can run it on one store: a clock fires once.
 *
 * @since 0.1.0
 */
import type { ChangeSignal } from "@strata/dirty-queue/ChangeSignal"
import type { DurableWriter, WriteTransaction } from "@strata/durable/DurableWriter"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import * as Driving from "./internal/clockDriving.ts"
import type { ClockStore, DurableClock } from "./ClockStore.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * How clocks are fired.
 *
 * @since 0.1.0
 * @category models
 */
export interface ClockDriverOptions<E = never, R = never> {
  /**
   * Runs in the write in which clocks fire, with those that do, such as to wake their runs. When it fails they have not
   * fired, and it is tried again.
   */
  readonly onFired?: ((fired: ReadonlyArray<DurableClock>) => Effect.Effect<void, E, R>) | undefined
  /**
   * Tells of commits of other processes, and may be the one of followers: on SQLite `ChangeSignal.makePoll` over the data
   * version, on Postgres `PostgresSignal`. Default: none, so that the deadlines of others are seen at the next wake, or
   * by the backstop.
   */
  readonly signal?: ChangeSignal["Service"] | undefined
  /** The longest sleep: a deadline that no signal told of, or a clock that was set forward, is noticed then. Default 10 s. */
  readonly backstop?: Duration.Input | undefined
  /** How many clocks fire in one write: a larger batch costs less, and makes those at its start later. Default 16. */
  readonly batchSize?: number | undefined
  /** How long to wait after a failure of the store, which is logged; doubled for each further one, up to the backstop. Default 100 ms. */
  readonly retryDelay?: Duration.Input | undefined
}

// ---------------------------------------------------------------------------------------------------------------------
// running
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Fires clocks, for as long as it is run.
 *
 * @since 0.1.0
 * @category running
 */
export const run: <E = never, R = never>(
  options?: ClockDriverOptions<E, R>
) => Effect.Effect<never, never, ClockStore | DurableWriter | Exclude<R, WriteTransaction>> = Driving.run
