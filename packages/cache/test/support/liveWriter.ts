import * as DurableWriter from "@strata/durable/DurableWriter"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

/**
 * A writer that waits in the time of the world before it tries again, whichever clock a test has: what it waits for, as
 * another write on Postgres, does not go by the test's clock. The writes themselves do.
 */
export const layer = Layer.effect(
  DurableWriter.DurableWriter,
  Effect.map(DurableWriter.make(), (writer) =>
    DurableWriter.DurableWriter.of({
      write: (effect, options) =>
        Clock.clockWith((clock) =>
          Effect.provideService(
            writer.write(Effect.provideService(effect, Clock.Clock, clock), options),
            Clock.Clock,
            Clock.Clock.defaultValue()
          )
        )
    })
  )
)
