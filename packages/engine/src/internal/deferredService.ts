import * as CanonicalJson from "@strata/durable/CanonicalJson"
import { sha256 } from "@strata/durable/Digest"
import type { NewEvent } from "@strata/journal/Event"
import { Journal } from "@strata/journal/Journal"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import type { DeferredKey, StoredDeferred } from "../DeferredStorage.ts"
import { DeferredStorage } from "../DeferredStorage.ts"
import type { Completed, Completion, DeferredStore, NewCompletion } from "../DeferredStore.ts"
import * as RunStream from "../RunStream.ts"
import { InvalidValue, StateError } from "../StateError.ts"
import * as StateEvents from "../StateEvents.ts"
import * as Names from "./names.ts"

type Service = DeferredStore["Service"]

export const make: Effect.Effect<Service, never, DeferredStorage | Journal> = Effect.gen(function* () {
  const storage = yield* DeferredStorage
  const journal = yield* Journal
  return { ...changing(storage, journal), ...reading(storage), removeOf: storage.removeOf }
})

type Storage = DeferredStorage["Service"]

// ---------------------------------------------------------------------------------------------------------------------
// changing
// ---------------------------------------------------------------------------------------------------------------------

const changing = (storage: Storage, journal: Journal["Service"]): Pick<Service, "complete" | "consume"> => ({
  complete: Effect.fn("DeferredStore.complete")(function* (completions) {
    if (completions.length === 0) return []
    yield* annotate(completions)
    const now = yield* Clock.currentTimeMillis
    const rows = yield* Effect.forEach(completions, (completion) => toRow(completion, now))
    const inserted = new Set((yield* storage.insert(rows)).map(Names.keyOf))
    const kept = new Map<string, StoredDeferred>()
    const first = rows.filter((row) => inserted.has(Names.keyOf(row)) && !kept.has(Names.keyOf(row)) && keep(kept, row))
    for (const [executionId, rows] of Names.byRun(first)) {
      yield* journal.append(RunStream.of(executionId), rows.map(completedEvent))
    }
    const known = rows.filter((row) => !kept.has(Names.keyOf(row)))
    if (known.length > 0) for (const row of yield* storage.find(known)) keep(kept, row)
    const firsts = new Set(first)
    return rows.map((row): Completed => ({
      ...toCompletion(kept.get(Names.keyOf(row)) ?? row),
      first: firsts.has(row)
    }))
  }),

  consume: Effect.fn("DeferredStore.consume")(function* (keys) {
    if (keys.length === 0) return []
    yield* annotate(keys)
    yield* Effect.forEach(keys, checkKey, { discard: true })
    const now = yield* Clock.currentTimeMillis
    const consumed = yield* storage.consume(now, keys)
    for (const [executionId, rows] of Names.byRun(consumed)) {
      yield* journal.append(
        RunStream.of(executionId),
        rows.map(({ name }) => StateEvents.DeferredConsumed.make({ name, at: now }))
      )
    }
    return consumed
  })
})

/** What is journaled of a row that was inserted. */
export const completedEvent = ({ completedAt, exit, metadata, name }: StoredDeferred): NewEvent =>
  StateEvents.DeferredCompleted.make({
    name,
    exit: sha256(exit),
    metadata: metadata === null ? null : sha256(metadata),
    at: completedAt!
  })

const keep = (kept: Map<string, StoredDeferred>, row: StoredDeferred): true => {
  kept.set(Names.keyOf(row), row)
  return true
}

const annotate = (keys: ReadonlyArray<DeferredKey>): Effect.Effect<void> =>
  Effect.annotateCurrentSpan({ executionId: keys[0]!.executionId, deferred: keys[0]!.name, deferreds: keys.length })

const checkKey = ({ executionId, name }: DeferredKey): Effect.Effect<void, StateError> =>
  Effect.andThen(Names.check("execution id", executionId), Names.check("deferred", name))

const toRow = Effect.fnUntraced(function* (
  completion: NewCompletion,
  now: number
): Effect.fn.Return<StoredDeferred, StateError> {
  const { executionId, exit, metadata, name } = completion
  yield* checkKey(completion)
  return {
    executionId,
    name,
    exit: yield* canonical(completion, exit),
    metadata: metadata === undefined ? null : yield* canonical(completion, metadata),
    completedAt: now,
    consumedAt: null
  }
})

const canonical = ({ executionId, name }: DeferredKey, value: Schema.Json): Effect.Effect<string, StateError> =>
  Effect.fromResult(
    Result.mapError(
      CanonicalJson.encodeResult(value),
      ({ message }) => new StateError({ reason: new InvalidValue({ executionId, deferred: name, detail: message }) })
    )
  )

// ---------------------------------------------------------------------------------------------------------------------
// reading
// ---------------------------------------------------------------------------------------------------------------------

const reading = (storage: Storage): Pick<Service, "get" | "ofRun"> => ({
  get: Effect.fn("DeferredStore.get")((key) =>
    Effect.map(storage.find([key]), ([row]) => Option.map(Option.fromUndefinedOr(row), toCompletion))
  ),
  ofRun: Effect.fn("DeferredStore.ofRun")((executionId) =>
    Effect.map(storage.ofRun(executionId), (rows) => rows.map(toCompletion))
  )
})

/** What is in the table went into it as canonical JSON. */
const toCompletion = (row: StoredDeferred): Completion => ({
  executionId: row.executionId,
  name: row.name,
  exit: JSON.parse(row.exit),
  metadata: row.metadata === null ? undefined : JSON.parse(row.metadata),
  completedAt: row.completedAt ?? undefined,
  consumedAt: row.consumedAt ?? undefined
})
