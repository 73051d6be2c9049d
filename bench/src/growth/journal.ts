/** The journal: entries appended to streams that are there, to each its own share. */
import * as DurableWriter from "@strata/durable/DurableWriter"
import * as Event from "@strata/journal/Event"
import * as Journal from "@strata/journal/Journal"
import { StreamName } from "@strata/journal/StreamName"
import * as SqliteClient from "@strata/sqlite/SqliteClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { join } from "node:path"
import type { Operation } from "../growth.ts"
import { temporaryFolder } from "../Harness.ts"
import { measuredRows, microsecondsPerRow } from "./database.ts"

const Finished = Event.make("step-finished", Schema.Struct({ step: Schema.String, millis: Schema.Int }))

const perStream = 100

/** What a run of an app appends: events to its own stream, ten in a write. */
const appendTo = (stream: number, events: number) =>
  DurableWriter.write(
    Journal.Journal.use((journal) =>
      journal.append(
        StreamName.make(`run/${String(stream).padStart(9, "0")}`),
        Array.from({ length: events }, (_, i) => Finished.make({ step: `step-${i}`, millis: i }))
      )
    )
  )

const make = Effect.gen(function* () {
  const filename = join(yield* temporaryFolder, "journal.db")
  return yield* Layer.build(
    Layer.mergeAll(Journal.layerSql(), DurableWriter.layer()).pipe(
      Layer.provideMerge(SqliteClient.layer({ filename, synchronous: "OFF" }))
    )
  )
})

const perWrite = 10

export const append: Operation = {
  name: "append",
  about: `journal entries appended, ${perWrite} a write, to streams of ${perStream} each`,
  prepare: (rows) =>
    Effect.gen(function* () {
      const context = yield* make
      const streams = rows / perStream
      const range = Array.from({ length: streams }, (_, i) => i)
      yield* Effect.forEach(range, (stream) => appendTo(stream, perStream), { discard: true }).pipe(
        Effect.provideContext(context)
      )
      // Each run starts where the one before ended.
      let next = streams
      const work = Effect.suspend(() => {
        const writes = Array.from(
          { length: measuredRows / perWrite },
          (_, i) => next + Math.floor((i * perWrite) / perStream)
        )
        next += measuredRows / perStream
        return Effect.forEach(writes, (stream) => appendTo(stream, perWrite), { discard: true })
      })
      return Effect.provideContext(microsecondsPerRow(work), context)
    })
}
