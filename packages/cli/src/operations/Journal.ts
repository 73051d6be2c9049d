/**
 * @since 0.1.0
 */
import { RunHistoryError } from "@strata/engine/RunHistory"
import { UnknownRun } from "@strata/engine/RunHistoryError"
import * as RunStream from "@strata/engine/RunStream"
import * as Journal from "@strata/journal/Journal"
import { StreamName } from "@strata/journal/StreamName"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import type { Database } from "../Database.ts"
import type { JournalEntry, JournalResult } from "../Results.ts"
import * as Workspace from "../Workspace.ts"
import * as Tables from "../internal/tables.ts"
import { toJournalEntry } from "../internal/journalEntry.ts"

/**
 * What to show of the journal.
 *
 * @since 0.1.0
 * @category models
 */
export interface JournalOptions {
  readonly database: Database
  /** The execution id of a run of a workflow. Default: those of all, and all else. */
  readonly run: string | undefined
  /** Default: all streams. */
  readonly stream: string | undefined
  /** How many of the last entries. */
  readonly limit: number
  /** Told where there is no stream of that name. */
  readonly onNoStream: Effect.Effect<void>
}

/**
 * The last entries of the journal, in order.
 *
 * @since 0.1.0
 * @category operations
 */
export const journal = (options: JournalOptions) =>
  Effect.gen(function* () {
    const entries = yield* last(options)
    if (entries.length === 0) yield* tellMissing(options)
    return { entries: entries.map(toJournalEntry) } satisfies JournalResult
  }).pipe(Effect.provide(layerExisting(options.database)))

/**
 * The last entries of the journal, and then each one that any process adds, until interrupted.
 *
 * @since 0.1.0
 * @category operations
 */
export const follow = (options: JournalOptions & { readonly onEntry: (entry: JournalEntry) => Effect.Effect<void> }) =>
  Effect.gen(function* () {
    const entries = yield* last(options)
    if (entries.length === 0) yield* tellMissing(options)
    yield* Effect.forEach(entries, (entry) => options.onEntry(toJournalEntry(entry)), { discard: true })
    return yield* Stream.runForEach(yield* following(options, entries.at(-1)), (entry) =>
      options.onEntry(toJournalEntry(entry))
    )
  }).pipe(Effect.provide(layerExisting(options.database)))

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/** A database without a journal is left as it is. */
const layerExisting = (database: Database) =>
  Layer.unwrap(Effect.as(Tables.require(database, Tables.journal), Workspace.layerStore(database)))

const nameOf = ({ run, stream }: JournalOptions): string | undefined => (run === undefined ? stream : RunStream.of(run))

const last = Effect.fnUntraced(function* (options: JournalOptions) {
  const { limit, run } = options
  const streams = yield* listStreams(nameOf(options))
  if (run !== undefined && streams.length === 0) {
    return yield* new RunHistoryError({ reason: new UnknownRun({ executionId: run }) })
  }
  const lists = yield* Effect.forEach(streams, (info) => lastOf(info, limit))
  const inOrder = lists.flat().toSorted((a, b) => a.transaction - b.transaction || a.ordinal - b.ordinal)
  return inOrder.slice(Math.max(0, inOrder.length - limit))
})

const tellMissing = Effect.fnUntraced(function* ({ onNoStream, stream }: JournalOptions) {
  if (stream !== undefined && (yield* listStreams(stream)).length === 0) yield* onNoStream
})

const listStreams = Effect.fnUntraced(function* (stream: string | undefined) {
  const { streams } = yield* Journal.Journal
  const found: Array<Journal.StreamInfo> = []
  for (;;) {
    const page = yield* streams({ prefix: stream, after: found.at(-1)?.stream, limit: pageSize })
    found.push(...page)
    if (page.length < pageSize) break
  }
  return stream === undefined ? found : found.filter((info) => info.stream === stream)
})

const pageSize = 1000

/** Seqs have gaps, so the window grows until there is enough in it. */
const lastOf = Effect.fnUntraced(function* ({ floor, head, stream }: Journal.StreamInfo, limit: number) {
  const { read } = yield* Journal.Journal
  if (limit === 0) return []
  const start = Math.max(0, floor - 1)
  for (let window = limit; ; window *= 2) {
    const after = Math.max(start, head - window)
    const found = yield* read({ stream, after, limit: window })
    if (found.length >= limit || after === start) return found
  }
})

const following = Effect.fnUntraced(function* (options: JournalOptions, shown: Journal.Entry | undefined) {
  const stream = nameOf(options)
  const service = yield* Journal.Journal
  if (stream === undefined) return service.followAll({ after: shown, compacted: "skip" })
  const name = StreamName.make(stream)
  return service.follow({ stream: name, after: shown?.seq ?? (yield* service.floor(name)) })
})
