import type { WriteTransaction } from "@strata/durable/DurableWriter"
import { afterCommit, DurableWriter } from "@strata/durable/DurableWriter"
import type { JournalError } from "@strata/journal/JournalError"
import type { StoredStream } from "@strata/journal/JournalStorage"
import { JournalStorage } from "@strata/journal/JournalStorage"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { SqlError } from "effect/sql/SqlError"
import * as Stream from "effect/Stream"
import { ClockStorage } from "../ClockStorage.ts"
import { ClockStore } from "../ClockStore.ts"
import type { RebuildReport, State } from "../DeferredClockFold.ts"
import { DeferredStorage } from "../DeferredStorage.ts"
import type { Unjoined } from "../FoldIncomplete.ts"
import { FoldIncomplete } from "../FoldIncomplete.ts"
import * as RunEvents from "../RunEvents.ts"
import * as RunStream from "../RunStream.ts"
import { RunStore } from "../RunStore.ts"
import * as FoldJoin from "./foldJoin.ts"
import * as Folding from "./folding.ts"
import * as FoldRows from "./foldRows.ts"

interface Parts {
  readonly journal: JournalStorage["Service"]
  readonly clocks: ClockStorage["Service"]
  readonly deferreds: DeferredStorage["Service"]
  readonly runs: RunStore["Service"]
}

export const rebuild = Effect.fn("DeferredClockFold.rebuild")(function* ({
  dryRun = false
}: { readonly dryRun?: boolean | undefined } = {}): Effect.fn.Return<
  RebuildReport,
  SqlError | JournalError | FoldIncomplete,
  ClockStorage | ClockStore | DeferredStorage | DurableWriter | JournalStorage | RunStore
> {
  const writer = yield* DurableWriter
  const { changes } = yield* ClockStore
  const parts: Parts = {
    journal: yield* JournalStorage,
    clocks: yield* ClockStorage,
    deferreds: yield* DeferredStorage,
    runs: yield* RunStore
  }
  // All in one write, so that what was joined is what is written. The states are folded twice rather than kept, as those
  // of all runs may not fit into memory.
  return yield* writer.write(
    Effect.gen(function* () {
      const { report, unjoined } = yield* join(parts)
      if (unjoined.length > 0) return yield* new FoldIncomplete({ unjoined })
      if (!dryRun) {
        yield* restore(parts)
        yield* afterCommit(changes.notify)
      }
      return report
    })
  )
})

// ---------------------------------------------------------------------------------------------------------------------
// joining
// ---------------------------------------------------------------------------------------------------------------------

const join = Effect.fnUntraced(function* (parts: Parts) {
  const unjoined: Array<Unjoined> = []
  let runs = 0
  let clocks = 0
  let deferreds = 0
  yield* forEachPage(parts.journal, (streams) =>
    Effect.gen(function* () {
      const rows = yield* parts.runs.find(streams.map(({ executionId }) => executionId))
      const known = new Set(rows.map(({ executionId }) => executionId))
      for (const { executionId, stream } of streams) {
        const captured = yield* capture(parts.journal, executionId)
        if (captured instanceof FoldIncomplete) {
          unjoined.push(...captured.unjoined)
          if (!known.has(executionId)) unjoined.push({ kind: "run_missing", executionId })
          continue
        }
        if (!known.has(executionId) && (yield* wasStarted(parts.journal, stream, captured))) {
          unjoined.push({ kind: "run_missing", executionId })
        }
        if (captured.deferreds.size > 0) {
          unjoined.push(...FoldJoin.completions(executionId, captured, yield* parts.deferreds.ofRun(executionId)))
        }
        runs++
        clocks += captured.clocks.size
        deferreds += captured.deferreds.size
      }
    })
  )
  const report = { runs, clocks, deferreds, unexplained: (yield* parts.deferreds.count) - deferreds }
  return { report, unjoined }
})

const capture = (
  journal: Parts["journal"],
  executionId: string
): Effect.Effect<State | FoldIncomplete, SqlError | JournalError> =>
  Folding.capture(executionId).pipe(
    Effect.catchTag("FoldIncomplete", (error) => Effect.succeed(error)),
    Effect.provideService(JournalStorage, journal)
  )

/** Whether a stream has more than completions, which can come before there is a run. */
const wasStarted = (
  journal: Parts["journal"],
  { floor, stream }: StoredStream,
  state: State
): Effect.Effect<boolean, SqlError> =>
  floor > 0 || state.clocks.size > 0 || Array.from(state.deferreds.values()).some((row) => row.consumedAt !== null)
    ? Effect.succeed(true)
    : Effect.map(
        journal.read({
          stream,
          after: 0,
          upTo: Number.MAX_SAFE_INTEGER,
          types: [RunEvents.Started.type],
          limit: 1
        }),
        ({ entries }) => entries.length > 0
      )

// ---------------------------------------------------------------------------------------------------------------------
// restoring
// ---------------------------------------------------------------------------------------------------------------------

const restore = Effect.fnUntraced(function* ({
  clocks,
  deferreds,
  journal
}: Parts): Effect.fn.Return<void, SqlError | JournalError | FoldIncomplete, WriteTransaction> {
  yield* clocks.removeAll
  yield* forEachPage(journal, (streams) =>
    Effect.gen(function* () {
      for (const { executionId } of streams) {
        const state = yield* Effect.provideService(Folding.capture(executionId), JournalStorage, journal)
        const rows = FoldRows.of(executionId, state)
        yield* clocks.put(rows.clocks)
        yield* deferreds.stamp(rows.stamps)
      }
    })
  )
})

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const pageSize = 500

/** The streams of runs, a page at a time. */
const forEachPage = <E, R>(
  journal: Parts["journal"],
  f: (
    streams: ReadonlyArray<{ readonly executionId: string; readonly stream: StoredStream }>
  ) => Effect.Effect<void, E, R>
): Effect.Effect<void, E | SqlError, R> =>
  Stream.paginate("", (after) =>
    Effect.map(journal.streams({ prefix: RunStream.prefix, after, limit: pageSize }), (streams) => [
      [streams.map((stream) => ({ executionId: stream.stream.slice(RunStream.prefix.length), stream }))],
      streams.length < pageSize ? Option.none() : Option.some(streams.at(-1)!.stream)
    ])
  ).pipe(Stream.runForEach(f))
