import { Compaction } from "@strata/journal/Compaction"
import type { JournalError, StreamInfo } from "@strata/journal/Journal"
import { Journal } from "@strata/journal/Journal"
import type { StreamName } from "@strata/journal/StreamName"
import * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import { ClockStore } from "../ClockStore.ts"
import { DeferredStore } from "../DeferredStore.ts"
import type { Services } from "../Retention.ts"
import * as RunEvents from "../RunEvents.ts"
import * as RunStream from "../RunStream.ts"
import { RunStore } from "../RunStore.ts"

/*
 * What was told to runs that there are not: a deferred can be completed before its run is started, and again after that
 * was removed. A stream that tells of a start is of a run that has lost its row: it stays, as it shows the damage.
 */

export interface Page {
  readonly executionIds: ReadonlyArray<string>
  /** Where the next page begins; `undefined` when this was the last. */
  readonly next: StreamName | undefined
}

/** Looks at some streams, and gives those without a run to which nothing was told behind `before`. */
export const page = Effect.fnUntraced(function* (
  after: StreamName | undefined,
  before: number
): Effect.fn.Return<Page, SqlError | JournalError, Services> {
  const journal = yield* Journal
  const streams = yield* journal.streams({ prefix: RunStream.prefix, after, limit: pageSize })
  const present = new Set(yield* RunStore.use((store) => store.present(streams.map(idOf))))
  const strays = yield* Effect.filter(
    streams.filter((info) => !present.has(idOf(info))),
    (info) => isStray(info, before)
  )
  return {
    executionIds: strays.map(idOf),
    next: streams.length < pageSize ? undefined : streams.at(-1)?.stream
  }
})

const pageSize = 500

const idOf = ({ stream }: StreamInfo): string => stream.slice(RunStream.prefix.length)

const isStray = Effect.fnUntraced(function* ({ floor, head, stream }: StreamInfo, before: number) {
  const journal = yield* Journal
  if (floor > 0) return false
  const [last] = yield* journal.read({ stream, after: head - 1, limit: 1 })
  if (last === undefined || last.recordedAt > before) return false
  return (yield* journal.read({ stream, types: [RunEvents.Started.type], limit: 1 })).length === 0
})

/** One write. Gives nothing when one of the runs was started meanwhile, and has removed nothing then. */
export const remove = Effect.fnUntraced(function* (executionIds: ReadonlyArray<string>) {
  const compaction = yield* Compaction
  const store = yield* RunStore
  const clocks = yield* ClockStore
  const deferreds = yield* DeferredStore
  const started = { _tag: "Started" } as const
  return yield* compaction
    .remove({
      streams: executionIds.map(RunStream.of),
      within: Effect.gen(function* () {
        if ((yield* store.present(executionIds)).length > 0) return yield* Effect.fail(started)
        return { clocks: yield* clocks.removeOf(executionIds), deferreds: yield* deferreds.removeOf(executionIds) }
      })
    })
    .pipe(
      Effect.map(({ deleted, within }) => ({ strays: executionIds.length, entries: deleted, ...within })),
      Effect.catchTag("Started", () => Effect.undefined)
    )
})
