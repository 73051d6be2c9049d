import { ChangeSignal } from "@strata/dirty-queue/ChangeSignal"
import type { WriteTransaction } from "@strata/durable/DurableWriter"
import { afterCommit, DurableWriter } from "@strata/durable/DurableWriter"
import * as Text from "@strata/durable/Text"
import type { NewEvent } from "@strata/journal/Event"
import type { JournalError } from "@strata/journal/Journal"
import { Journal } from "@strata/journal/Journal"
import { JournalStorage } from "@strata/journal/JournalStorage"
import { Rewind } from "@strata/journal/Rewind"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import type { SqlError } from "effect/sql/SqlError"
import { ClockStorage } from "../ClockStorage.ts"
import { ClockStore } from "../ClockStore.ts"
import { DeferredStorage } from "../DeferredStorage.ts"
import * as RunEvents from "../RunEvents.ts"
import type { RunHistory, Services } from "../RunHistory.ts"
import type { RunHistoryErrorReason } from "../RunHistoryError.ts"
import {
  BelowFloor,
  ExecutionIdTaken,
  InvalidExecutionId,
  OwnedElsewhere,
  RunHistoryError,
  RunSettled,
  SeqOutOfRange,
  UnknownRun
} from "../RunHistoryError.ts"
import * as RunStream from "../RunStream.ts"
import type { StoredRun, Wake } from "../RunStore.ts"
import { RunStore } from "../RunStore.ts"
import * as Forking from "./forking.ts"
import * as Host from "./workflow/host.ts"

type Service = RunHistory["Service"]

export interface Parts {
  readonly store: RunStore["Service"]
  readonly clocks: ClockStore["Service"]
  readonly clockStorage: ClockStorage["Service"]
  readonly deferreds: DeferredStorage["Service"]
  readonly journal: Journal["Service"]
  readonly storage: JournalStorage["Service"]
  readonly rewinding: Rewind["Service"]
  readonly writer: DurableWriter["Service"]
  readonly signal: ChangeSignal["Service"]
}

export const make: Effect.Effect<Service, never, Services | Rewind> = Effect.gen(function* () {
  const parts: Parts = {
    store: yield* RunStore,
    clocks: yield* ClockStore,
    clockStorage: yield* ClockStorage,
    deferreds: yield* DeferredStorage,
    journal: yield* Journal,
    storage: yield* JournalStorage,
    rewinding: yield* Rewind,
    writer: yield* DurableWriter,
    signal: yield* ChangeSignal
  }
  return { rewind: rewind(parts), fork: fork(parts), resume: resume(parts), cancel: cancel(parts) }
})

// ---------------------------------------------------------------------------------------------------------------------
// rewinding
// ---------------------------------------------------------------------------------------------------------------------

const rewind = (parts: Parts): Service["rewind"] =>
  Effect.fn("RunHistory.rewind")(function* (options) {
    const { executionId, seq } = options
    yield* Effect.annotateCurrentSpan({ executionId, seq })
    return yield* parts.writer.write(
      Effect.gen(function* () {
        const run = yield* known(parts, executionId)
        yield* requireWithin(executionId, seq, yield* boundsOf(parts, executionId))
        if (options.force !== true) yield* requireOwn(parts, run)
        const { archived } = yield* parts.rewinding.rewind({ stream: RunStream.of(executionId), after: seq })
        const goesOn = options.resume === true && (archived > 0 || run.held)
        if (archived === 0 && !goesOn) return { run, archived }
        yield* announce(parts)
        return {
          run: yield* goesOn ? wakeUp(parts, executionId) : known(parts, executionId),
          archived
        }
      })
    )
  })

interface Bounds {
  readonly floor: number
  /** The seqs from and up to which a run can be cut. */
  readonly first: number
  readonly last: number
}

const boundsOf = Effect.fnUntraced(function* (
  { storage }: Parts,
  executionId: string
): Effect.fn.Return<Bounds, SqlError> {
  const stream = RunStream.of(executionId)
  const { floor, head } = (yield* storage.stream(stream)) ?? { floor: 0, head: 0 }
  const started = yield* Forking.firstOf(storage, stream, floor, RunEvents.Started.type)
  return { floor, first: started ?? floor, last: head }
})

const requireWithin = (
  executionId: string,
  seq: number,
  { first, floor, last }: Bounds
): Effect.Effect<void, RunHistoryError> => {
  if (floor > 0 && seq < floor) return refuse(new BelowFloor({ executionId, seq, floor }))
  return seq < first || seq > last ? refuse(new SeqOutOfRange({ executionId, seq, first, last })) : Effect.void
}

/** Fails when another process that is alive runs it. */
const requireOwn = Effect.fnUntraced(function* ({ store }: Parts, { executionId, owner: id }: StoredRun) {
  if (id === null) return
  const now = yield* Clock.currentTimeMillis
  const owner = (yield* store.owners).find((owner) => owner.id === id)
  if (owner === undefined || owner.process === Host.self.process) return
  if (owner.leaseUntil <= now || Host.isGone(owner)) return
  const [host = owner.host] = owner.host.split(" ", 1)
  return yield* refuse(new OwnedElsewhere({ executionId, owner: id, host, pid: owner.pid }))
})

// ---------------------------------------------------------------------------------------------------------------------
// forking
// ---------------------------------------------------------------------------------------------------------------------

const fork = (parts: Parts): Service["fork"] =>
  Effect.fn("RunHistory.fork")(function* ({ executionId, seq, to: given, resume }) {
    const to = given ?? `${executionId}-${yield* randomWord}`
    yield* Effect.annotateCurrentSpan({ executionId, to })
    if (to === "" || !Text.isStorable(to)) {
      return yield* refuse(new InvalidExecutionId({ executionId: to.toWellFormed() }))
    }
    return yield* parts.writer.write(
      Effect.gen(function* () {
        const run = yield* known(parts, executionId)
        const bounds = yield* openBoundsOf(parts, run)
        const upTo = seq ?? bounds.last
        yield* requireWithin(executionId, upTo, bounds)
        const taken = (yield* parts.storage.stream(RunStream.of(to))) !== undefined
        const forked = taken ? undefined : yield* Forking.fork(parts, { run, to, upTo, floor: bounds.floor })
        if (forked === undefined) return yield* refuse(new ExecutionIdTaken({ executionId: to }))
        yield* announce(parts)
        return resume === true ? yield* wakeUp(parts, to) : forked
      })
    )
  })

/** Without the result of the run, and what came behind it. */
const openBoundsOf = Effect.fnUntraced(function* (
  parts: Parts,
  { executionId, status }: StoredRun
): Effect.fn.Return<Bounds, SqlError> {
  const bounds = yield* boundsOf(parts, executionId)
  if (status !== "completed") return bounds
  const { storage } = parts
  const completed = yield* Forking.firstOf(storage, RunStream.of(executionId), bounds.floor, RunEvents.Completed.type)
  return { ...bounds, last: (completed ?? bounds.floor) - 1 }
})

const randomWord = Effect.map(Random.next, (random) =>
  Math.floor(random * 2 ** 32)
    .toString(16)
    .padStart(8, "0")
)

// ---------------------------------------------------------------------------------------------------------------------
// waking
// ---------------------------------------------------------------------------------------------------------------------

const resume = (parts: Parts): Service["resume"] =>
  Effect.fn("RunHistory.resume")(function* (executionId) {
    yield* Effect.annotateCurrentSpan({ executionId })
    return yield* parts.writer.write(Effect.tap(wakeUp(parts, executionId), announce(parts)))
  })

const cancel = (parts: Parts): Service["cancel"] =>
  Effect.fn("RunHistory.cancel")(function* (executionId, options) {
    yield* Effect.annotateCurrentSpan({ executionId })
    const mode = options?.unsafe === true ? "unsafe" : "safe"
    const event = RunEvents.Interrupted.make({ mode })
    return yield* parts.writer.write(
      Effect.tap(wake(parts, { executionId, explicit: true, interrupt: mode }, event), announce(parts))
    )
  })

const wakeUp = (parts: Parts, executionId: string) =>
  wake(parts, { executionId, explicit: true }, RunEvents.Resumed.make({}))

/** Wakes a run for whoever can run it. */
const wake = Effect.fnUntraced(function* (
  parts: Parts,
  wake: Wake,
  event: NewEvent
): Effect.fn.Return<StoredRun, RunHistoryError | SqlError | JournalError, WriteTransaction> {
  const { executionId } = wake
  const { status } = yield* known(parts, executionId)
  if (status === "completed") return yield* refuse(new RunSettled({ executionId }))
  yield* parts.store.wake(yield* Clock.currentTimeMillis, [wake], undefined)
  yield* parts.journal.append(RunStream.of(executionId), [event])
  return yield* known(parts, executionId)
})

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const refuse = (reason: RunHistoryErrorReason): Effect.Effect<never, RunHistoryError> =>
  Effect.fail(new RunHistoryError({ reason }))

const known = ({ store }: Parts, executionId: string): Effect.Effect<StoredRun, RunHistoryError | SqlError> =>
  Effect.flatMap(store.find([executionId]), ([run]) =>
    run === undefined ? refuse(new UnknownRun({ executionId })) : Effect.succeed(run)
  )

/** Tells processes, this one too, that there may be something to do for them. */
const announce = ({ signal, store }: Parts): Effect.Effect<void, SqlError, WriteTransaction> =>
  Effect.andThen(store.announce, afterCommit(signal.notify))
