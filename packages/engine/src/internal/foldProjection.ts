import { WriteTransaction } from "@strata/durable/DurableWriter"
import * as Event from "@strata/journal/Event"
import * as Fold from "@strata/journal/Fold"
import type { JournalError } from "@strata/journal/JournalError"
import { JournalStorage } from "@strata/journal/JournalStorage"
import type { Projection, RewoundEntries } from "@strata/journal/Projections"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { SqlError } from "effect/sql/SqlError"
import * as Stream from "effect/Stream"
import { ClockStorage } from "../ClockStorage.ts"
import { ClockStore } from "../ClockStore.ts"
import { DeferredStorage } from "../DeferredStorage.ts"
import * as RunStream from "../RunStream.ts"
import * as StateEvents from "../StateEvents.ts"
import * as Folding from "./folding.ts"
import * as FoldRows from "./foldRows.ts"

export const make: Effect.Effect<Projection, never, ClockStorage | ClockStore | DeferredStorage | JournalStorage> =
  Effect.gen(function* () {
    const clocks = yield* ClockStorage
    const deferreds = yield* DeferredStorage
    const storage = yield* JournalStorage
    const { changes } = yield* ClockStore
    return {
      name: Folding.checkpointKey,
      rewind: Effect.fnUntraced(function* ({ entries, stream }) {
        const executionId = RunStream.executionId(stream)
        if (executionId === undefined) return
        const touched = yield* touchedBy(entries)
        if (touched.clocks.size === 0 && touched.deferreds.size === 0) return
        const { state } = yield* Effect.provideService(Fold.run(Folding.fold, { stream }), JournalStorage, storage)
        const rows = FoldRows.of(executionId, state)
        yield* clocks.remove(FoldRows.without(executionId, touched.clocks, state.clocks))
        yield* clocks.put(rows.clocks.filter(({ name }) => touched.clocks.has(name)))
        yield* deferreds.remove(FoldRows.without(executionId, touched.deferreds, state.deferreds))
        yield* deferreds.stamp(rows.stamps.filter(({ name }) => touched.deferreds.has(name)))
        yield* WriteTransaction.use((transaction) => transaction.afterCommit(changes.notify))
      })
    }
  })

/** The names that rewound entries tell of. */
const touchedBy = Effect.fnUntraced(function* (
  entries: RewoundEntries["entries"]
): Effect.fn.Return<
  { readonly clocks: ReadonlySet<string>; readonly deferreds: ReadonlySet<string> },
  SqlError | JournalError
> {
  const clocks = new Set<string>()
  const deferreds = new Set<string>()
  yield* Stream.runForEach(entries, (entry) =>
    Effect.map(
      decode(entry),
      Option.map(({ payload: { name }, type }) =>
        (type === "clock-scheduled" || type === "clock-completed" ? clocks : deferreds).add(name)
      )
    )
  )
  return { clocks, deferreds }
})

const decode = Event.decoder(StateEvents.all)
