import * as Digest from "@strata/durable/Digest"
import { afterCommit, type DurableWriter, insideWrite, type WriteTransaction } from "@strata/durable/DurableWriter"
import type { NewEvent } from "@strata/journal/Event"
import type { Journal, JournalError } from "@strata/journal/Journal"
import type { StreamName } from "@strata/journal/StreamName"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Schema from "effect/Schema"
import type { SqlError } from "effect/sql/SqlError"
import type { ClockStore, NewClock } from "../../ClockStore.ts"
import type { DeferredKey, DeferredStore } from "../../DeferredStore.ts"
import * as RunEvents from "../../RunEvents.ts"
import * as RunStream from "../../RunStream.ts"
import type { ActivityOutcome, Claimed, NewRun, RunStore, StoredRun, Suspension, Wake, Waker } from "../../RunStore.ts"
import type { StateError } from "../../StateError.ts"

/*
 * What runs commit. Changes that wait at the same time are one write: the runs do not know of each other, each change is
 * guarded by the fence of its own run, and what is refused of one run is so of no other. A write that fails is done again
 * change by change, so that one that cannot be stored takes no other with it.
 *
 * A change from inside of somebody else's write becomes a part of that one instead.
 */

/** A change of a run. */
export type Change =
  | { readonly _tag: "Start"; readonly run: NewRun }
  | {
      readonly _tag: "Record"
      readonly executionId: string
      readonly outcome: Claimed & ActivityOutcome & { readonly digest: Digest.Digest }
      readonly how: RunEvents.Outcome
      readonly consumed: ReadonlyArray<string>
    }
  | {
      readonly _tag: "Suspend"
      readonly executionId: string
      readonly suspension: Suspension
      readonly consumed: ReadonlyArray<string>
    }
  | {
      readonly _tag: "Complete"
      readonly executionId: string
      readonly result: Claimed & { readonly result: string }
      readonly how: RunEvents.Outcome
      /** Whether it may have clocks that have not fired. */
      readonly clocks: boolean
      readonly consumed: ReadonlyArray<string>
    }
  | { readonly _tag: "Signal"; readonly executionId: string; readonly name: string; readonly exit: Schema.Json }
  | { readonly _tag: "Schedule"; readonly clock: NewClock }
  | { readonly _tag: "Wake"; readonly wake: Wake; readonly event: NewEvent }

export type Failure = SqlError | JournalError | StateError

/** Whether it is what was to be stored that is at fault, so that it would be refused each time. */
export const isRefusal = (failure: Failure): boolean =>
  failure._tag === "StateError" ||
  (failure._tag === "JournalError" &&
    (failure.reason._tag === "EncodeFailed" || failure.reason._tag === "IdentityConflict"))

type Of<Tag extends Change["_tag"]> = Extract<Change, { readonly _tag: Tag }>

type Fields<Tag extends Change["_tag"]> = Omit<Of<Tag>, "_tag">

export interface Commits {
  /** Gives the run, unless there was one. */
  readonly start: (run: NewRun) => Effect.Effect<StoredRun | undefined, Failure>
  /** Gives whether the run is still the owner's, as the next two. */
  readonly record: (change: Fields<"Record">) => Effect.Effect<boolean, Failure>
  readonly suspend: (change: Fields<"Suspend">) => Effect.Effect<StoredRun | undefined, Failure>
  readonly complete: (change: Fields<"Complete">) => Effect.Effect<boolean, Failure>
  /** Completes a deferred, and wakes its run if that was the first completion. */
  readonly signal: (change: Fields<"Signal">) => Effect.Effect<void, Failure>
  /** Sets a clock, unless it is set. */
  readonly schedule: (clock: NewClock) => Effect.Effect<void, Failure>
  /** Wakes a run, and tells so, unless it is completed. */
  readonly wake: (change: Fields<"Wake">) => Effect.Effect<void, Failure>
}

export interface Parts {
  readonly store: RunStore["Service"]
  readonly journal: Journal["Service"]
  readonly writer: DurableWriter["Service"]
  readonly clocks: ClockStore["Service"]
  readonly deferreds: DeferredStore["Service"]
  readonly waker: () => Waker
  /** These are called after the commit: with runs that it has started or woken, and deferreds that it has completed. */
  readonly woken: (run: StoredRun) => void
  readonly signalled: (executionId: string, deferred: string) => void
  readonly fork: (effect: Effect.Effect<void>) => void
}

interface Pending {
  readonly change: Change
  readonly settle: (exit: Exit.Exit<unknown, Failure>) => void
}

export const make = (parts: Parts): Commits => {
  let pending: Array<Pending> = []
  let draining = false

  const drain = Effect.gen(function* () {
    while (pending.length > 0) {
      yield* gather
      const batch = pending.slice(0, maxBatch)
      pending = pending.slice(maxBatch)
      const exit = yield* Effect.exit(commit(batch))
      if (Exit.isSuccess(exit)) continue
      if (batch.length === 1) batch[0]!.settle(exit)
      else {
        for (const one of batch) {
          const exit = yield* Effect.exit(commit([one]))
          if (Exit.isFailure(exit)) one.settle(exit)
        }
      }
    }
    draining = false
  })

  /** Lets those that the last write has released come along: they are about to change something again. */
  const gather = Effect.gen(function* () {
    let before = 0
    while (pending.length > before && pending.length < maxBatch) {
      before = pending.length
      yield* Effect.yieldNow
    }
  })

  const commit = (batch: ReadonlyArray<Pending>): Effect.Effect<void, Failure> =>
    Effect.map(
      write(
        parts,
        batch.map(({ change }) => change)
      ),
      ({ after, results }) => {
        for (const run of after) run()
        for (const [place, { settle }] of batch.entries()) settle(Exit.succeed(results[place]))
      }
    )

  const submit = <A>(change: Change): Effect.Effect<A, Failure> =>
    Effect.flatMap(insideWrite, (isInside) => {
      if (isInside) return nested<A>(parts, change)
      return Effect.callback<A, Failure>((resume) => {
        pending.push({ change, settle: (exit) => resume(exit as Exit.Exit<A, Failure>) })
        if (draining) return
        draining = true
        parts.fork(drain)
      })
    })

  return {
    start: (run) => submit({ _tag: "Start", run }),
    record: (change) => submit({ _tag: "Record", ...change }),
    suspend: (change) => submit({ _tag: "Suspend", ...change }),
    complete: (change) => submit({ _tag: "Complete", ...change }),
    signal: (change) => submit({ _tag: "Signal", ...change }),
    schedule: (clock) => submit({ _tag: "Schedule", clock }),
    wake: (change) => submit({ _tag: "Wake", ...change })
  }
}

/** Keeps the JSON parameter of a statement, and the time for which a write holds the others up, small. */
const maxBatch = 256

const nested = <A>(parts: Parts, change: Change): Effect.Effect<A, Failure> =>
  parts.writer.write(
    Effect.flatMap(inWrite(parts, [change]), ({ after, results }) =>
      Effect.as(
        afterCommit(
          Effect.sync(() => {
            for (const run of after) run()
          })
        ),
        results[0] as A
      )
    )
  )

// ---------------------------------------------------------------------------------------------------------------------
// one write
// ---------------------------------------------------------------------------------------------------------------------

interface Committed {
  /** By place of the change. */
  readonly results: ReadonlyArray<unknown>
  readonly after: ReadonlyArray<() => void>
}

const write = (parts: Parts, changes: ReadonlyArray<Change>): Effect.Effect<Committed, Failure> =>
  parts.writer.write(inWrite(parts, changes), { isolation: "read committed" })

/** What a write finds out, and what it tells the journal. */
class Told {
  readonly results: Array<unknown>
  readonly after: Array<() => void> = []
  readonly events = new Map<StreamName, Array<NewEvent>>()
  readonly consumed: Array<DeferredKey> = []
  readonly settled: Array<string> = []
  readonly wakes: Array<Wake> = []
  /** Others may have something to do, or wait for it. */
  announce = false

  constructor(changes: number) {
    this.results = Array.from({ length: changes }, () => undefined)
  }

  tell(executionId: string, event: NewEvent): void {
    const stream = RunStream.of(executionId)
    const events = this.events.get(stream)
    if (events === undefined) this.events.set(stream, [event])
    else events.push(event)
  }

  consume(executionId: string, names: ReadonlyArray<string>): void {
    for (const name of names) this.consumed.push({ executionId, name })
  }
}

/** A change, and its place among those of the write. */
interface Placed<Tag extends Change["_tag"]> {
  readonly change: Of<Tag>
  readonly place: number
}

type ByKind = { readonly [Tag in Change["_tag"]]: ReadonlyArray<Placed<Tag>> }

const byKind = (changes: ReadonlyArray<Change>): ByKind => {
  const kinds: { readonly [Tag in Change["_tag"]]: Array<Placed<Change["_tag"]>> } = {
    Start: [],
    Record: [],
    Suspend: [],
    Complete: [],
    Signal: [],
    Schedule: [],
    Wake: []
  }
  for (const [place, change] of changes.entries()) kinds[change._tag].push({ change, place })
  // Each list has the changes of its own kind only.
  return kinds as ByKind
}

const inWrite = Effect.fnUntraced(function* (
  parts: Parts,
  changes: ReadonlyArray<Change>
): Effect.fn.Return<Committed, Failure, WriteTransaction> {
  const { clocks, deferreds, journal, store } = parts
  const now = yield* Clock.currentTimeMillis
  const told = new Told(changes.length)
  const kinds = byKind(changes)
  if (kinds.Start.length > 0) yield* start(parts, now, kinds.Start, told)
  if (kinds.Record.length > 0) yield* record(store, now, kinds.Record, told)
  if (kinds.Suspend.length > 0) yield* suspend(store, now, kinds.Suspend, told)
  if (kinds.Complete.length > 0) yield* complete(store, now, kinds.Complete, told)
  if (kinds.Schedule.length > 0) yield* clocks.schedule(kinds.Schedule.map(({ change }) => change.clock))
  if (kinds.Signal.length > 0) yield* signal(parts, kinds.Signal, told)
  if (told.wakes.length > 0 || kinds.Wake.length > 0) yield* wake(parts, now, kinds.Wake, told)
  if (told.consumed.length > 0) yield* deferreds.consume(told.consumed)
  if (told.events.size > 0)
    yield* journal.appendAll(Array.from(told.events, ([stream, events]) => ({ stream, events })))
  if (told.settled.length > 0) yield* clocks.settle(told.settled)
  if (told.announce) yield* store.announce
  return told
})

type Store = RunStore["Service"]

const start = Effect.fnUntraced(function* (
  { store, woken }: Parts,
  now: number,
  changes: ReadonlyArray<Placed<"Start">>,
  told: Told
) {
  const runs = yield* store.start(
    now,
    changes.map(({ change }) => change.run)
  )
  const rows = new Map(runs.map((run) => [run.executionId, run]))
  for (const { change, place } of changes) {
    const { executionId, owner, parent, payload, workflow } = change.run
    const row = rows.get(executionId)
    told.results[place] = row
    if (row === undefined) continue
    rows.delete(executionId)
    if (owner === null) told.announce = true
    told.after.push(() => woken(row))
    const digest = Digest.sha256(payload)
    told.tell(executionId, RunEvents.Started.make({ workflow, digest, ...(parent === null ? {} : { parent }) }))
  }
})

const record = Effect.fnUntraced(function* (
  store: Store,
  now: number,
  changes: ReadonlyArray<Placed<"Record">>,
  told: Told
) {
  const places = yield* store.record(
    now,
    changes.map(({ change }) => change.outcome)
  )
  const kept = new Set(places)
  for (const [i, { change, place }] of changes.entries()) {
    told.results[place] = kept.has(i)
    if (!kept.has(i)) continue
    const { consumed, executionId, how, outcome } = change
    told.consume(executionId, consumed)
    const { attempt, digest, name } = outcome
    told.tell(executionId, RunEvents.ActivityCompleted.make({ name, attempt, outcome: how, digest }))
  }
})

const suspend = Effect.fnUntraced(function* (
  store: Store,
  now: number,
  changes: ReadonlyArray<Placed<"Suspend">>,
  told: Told
) {
  const runs = yield* store.suspend(
    now,
    changes.map(({ change }) => change.suspension)
  )
  const rows = new Map(runs.map((run) => [run.id, run]))
  for (const { change, place } of changes) {
    const { consumed, executionId, suspension } = change
    const row = rows.get(suspension.id)
    told.results[place] = row
    if (row === undefined) continue
    told.consume(executionId, consumed)
    if (row.held) told.tell(executionId, RunEvents.Suspended.make({ failed: true }))
  }
})

const complete = Effect.fnUntraced(function* (
  store: Store,
  now: number,
  changes: ReadonlyArray<Placed<"Complete">>,
  told: Told
) {
  const { completed, waiting } = yield* store.complete(
    now,
    changes.map(({ change }) => change.result)
  )
  const ids = new Set(completed)
  for (const { change, place } of changes) {
    const { clocks, consumed, executionId, how, result } = change
    told.results[place] = ids.has(result.id)
    if (!ids.has(result.id)) continue
    told.announce = true
    told.consume(executionId, consumed)
    if (clocks) told.settled.push(executionId)
    told.tell(executionId, RunEvents.Completed.make({ outcome: how, digest: Digest.sha256(result.result) }))
  }
  for (const executionId of waiting) told.wakes.push({ executionId, explicit: false })
})

const signal = Effect.fnUntraced(function* (
  { deferreds, signalled }: Parts,
  changes: ReadonlyArray<Placed<"Signal">>,
  told: Told
) {
  const kept = yield* deferreds.complete(
    changes.map(({ change: { executionId, exit, name } }) => ({ executionId, name, exit }))
  )
  for (const { executionId, first, name } of kept) {
    if (!first) continue
    told.wakes.push({ executionId, explicit: false })
    told.after.push(() => signalled(executionId, name))
  }
})

/** Last, as a run that is suspended in this write may be woken in it. */
const wake = Effect.fnUntraced(function* (
  { store, waker, woken }: Parts,
  now: number,
  changes: ReadonlyArray<Placed<"Wake">>,
  told: Told
) {
  const wakes = [...told.wakes, ...changes.map(({ change }) => change.wake)]
  const rows = yield* store.wake(now, wakes, waker())
  const running = new Set(rows.map(({ executionId }) => executionId))
  for (const { change } of changes) {
    const { event, wake } = change
    if (running.has(wake.executionId)) told.tell(wake.executionId, event)
  }
  const { owner } = waker()
  for (const row of rows) {
    if (row.status !== "running") continue
    if (row.owner !== owner) told.announce = true
    // Before deferreds are signalled, so that the run knows of the wake when it is cut off.
    told.after.unshift(() => woken(row))
  }
})
