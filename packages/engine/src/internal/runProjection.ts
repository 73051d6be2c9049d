import * as Event from "@strata/journal/Event"
import type { JournalError } from "@strata/journal/Journal"
import { Journal } from "@strata/journal/Journal"
import type { Projection } from "@strata/journal/Projections"
import type { StreamName } from "@strata/journal/StreamName"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { SqlError } from "effect/sql/SqlError"
import * as Stream from "effect/Stream"
import * as RunEvents from "../RunEvents.ts"
import * as RunStream from "../RunStream.ts"
import type { Attempt, Interruption } from "../RunStore.ts"
import { RunStore } from "../RunStore.ts"

export const make: Effect.Effect<Projection, never, RunStore | Journal> = Effect.gen(function* () {
  const store = yield* RunStore
  const journal = yield* Journal
  return {
    name: "strata/runs",
    rewind: Effect.fnUntraced(function* ({ after, entries, stream }) {
      const executionId = RunStream.executionId(stream)
      if (executionId === undefined) return
      const outcomes: Array<Attempt> = []
      const rewound = new Set<string>()
      yield* Stream.runForEach(entries, (entry) =>
        Effect.map(
          decode(entry),
          Option.map(({ payload, type }) => {
            rewound.add(type)
            if (type === "activity-completed") outcomes.push({ name: payload.name, attempt: payload.attempt })
          })
        )
      )
      if (rewound.has("run-started")) return yield* store.discard(executionId)
      yield* store.rewind(yield* Clock.currentTimeMillis, executionId, {
        outcomes,
        result: rewound.has("run-completed"),
        interrupted: rewound.has("run-interrupted") ? yield* interruptionUpTo(journal, stream, after) : undefined
      })
    })
  }
})

const decode = Event.decoder(RunEvents.all)

/** What a run was asked for by the entries up to a seq that there are. */
export const interruptionUpTo = Effect.fnUntraced(function* (
  journal: Journal["Service"],
  stream: StreamName,
  upTo: number
): Effect.fn.Return<Interruption, SqlError | JournalError> {
  const after = Math.max((yield* journal.floor(stream)) - 1, 0)
  const entries = yield* journal.read({ stream, after, upTo, types: [RunEvents.Interrupted.type] })
  const modes = (yield* Effect.forEach(entries, (entry) => decode(entry))).flatMap(
    Option.match({
      onNone: () => [],
      onSome: ({ payload, type }) => (type === "run-interrupted" ? [payload.mode] : [])
    })
  )
  return modes.includes("unsafe") ? "unsafe" : (modes[0] ?? "none")
})
