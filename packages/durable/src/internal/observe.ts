import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { DurableWriterOptions } from "../DurableWriter.ts"
import * as Metrics from "../Metrics.ts"

/** Called when the body of a write begins, with the context in which the write was asked for; gives what to call at its end. */
export type Observe = (context: Context.Context<never>) => () => void

/** Measures how long the body of a write holds its transaction; the wait for other writers is not the body's doing. */
export const makeObserve = (options: DurableWriterOptions): Observe => {
  const slow = Duration.toMillis(Duration.fromInputUnsafe(options.slowWrite ?? Duration.seconds(1)))
  return (context) => {
    const clock = Context.get(context, Clock.Clock)
    const start = clock.currentTimeMillisUnsafe()
    return () => {
      const held = clock.currentTimeMillisUnsafe() - start
      Metrics.writeDuration.updateUnsafe(held, context)
      // In a fiber of its own: the end of a body waits for nothing.
      if (held >= slow) Effect.runForkWith(context)(warn(held))
    }
  }
}

const warn = (held: number): Effect.Effect<void> =>
  Effect.flatMap(Effect.option(Effect.currentSpan), (span) =>
    Effect.annotateLogs(Effect.logWarning("A write held its transaction for long"), {
      span: Option.isSome(span) ? span.value.name : "none",
      heldMs: held
    })
  )
