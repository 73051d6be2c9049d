import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import type { DurableWriterOptions } from "../DurableWriter.ts"
import * as Metrics from "../Metrics.ts"

/**
 * Measures how long the body of a write holds its transaction; the wait for other writers is not the body's doing. Calls
 * `end` with how the body ended, at once.
 */
export const observeBody = (options: DurableWriterOptions) => {
  const slow = Duration.toMillis(Duration.fromInputUnsafe(options.slowWrite ?? Duration.seconds(1)))
  return <A, E, R>(body: Effect.Effect<A, E, R>, end?: (exit: Exit.Exit<A, E>) => void): Effect.Effect<A, E, R> =>
    Effect.withFiber(({ context }) => {
      const clock = Context.get(context, Clock.Clock)
      const start = clock.currentTimeMillisUnsafe()
      return Effect.onExitPrimitive(
        body,
        (exit) => {
          end?.(exit)
          const held = clock.currentTimeMillisUnsafe() - start
          Metrics.writeDuration.updateUnsafe(held, context)
          return held < slow ? undefined : warn(held)
        },
        true
      )
    })
}

const warn = (held: number): Effect.Effect<void> =>
  Effect.flatMap(Effect.option(Effect.currentSpan), (span) =>
    Effect.annotateLogs(Effect.logWarning("A write held its transaction for long"), {
      span: Option.isSome(span) ? span.value.name : "none",
      heldMs: held
    })
  )
