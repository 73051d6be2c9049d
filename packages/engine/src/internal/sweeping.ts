import { DurableWriter } from "@strata/durable/DurableWriter"
import { Compaction } from "@strata/journal/Compaction"
import type { Entry, JournalError } from "@strata/journal/Journal"
import { Journal } from "@strata/journal/Journal"
import type { StreamName } from "@strata/journal/StreamName"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import type { SqlError } from "effect/sql/SqlError"
import * as Stream from "effect/Stream"
import { ClockStore } from "../ClockStore.ts"
import { DeferredStore } from "../DeferredStore.ts"
import type { ArchivableRun, RetentionLayerOptions, RetentionOptions, Services, Swept } from "../Retention.ts"
import * as Metrics from "../RetentionMetrics.ts"
import * as Strays from "./strays.ts"
import * as RunStream from "../RunStream.ts"
import type { SettledPosition, SettledRun, StoredRun } from "../RunStore.ts"
import { RunStore } from "../RunStore.ts"

export const run = <E = never, R = never>(
  options?: RetentionLayerOptions<E, R>
): Effect.Effect<never, never, R | Services> =>
  Effect.suspend(() => {
    let after: StreamName | undefined
    const once = Effect.gen(function* () {
      const plan = yield* planOf(options ?? {})
      const { needed } = yield* sweepSettled(plan)
      yield* Metric.update(Metrics.needed, needed)
      const strays = yield* sweepStrays(plan, after)
      after = strays.next
    })
    return once.pipe(
      Effect.withSpan("Retention.sweep"),
      Effect.catchCause((cause) =>
        Cause.hasInterruptsOnly(cause)
          ? Effect.interrupt
          : Effect.andThen(
              Metric.update(Metrics.failures, 1),
              Effect.logWarning("Settled runs cannot be removed", cause)
            )
      ),
      Effect.andThen(Effect.sleep(options?.interval ?? "1 minute")),
      Effect.forever
    )
  })

export const sweep = Effect.fn("Retention.sweep")(function* <E = never, R = never>(
  options: RetentionOptions<E, R> & { readonly dryRun?: boolean | undefined } = {}
): Effect.fn.Return<Swept, E | SqlError | JournalError, R | Services> {
  const plan = yield* planOf(options)
  let swept = yield* sweepSettled(plan)
  let after: StreamName | undefined
  do {
    const strays = yield* sweepStrays(plan, after)
    swept = add(swept, strays.removed, 0)
    after = strays.next
  } while (after !== undefined)
  return swept
})

const sweepSettled = Effect.fnUntraced(function* <E, R>(
  plan: Plan<E, R>
): Effect.fn.Return<Swept, E | SqlError | JournalError, R | Services> {
  let swept: Swept = { ...nothing, needed: 0 }
  let after = beginning
  while (true) {
    const batch = yield* nextBatch(plan, after)
    if (batch === undefined) return swept
    const removed = yield* plan.dryRun ? count(batch) : remove(plan, batch)
    // Some of the runs are not as they were: they are looked at again.
    if (removed === undefined) continue
    swept = add(swept, removed, batch.needed)
    after = batch.through
  }
})

/** Looks at a page of streams. */
const sweepStrays = Effect.fnUntraced(function* <E, R>(
  { batchRuns, dryRun, strayBefore }: Plan<E, R>,
  after: StreamName | undefined
): Effect.fn.Return<
  { readonly removed: Removed; readonly next: StreamName | undefined },
  SqlError | JournalError,
  Services
> {
  const { executionIds, next } = yield* Strays.page(after, strayBefore)
  let removed = nothing
  for (let i = 0; i < executionIds.length; i += batchRuns) {
    const removal = Strays.remove(executionIds.slice(i, i + batchRuns))
    const batch = yield* dryRun ? takenBack(removal) : removal
    // Where a run was started meanwhile, the others are for the next sweep.
    if (batch !== undefined) removed = sum(removed, { runs: 0, ...batch })
  }
  if (!dryRun) yield* Metrics.removed(removed)
  return { removed, next }
})

// ---------------------------------------------------------------------------------------------------------------------
// planning
// ---------------------------------------------------------------------------------------------------------------------

interface Plan<E, R> {
  /** The last run that may go. */
  readonly upTo: SettledPosition
  /** The last time at which what has no run may have been told to it. */
  readonly strayBefore: number
  readonly batchRuns: number
  readonly batchEntries: number
  readonly dryRun: boolean
  readonly archive: RetentionOptions<E, R>["archive"]
}

const beginning: SettledPosition = { settledAt: -1, id: 0 }

const planOf = Effect.fnUntraced(function* <E, R>(
  options: RetentionOptions<E, R> & { readonly dryRun?: boolean | undefined }
): Effect.fn.Return<Plan<E, R>, SqlError, RunStore> {
  const store = yield* RunStore
  const now = yield* Clock.currentTimeMillis
  const before = (age: Duration.Input): SettledPosition => ({
    settledAt: Math.floor(now - Duration.toMillis(age)),
    id: Number.MAX_SAFE_INTEGER
  })
  const old = before(options.maxAge ?? "30 days")
  const beyond = (yield* store.settledBeyond(options.maxRuns ?? 100_000)) ?? beginning
  return {
    upTo: earlier(later(old, beyond), before(options.grace ?? "1 minute")),
    strayBefore: old.settledAt,
    batchRuns: options.batchRuns ?? 50,
    batchEntries: options.batchEntries ?? 2000,
    dryRun: options.dryRun ?? false,
    archive: options.archive
  }
})

const isBehind = (a: SettledPosition, b: SettledPosition): boolean =>
  a.settledAt === b.settledAt ? a.id > b.id : a.settledAt > b.settledAt

const later = (a: SettledPosition, b: SettledPosition): SettledPosition => (isBehind(a, b) ? a : b)

const earlier = (a: SettledPosition, b: SettledPosition): SettledPosition => (isBehind(a, b) ? b : a)

/** Runs that go in one write. */
interface Batch {
  readonly executionIds: ReadonlyArray<string>
  /** How many stay because they are needed. */
  readonly needed: number
  readonly through: SettledPosition
}

const nextBatch = Effect.fnUntraced(function* <E, R>(
  { batchEntries, batchRuns, upTo }: Plan<E, R>,
  after: SettledPosition
): Effect.fn.Return<Batch | undefined, SqlError, RunStore | Journal> {
  const store = yield* RunStore
  const executionIds: Array<string> = []
  let needed = 0
  let entries = 0
  let through: SettledRun | undefined
  for (const settled of yield* store.settled({ after, upTo, limit: batchRuns })) {
    if (settled.needed) needed++
    else {
      entries += yield* lengthOf(settled.executionId)
      if (entries > batchEntries && executionIds.length > 0) break
      executionIds.push(settled.executionId)
    }
    through = settled
  }
  return through && { executionIds, needed, through }
})

/** How many entries a stream has at most. */
const lengthOf = Effect.fnUntraced(function* (executionId: string) {
  const journal = yield* Journal
  const stream = RunStream.of(executionId)
  return (yield* journal.head(stream)) - Math.max(yield* journal.floor(stream), 1) + 1
})

// ---------------------------------------------------------------------------------------------------------------------
// removing
// ---------------------------------------------------------------------------------------------------------------------

type Removed = Omit<Swept, "needed">

const add = (swept: Swept, removed: Removed, needed: number): Swept => ({
  ...sum(swept, removed),
  needed: swept.needed + needed
})

const sum = (a: Removed, b: Removed): Removed => ({
  runs: a.runs + b.runs,
  strays: a.strays + b.strays,
  entries: a.entries + b.entries,
  clocks: a.clocks + b.clocks,
  deferreds: a.deferreds + b.deferreds
})

const nothing: Removed = { runs: 0, strays: 0, entries: 0, clocks: 0, deferreds: 0 }

/** Gives nothing when some of the runs have changed, and has removed none of them then. */
const remove = Effect.fnUntraced(function* <E, R>(
  { archive }: Plan<E, R>,
  { executionIds }: Batch
): Effect.fn.Return<Removed | undefined, E | SqlError | JournalError, R | Services> {
  if (executionIds.length === 0) return nothing
  const seen = archive === undefined ? [] : yield* look(executionIds)
  if (archive !== undefined) yield* archive(yield* Effect.forEach(seen, toArchivable))
  const removed = yield* removal(executionIds, seen).pipe(Effect.catchTag("Changed", () => Effect.undefined))
  if (removed !== undefined) yield* Metrics.removed(removed)
  return removed
})

/** Removes, and takes it back. */
const count = ({ executionIds }: Batch): Effect.Effect<Removed | undefined, SqlError | JournalError, Services> =>
  executionIds.length === 0
    ? Effect.succeed(nothing)
    : Effect.catchTag(takenBack(removal(executionIds, [])), "Changed", () => Effect.undefined)

const takenBack = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.flatMap(DurableWriter, (writer) =>
    writer.write(Effect.flatMap(effect, (value) => Effect.fail(new TakenBack(value)))).pipe(
      Effect.catchIf(
        (error) => error instanceof TakenBack,
        ({ value }) => Effect.succeed<A>(value)
      )
    )
  )

class TakenBack<A> {
  readonly _tag = "TakenBack"
  readonly value: A
  constructor(value: A) {
    this.value = value
  }
}

const changed = { _tag: "Changed" } as const

/** One write. Fails with `Changed` when runs are not as they were `seen`, or one of them has to stay after all. */
const removal = Effect.fnUntraced(function* (
  executionIds: ReadonlyArray<string>,
  seen: ReadonlyArray<Seen>
): Effect.fn.Return<Removed, typeof changed | SqlError | JournalError, Services> {
  const compaction = yield* Compaction
  const runs = yield* RunStore
  const clocks = yield* ClockStore
  const deferreds = yield* DeferredStore
  const { deleted, within } = yield* compaction.remove({
    streams: executionIds.map(RunStream.of),
    within: Effect.gen(function* () {
      if (seen.length > 0 && !isSame(seen, yield* look(executionIds))) return yield* Effect.fail(changed)
      if ((yield* runs.remove(executionIds)) < executionIds.length) return yield* Effect.fail(changed)
      return { clocks: yield* clocks.removeOf(executionIds), deferreds: yield* deferreds.removeOf(executionIds) }
    })
  })
  return { runs: executionIds.length, strays: 0, entries: deleted, ...within }
})

// ---------------------------------------------------------------------------------------------------------------------
// archiving
// ---------------------------------------------------------------------------------------------------------------------

/** A run, and the seq of its last entry: both are greater when it was changed. */
interface Seen {
  readonly run: StoredRun
  readonly head: number
}

const look = Effect.fnUntraced(function* (
  executionIds: ReadonlyArray<string>
): Effect.fn.Return<ReadonlyArray<Seen>, SqlError, RunStore | Journal> {
  const store = yield* RunStore
  const journal = yield* Journal
  return yield* Effect.forEach(yield* store.find(executionIds), (run) =>
    Effect.map(journal.head(RunStream.of(run.executionId)), (head) => ({ run, head }))
  )
})

const isSame = (seen: ReadonlyArray<Seen>, now: ReadonlyArray<Seen>): boolean =>
  seen.length === now.length &&
  seen.every(({ head, run }, i) => {
    const other = now[i]
    return other !== undefined && other.head === head && other.run.id === run.id && other.run.fence === run.fence
  })

const toArchivable = Effect.fnUntraced(function* ({
  head,
  run
}: Seen): Effect.fn.Return<ArchivableRun, SqlError, Services> {
  const store = yield* RunStore
  const clocks = yield* ClockStore
  const deferreds = yield* DeferredStore
  const archivable: ArchivableRun = {
    run,
    outcomes: yield* store.outcomes(run.id),
    clocks: yield* clocks.ofRun(run.executionId),
    deferreds: yield* deferreds.ofRun(run.executionId),
    entries: entriesOf(yield* Journal, run.executionId, head)
  }
  return archivable
})

const entriesOf = (
  journal: Journal["Service"],
  executionId: string,
  upTo: number
): Stream.Stream<Entry, SqlError | JournalError> => {
  const stream = RunStream.of(executionId)
  return Stream.unwrap(
    Effect.map(journal.floor(stream), (floor) =>
      Stream.paginate(Math.max(floor - 1, 0), (after) =>
        Effect.map(journal.read({ stream, after, upTo, limit: pageSize }), (entries) => [
          entries,
          entries.length < pageSize ? Option.none() : Option.some(entries.at(-1)!.seq)
        ])
      )
    )
  )
}

const pageSize = 500
