import { describe, it } from "@effect/vitest"
import type { DurableWriter, WriteTransaction } from "@strata/durable/DurableWriter"
import { write } from "@strata/durable/DurableWriter"
import * as Event from "@strata/journal/Event"
import * as Fold from "@strata/journal/Fold"
import type { JournalError } from "@strata/journal/Journal"
import { Journal } from "@strata/journal/Journal"
import type { JournalStorage } from "@strata/journal/JournalStorage"
import { StreamName } from "@strata/journal/StreamName"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { SqlError } from "effect/sql/SqlError"
import { expectTypeOf } from "vitest"

const Started = Event.make("started", Schema.Struct({ at: Schema.Date }))
const Ended = Event.make("ended", Schema.Struct({ code: Schema.Int }))
const stream = StreamName.make("run/1")

describe("types", () => {
  it("lets append run nowhere but inside a write", () => {
    const append = Journal.use((journal) => journal.append(stream, [Ended.make({ code: 1 })]))
    expectTypeOf<Effect.Services<typeof append>>().toEqualTypeOf<Journal | WriteTransaction>()
    expectTypeOf(write(append)).toExtend<Effect.Effect<unknown, SqlError | JournalError, Journal | DurableWriter>>()
  })

  it("types payloads by the type of event", () => {
    // @ts-expect-error the code is a number
    Ended.make({ code: "1" })
    Fold.make({
      key: "fold",
      scope: "stream",
      events: [Started, Ended],
      state: Schema.Int,
      initial: () => 0,
      reduce: (state, event) => {
        expectTypeOf(event.type).toEqualTypeOf<"started" | "ended">()
        if (event.type === "started") {
          expectTypeOf(event.payload).toEqualTypeOf<{ readonly at: Date }>()
          return state
        }
        return state + event.payload.code
      }
    })
  })

  it("keeps folds of one stream and folds over all apart", () => {
    const base = { events: [Ended], state: Schema.Int, initial: () => 0, reduce: (state: number) => state } as const
    const ofStream = Fold.make({ ...base, key: "a", scope: "stream" })
    const global = Fold.make({ ...base, key: "b", scope: "global" })
    expectTypeOf(Fold.run(ofStream, { stream })).toEqualTypeOf<
      Effect.Effect<{ readonly state: number; readonly seq: number }, SqlError | JournalError, JournalStorage>
    >()
    expectTypeOf(ofStream.scope).toEqualTypeOf<Parameters<typeof Fold.run>[0]["scope"]>()
    expectTypeOf(global.scope).toEqualTypeOf<Parameters<typeof Fold.runAll>[0]["scope"]>()
    expectTypeOf(global.scope).not.toEqualTypeOf<Parameters<typeof Fold.run>[0]["scope"]>()
  })
})
