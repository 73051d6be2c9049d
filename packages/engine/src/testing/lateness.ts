/**
 * Measures how late clocks fire.
 *
 * @since 0.1.0
 */
import { afterCommit, write } from "@strata/durable/DurableWriter"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type { ClockDriverOptions } from "../ClockDriver.ts"
import * as ClockDriver from "../ClockDriver.ts"
import { ClockStore } from "../ClockStore.ts"

/**
 * Milliseconds from the deadline of a clock until it had fired, the commit included.
 *
 * @since 0.1.0
 * @category models
 */
export interface Lateness {
  readonly count: number
  readonly least: number
  readonly p50: number
  readonly p99: number
  readonly greatest: number
}

/**
 * Schedules clocks, each of a run of its own and in a write of its own.
 *
 * @since 0.1.0
 * @category measuring
 */
export const schedule = (count: number, duration: Duration.Input) =>
  Effect.forEach(
    Array.from({ length: count }, (_, i) => `lateness-${i}`),
    (executionId) =>
      write(ClockStore.use((clocks) => clocks.schedule([{ executionId, name: "clock", deferred: "clock", duration }]))),
    { concurrency: "unbounded", discard: true }
  )

/**
 * Fires clocks until so many have fired, and gives how late they were. Run it beside {@link schedule}, or on the store of
 * a process that has scheduled them and is gone.
 *
 * @since 0.1.0
 * @category measuring
 */
export const measure = Effect.fnUntraced(function* (count: number, options?: Pick<ClockDriverOptions, "signal">) {
  const lateness: Array<number> = []
  const done = yield* Deferred.make<void>()
  const driver = yield* Effect.forkChild(
    ClockDriver.run({
      ...options,
      onFired: (fired) =>
        afterCommit(
          Effect.gen(function* () {
            const now = yield* Clock.currentTimeMillis
            for (const { deadline } of fired) lateness.push(now - deadline)
            if (lateness.length >= count) yield* Deferred.succeed(done, undefined)
          })
        )
    })
  )
  yield* Deferred.await(done)
  yield* Fiber.interrupt(driver)
  return summary(lateness)
})

/**
 * @since 0.1.0
 * @category measuring
 */
export const summary = (lateness: ReadonlyArray<number>): Lateness => {
  const sorted = lateness.toSorted((a, b) => a - b)
  const at = (share: number): number => sorted[Math.min(Math.floor(sorted.length * share), sorted.length - 1)] ?? 0
  return { count: sorted.length, least: at(0), p50: at(0.5), p99: at(0.99), greatest: at(1) }
}
