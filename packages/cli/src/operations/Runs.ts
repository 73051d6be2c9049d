/**
 * @since 0.1.0
 */
import { ClockStore } from "@strata/engine/ClockStore"
import { DeferredStore } from "@strata/engine/DeferredStore"
import * as RunEvents from "@strata/engine/RunEvents"
import { RunHistory, RunHistoryError } from "@strata/engine/RunHistory"
import { UnknownRun } from "@strata/engine/RunHistoryError"
import * as RunStream from "@strata/engine/RunStream"
import { RunStore, type Status, type StoredRun } from "@strata/engine/RunStore"
import { type Entry, Journal } from "@strata/journal/Journal"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Database } from "../Database.ts"
import { failureMessage } from "../internal/failureMessage.ts"
import { toJournalEntry } from "../internal/journalEntry.ts"
import type { RunListResult, RunResult, RunRewindResult, RunShowResult } from "../Results.ts"
import * as Runs from "../Runs.ts"

/**
 * A run that has ended cannot be resumed.
 *
 * @since 0.1.0
 * @category errors
 */
export class RunEnded extends Schema.TaggedError<RunEnded>("@strata/cli/RunEnded")("RunEnded", {
  executionId: Schema.String
}) {
  override get message(): string {
    return (
      `the run "${this.executionId}" has ended, and resume is for one that is held or suspended: ` +
      `strata runs rewind ${this.executionId} SEQ --resume takes it back to an entry and lets it go on`
    )
  }
}

interface Options {
  readonly database: Database
}

/**
 * The latest runs, newest first.
 *
 * @since 0.1.0
 * @category operations
 */
export const list = ({
  database,
  limit,
  state,
  workflow
}: Options & {
  readonly state: Status | undefined
  readonly workflow: string | undefined
  readonly limit: number
}) =>
  Effect.gen(function* () {
    const { list } = yield* RunStore
    const runs = yield* list({ status: state, workflow, before: Number.MAX_SAFE_INTEGER, limit })
    return { runs: yield* Effect.forEach(runs, toResult) } satisfies RunListResult
  }).pipe(Effect.provide(Runs.layerExisting(database)))

/**
 * A run, with what happened to it.
 *
 * @since 0.1.0
 * @category operations
 */
export const show = ({ database, executionId }: Options & { readonly executionId: string }) =>
  Effect.gen(function* () {
    const run = yield* find(executionId)
    const message = failureMessage(run.result)
    const journal = yield* Journal
    const stream = RunStream.of(executionId)
    const floor = yield* journal.floor(stream)
    const entries: Array<Entry> = []
    while (true) {
      const after = entries.at(-1)?.seq ?? Math.max(floor - 1, 0)
      const page = yield* journal.read({ stream, after, limit: pageSize })
      entries.push(...page)
      if (page.length < pageSize) break
    }
    const clocks = yield* ClockStore.use((store) => store.ofRun(executionId))
    const deferreds = yield* DeferredStore.use((store) => store.ofRun(executionId))
    return {
      ...(yield* toResult(run)),
      ...(message === undefined ? {} : { message }),
      floor,
      clocks: clocks
        .filter(({ completedAt }) => completedAt === undefined)
        .map(({ deadline, name }) => ({ name, deadline })),
      deferreds: deferreds.map(({ name }) => name),
      entries: entries.map(toJournalEntry)
    } satisfies RunShowResult
  }).pipe(Effect.provide(Runs.layerExisting(database)))

/**
 * Takes a run back to an entry.
 *
 * @since 0.1.0
 * @category operations
 */
export const rewind = ({
  database,
  ...options
}: Options & {
  readonly executionId: string
  readonly seq: number
  readonly resume: boolean
  readonly force: boolean
}) =>
  Effect.gen(function* () {
    const { archived, run } = yield* RunHistory.use((history) => history.rewind(options))
    return { ...(yield* toResult(run)), archived } satisfies RunRewindResult
  }).pipe(Effect.provide(Runs.layerExisting(database)))

/**
 * Starts a run with what another one had done up to an entry.
 *
 * @since 0.1.0
 * @category operations
 */
export const fork = ({
  database,
  ...options
}: Options & {
  readonly executionId: string
  readonly seq: number | undefined
  readonly to: string | undefined
  readonly resume: boolean
}) =>
  Effect.flatMap(
    RunHistory.use((history) => history.fork(options)),
    toResult
  ).pipe(Effect.provide(Runs.layerExisting(database)))

/**
 * Lets a run go on.
 *
 * @since 0.1.0
 * @category operations
 */
export const resume = ({ database, executionId }: Options & { readonly executionId: string }) =>
  Effect.flatMap(
    RunHistory.use((history) => history.resume(executionId)),
    toResult
  ).pipe(
    Effect.catchReason("RunHistoryError", "RunSettled", () => Effect.fail(new RunEnded({ executionId }))),
    Effect.provide(Runs.layerExisting(database))
  )

/**
 * Asks a run to end.
 *
 * @since 0.1.0
 * @category operations
 */
export const cancel = ({
  database,
  executionId,
  unsafe
}: Options & { readonly executionId: string; readonly unsafe: boolean }) =>
  Effect.flatMap(
    RunHistory.use((history) => history.cancel(executionId, { unsafe })),
    toResult
  ).pipe(Effect.provide(Runs.layerExisting(database)))

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const pageSize = 1000

const find = Effect.fnUntraced(function* (executionId: string) {
  const [run] = yield* RunStore.use((store) => store.find([executionId]))
  return run ?? (yield* new RunHistoryError({ reason: new UnknownRun({ executionId }) }))
})

const toResult = Effect.fnUntraced(function* (run: StoredRun) {
  const { executionId, held, interrupted, owner, parent, settledAt, startedAt, status, updatedAt, workflow } = run
  return {
    executionId,
    workflow,
    state: status,
    held,
    interrupted,
    parent,
    owner,
    startedAt,
    updatedAt,
    settledAt,
    outcome: status === "completed" ? yield* outcomeOf(executionId) : null
  } satisfies RunResult
})

/** As its journal tells, as results are of Schemas that are not known here. */
const outcomeOf = Effect.fnUntraced(function* (executionId: string) {
  const journal = yield* Journal
  const stream = RunStream.of(executionId)
  const after = Math.max((yield* journal.floor(stream)) - 1, 0)
  const [entry] = yield* journal.read({ stream, after, types: [RunEvents.Completed.type], limit: 1 })
  if (entry === undefined) return null
  return (yield* Effect.fromResult(RunEvents.Completed.decodePayload(entry.payload))).outcome
})
