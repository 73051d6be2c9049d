import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { DurableWriterOptions } from "../DurableWriter.ts"
import * as Metrics from "../Metrics.ts"

/**
 * Measures how long a write holds its transaction, from the start of its body to the end of its commit. `run` gets a
 * function that marks the start when the body begins, since the wait for other writers is not the body's doing.
 */
export const observeHold = (options: DurableWriterOptions) => {
  const slow = Duration.toMillis(Duration.fromInputUnsafe(options.slowWrite ?? Duration.seconds(1)))
  return <A, E, R>(
    run: (hold: <A3, E3, R3>(body: Effect.Effect<A3, E3, R3>) => Effect.Effect<A3, E3, R3>) => Effect.Effect<A, E, R>
  ): Effect.Effect<A, E, R> =>
    Effect.clockWith((clock) => {
      let start: number | undefined
      const hold = <A3, E3, R3>(body: Effect.Effect<A3, E3, R3>): Effect.Effect<A3, E3, R3> =>
        Effect.suspend(() => {
          start = clock.currentTimeMillisUnsafe()
          return body
        })
      return Effect.onExit(run(hold), () => {
        if (start === undefined) return Effect.void
        const held = clock.currentTimeMillisUnsafe() - start
        const record = Metrics.writeHeld(held)
        return held < slow ? record : Effect.andThen(record, warn(held))
      })
    })
}

const warn = (held: number): Effect.Effect<void> =>
  Effect.flatMap(Effect.option(Effect.currentSpan), (span) =>
    Effect.annotateLogs(Effect.logWarning("A write held its transaction for long"), {
      span: Option.isSome(span) ? span.value.name : "none",
      heldMs: held
    })
  )
