import * as ChangeSignal from "@strata/dirty-queue/ChangeSignal"
import { WriteTransaction } from "@strata/durable/DurableWriter"
import type { NewEvent } from "@strata/journal/Event"
import { Journal } from "@strata/journal/Journal"
import type { JournalError } from "@strata/journal/JournalError"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { SqlError } from "effect/sql/SqlError"
import type { ClockKey, StoredClock } from "../ClockStorage.ts"
import { ClockStorage } from "../ClockStorage.ts"
import type { ClockStore, DurableClock, NewClock, Scheduled } from "../ClockStore.ts"
import type { StoredDeferred } from "../DeferredStorage.ts"
import { DeferredStorage } from "../DeferredStorage.ts"
import * as RunStream from "../RunStream.ts"
import type { StateError } from "../StateError.ts"
import * as StateEvents from "../StateEvents.ts"
import { completedEvent } from "./deferredService.ts"
import { voidExit } from "./exits.ts"
import * as Names from "./names.ts"

type Service = ClockStore["Service"]

interface Parts {
  readonly storage: ClockStorage["Service"]
  readonly deferreds: DeferredStorage["Service"]
  readonly journal: Journal["Service"]
  readonly changes: ChangeSignal.ChangeSignal["Service"]
}

export const make: Effect.Effect<Service, never, ClockStorage | DeferredStorage | Journal> = Effect.gen(function* () {
  const parts: Parts = {
    storage: yield* ClockStorage,
    deferreds: yield* DeferredStorage,
    journal: yield* Journal,
    changes: yield* ChangeSignal.make
  }
  return {
    schedule: schedule(parts),
    ...completing(parts),
    fire: fire(parts),
    ...reading(parts.storage),
    removeOf: parts.storage.removeOf,
    changes: parts.changes
  }
})

// ---------------------------------------------------------------------------------------------------------------------
// scheduling
// ---------------------------------------------------------------------------------------------------------------------

const schedule = ({ changes, journal, storage }: Parts): Service["schedule"] =>
  Effect.fn("ClockStore.schedule")(function* (clocks) {
    if (clocks.length === 0) return []
    yield* annotate(clocks)
    yield* Effect.forEach(clocks, checkNew, { discard: true })
    const now = yield* storage.now
    const rows = clocks.map((clock) => toRow(clock, now))
    const inserted = new Set((yield* storage.insert(rows)).map(Names.keyOf))
    // Of two with one name, the first one was inserted.
    const first = rows.filter((row) => inserted.delete(Names.keyOf(row)))
    yield* appendAll(journal, first, ({ deadline, deferred, name, scheduledAt: at }) =>
      StateEvents.ClockScheduled.make({ name, deferred, deadline, at })
    )
    if (first.length > 0) yield* WriteTransaction.use((transaction) => transaction.afterCommit(changes.notify))
    const firsts = new Set(first)
    const kept = new Map(first.map((row) => [Names.keyOf(row), row]))
    const known = rows.filter((row) => !kept.has(Names.keyOf(row)))
    if (known.length > 0) for (const row of yield* storage.find(known)) kept.set(Names.keyOf(row), row)
    return rows.map((row): Scheduled => ({ ...toClock(kept.get(Names.keyOf(row)) ?? row), first: firsts.has(row) }))
  })

const toRow = ({ deferred, duration, executionId, name }: NewClock, now: number): StoredClock => ({
  executionId,
  name,
  deferred,
  deadline: Math.min(Math.ceil(now + Duration.toMillis(duration)), Number.MAX_SAFE_INTEGER),
  scheduledAt: now,
  completedAt: null,
  outcome: null
})

const checkNew = (clock: NewClock): Effect.Effect<void, StateError> =>
  Effect.andThen(checkKey(clock), Names.check("deferred", clock.deferred))

// ---------------------------------------------------------------------------------------------------------------------
// completing
// ---------------------------------------------------------------------------------------------------------------------

const completing = ({ journal, storage }: Parts): Pick<Service, "cancel" | "settle"> => ({
  cancel: Effect.fn("ClockStore.cancel")(function* (keys) {
    if (keys.length === 0) return []
    yield* annotate(keys)
    yield* Effect.forEach(keys, checkKey, { discard: true })
    const cancelled = yield* storage.complete(yield* storage.now, "cancelled", keys)
    yield* appendAll(journal, cancelled, completed)
    return cancelled.map(toClock)
  }),
  settle: Effect.fn("ClockStore.settle")(function* (executionIds) {
    if (executionIds.length === 0) return []
    yield* Effect.annotateCurrentSpan({ executionId: executionIds[0]!, runs: executionIds.length })
    yield* Effect.forEach(executionIds, (executionId) => Names.check("execution id", executionId), { discard: true })
    const settled = yield* storage.completeOf(yield* storage.now, "settled", executionIds)
    yield* appendAll(journal, settled, completed)
    return settled.map(toClock)
  })
})

const fire = ({ deferreds, journal, storage }: Parts): Service["fire"] =>
  Effect.fn("ClockStore.fire")(function* ({ limit = 16 } = {}) {
    const fired = yield* storage.fire(yield* storage.now, limit)
    if (fired.length === 0) return { fired: [], more: false }
    const rows = fired.map(toCompletion)
    const inserted = new Set((yield* deferreds.insert(rows)).map(Names.keyOf))
    yield* journal.appendAll(
      Array.from(Names.byRun(fired), ([executionId, clocks]) => {
        // Of two clocks with one deferred, the first one completes it.
        const completions = clocks.map(toCompletion).filter((row) => inserted.delete(Names.keyOf(row)))
        // The clocks come last: where a rewind leaves the deferreds only, clocks fire again, and change nothing. The
        // other way around a run would wait for a clock that has fired.
        return {
          stream: RunStream.of(executionId),
          events: [...completions.map(completedEvent), ...clocks.map(completed)]
        }
      })
    )
    yield* Effect.annotateCurrentSpan({ fired: fired.length })
    return { fired: fired.map(toClock), more: fired.length >= limit }
  })

const toCompletion = ({ completedAt, deferred, executionId }: StoredClock): StoredDeferred => ({
  executionId,
  name: deferred,
  exit: voidExit,
  metadata: null,
  completedAt,
  consumedAt: null
})

const completed = ({ completedAt, name, outcome }: StoredClock): NewEvent =>
  StateEvents.ClockCompleted.make({ name, outcome: outcome!, at: completedAt! })

// ---------------------------------------------------------------------------------------------------------------------
// reading
// ---------------------------------------------------------------------------------------------------------------------

const reading = (storage: Parts["storage"]): Pick<Service, "next" | "get" | "ofRun"> => ({
  next: Effect.map(storage.next, ({ deadline, now }) =>
    deadline === null ? Option.none() : Option.some({ deadline, left: Math.max(deadline - now, 0) })
  ),
  get: Effect.fn("ClockStore.get")((key) =>
    Effect.map(storage.find([key]), ([row]) => Option.map(Option.fromUndefinedOr(row), toClock))
  ),
  ofRun: Effect.fn("ClockStore.ofRun")((executionId) =>
    Effect.map(storage.ofRun(executionId), (rows) => rows.map(toClock))
  )
})

const toClock = (row: StoredClock): DurableClock => ({
  executionId: row.executionId,
  name: row.name,
  deferred: row.deferred,
  deadline: row.deadline,
  scheduledAt: row.scheduledAt,
  completedAt: row.completedAt ?? undefined,
  outcome: row.outcome ?? undefined
})

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const appendAll = (
  journal: Journal["Service"],
  rows: ReadonlyArray<StoredClock>,
  event: (row: StoredClock) => NewEvent
): Effect.Effect<void, SqlError | JournalError, WriteTransaction> =>
  journal.appendAll(
    Array.from(Names.byRun(rows), ([executionId, rows]) => ({
      stream: RunStream.of(executionId),
      events: rows.map(event)
    }))
  )

const annotate = (keys: ReadonlyArray<ClockKey>): Effect.Effect<void> =>
  Effect.annotateCurrentSpan({ executionId: keys[0]!.executionId, clock: keys[0]!.name, clocks: keys.length })

const checkKey = ({ executionId, name }: ClockKey): Effect.Effect<void, StateError> =>
  Effect.andThen(Names.check("execution id", executionId), Names.check("clock", name))
