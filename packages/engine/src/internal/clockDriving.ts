import type { WriteTransaction } from "@strata/durable/DurableWriter"
import { DurableWriter } from "@strata/durable/DurableWriter"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { ClockDriverOptions } from "../ClockDriver.ts"
import { ClockStore } from "../ClockStore.ts"
import * as Metrics from "../ClockMetrics.ts"

export const run = Effect.fnUntraced(function* <E = never, R = never>(
  options: ClockDriverOptions<E, R> = {}
): Effect.fn.Return<never, never, ClockStore | DurableWriter | Exclude<R, WriteTransaction>> {
  const clocks = yield* ClockStore
  const backstop = Duration.toMillis(options.backstop ?? "10 seconds")
  const shortest = Duration.toMillis(options.retryDelay ?? "100 millis")
  const fireDue = firing(clocks, yield* DurableWriter, options)
  const { changes } = clocks
  const { signal } = options
  let failures = 0
  while (true) {
    // Before the look, so that no change falls between it and the wait.
    const seen = yield* changes.count
    const seenOfOthers = signal === undefined ? 0 : yield* signal.count
    const left = yield* Effect.catchCause(fireDue, (cause) =>
      Cause.hasInterruptsOnly(cause) ? Effect.interrupt : Effect.as(complain(cause, failures), undefined)
    )
    failures = left === undefined ? failures + 1 : 0
    const sleep = Effect.sleep(Math.min(left ?? shortest * 2 ** (failures - 1), backstop))
    if (left === undefined) {
      yield* sleep
    } else {
      const woken = changes.awaitAfter(seen)
      yield* Effect.raceFirst(
        sleep,
        signal === undefined ? woken : Effect.raceFirst(woken, signal.awaitAfter(seenOfOthers))
      )
    }
  }
})

/** Fires what is due, and gives how long it is until the next deadline. */
const firing = <E, R>(
  clocks: ClockStore["Service"],
  writer: DurableWriter["Service"],
  { batchSize, onFired }: ClockDriverOptions<E, R>
) => {
  const batch = Effect.gen(function* () {
    const { fired, more } = yield* clocks.fire({ limit: batchSize })
    if (onFired !== undefined && fired.length > 0) yield* onFired(fired)
    return { fired, more }
  })
  return Effect.gen(function* () {
    while (true) {
      // Looks before it writes, as whoever is woken by others has mostly nothing to do.
      const next = yield* clocks.next
      if (Option.isNone(next)) return Infinity
      if (next.value.left > 0) return next.value.left
      const { fired, more } = yield* writer.write(batch, { isolation: "read committed" })
      yield* Metrics.firedAt(fired, yield* Clock.currentTimeMillis)
      // What is due and was not fired is being completed by somebody else: it is theirs to finish.
      if (!more && fired.length === 0) return 10
    }
  })
}

const complain = (cause: Cause.Cause<unknown>, failures: number): Effect.Effect<void> =>
  failures === 0 ? Effect.logWarning("Clocks cannot be fired", cause) : Effect.void
