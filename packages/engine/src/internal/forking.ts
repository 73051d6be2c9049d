import type { WriteTransaction } from "@strata/durable/DurableWriter"
import { afterCommit } from "@strata/durable/DurableWriter"
import * as Event from "@strata/journal/Event"
import type { Entry, JournalError } from "@strata/journal/Journal"
import { JournalStorage } from "@strata/journal/JournalStorage"
import type { StreamName } from "@strata/journal/StreamName"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import type { SqlError } from "effect/sql/SqlError"
import type { FoldIncomplete } from "../FoldIncomplete.ts"
import * as RunEvents from "../RunEvents.ts"
import * as RunStream from "../RunStream.ts"
import type { Attempt, StoredRun } from "../RunStore.ts"
import * as Folding from "./folding.ts"
import * as FoldRows from "./foldRows.ts"
import type { Parts } from "./historyService.ts"
import { interruptionUpTo } from "./runProjection.ts"

/*
 * A fork has copies of the entries of another run, behind one that tells where it comes from, and the rows that these
 * explain. Where the start of the other run was compacted, its own start is: the states at the floor become its own.
 */

interface Fork {
  readonly run: StoredRun
  readonly to: string
  /** The last entry that is copied. */
  readonly upTo: number
  readonly floor: number
}

/** Gives nothing when there is a run of that id. */
export const fork = Effect.fnUntraced(function* (
  parts: Parts,
  { floor, run, to, upTo }: Fork
): Effect.fn.Return<StoredRun | undefined, SqlError | JournalError | FoldIncomplete, WriteTransaction> {
  const from = RunStream.of(run.executionId)
  const now = yield* Clock.currentTimeMillis
  const later = yield* outcomesAfter(parts, from, upTo)
  const outcomes = (yield* parts.store.outcomes(run.id)).filter((outcome) => !later.has(nameOf(outcome)))
  const interrupted = yield* interruptionUpTo(parts.journal, from, upTo)
  const forked = yield* parts.store.fork(now, run.executionId, to, { outcomes, interrupted })
  if (forked === undefined) return undefined
  yield* copyEntries(parts, { floor, run, to, upTo }, now)
  yield* copyState(parts, run.executionId, to, upTo)
  return forked
})

// ---------------------------------------------------------------------------------------------------------------------
// entries
// ---------------------------------------------------------------------------------------------------------------------

const copyEntries = Effect.fnUntraced(function* (
  { journal, storage }: Parts,
  { floor, run, to, upTo }: Fork,
  now: number
) {
  const from = RunStream.of(run.executionId)
  const stream = RunStream.of(to)
  const origin = RunEvents.Forked.make({ from: run.executionId, seq: upTo })
  const [first] = yield* journal.append(stream, [origin])
  if (floor > 0 && first !== undefined) {
    yield* storage.saveStates(now, stream, first.seq, yield* storage.states(from, floor))
    yield* storage.raiseFloor(stream, first.seq, beforeAll)
  }
  // The entry at the floor is in the states there.
  yield* forEachPage(
    floor,
    (after) => journal.read({ stream: from, after, upTo, limit: pageSize }),
    (entries) => Effect.asVoid(journal.append(stream, entries.filter(({ type }) => !type.startsWith("~")).map(toEvent)))
  )
})

const toEvent = ({ identity, payload, type }: Entry) =>
  Event.json(type, type === RunEvents.Started.type ? withoutParent(payload) : payload, { identity })

/** A fork has none. */
const withoutParent = (payload: Schema.Json): Schema.Json => {
  if (typeof payload !== "object" || payload === null || Array.isArray(payload)) return payload
  const { parent: _parent, ...rest } = payload as Schema.JsonObject
  return rest
}

const beforeAll = { transaction: 0, ordinal: 0 }

// ---------------------------------------------------------------------------------------------------------------------
// rows
// ---------------------------------------------------------------------------------------------------------------------

/** Those that the entries behind a seq tell of. */
const outcomesAfter = Effect.fnUntraced(function* ({ journal }: Parts, stream: StreamName, after: number) {
  const names = new Set<string>()
  const types = [RunEvents.ActivityCompleted.type]
  yield* forEachPage(
    after,
    (after) => journal.read({ stream, after, types, limit: pageSize }),
    (entries) =>
      Effect.gen(function* () {
        for (const entry of entries) {
          const event = yield* decode(entry)
          if (event._tag === "Some") names.add(nameOf(event.value.payload))
        }
      })
  )
  return names
})

const decode = Event.decoder([RunEvents.ActivityCompleted])

const nameOf = ({ attempt, name }: Attempt): string => `${attempt}/${name}`

const copyState = Effect.fnUntraced(function* (parts: Parts, from: string, to: string, upTo: number) {
  const state = yield* Effect.provideService(Folding.capture(from, upTo), JournalStorage, parts.storage)
  const { clocks, stamps } = FoldRows.of(to, state)
  const stampOf = new Map(stamps.map((stamp) => [stamp.name, stamp]))
  const rows = yield* parts.deferreds.ofRun(from)
  yield* parts.clockStorage.put(clocks)
  yield* parts.deferreds.insert(
    rows.flatMap((row) => {
      const stamp = stampOf.get(row.name)
      return stamp === undefined ? [] : [{ ...row, ...stamp }]
    })
  )
  yield* afterCommit(parts.clocks.changes.notify)
})

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/** The seq of the first entry of a type, if there is one. */
export const firstOf = (
  storage: JournalStorage["Service"],
  stream: string,
  floor: number,
  type: string
): Effect.Effect<number | undefined, SqlError> =>
  Effect.map(
    storage.read({ stream, after: Math.max(floor - 1, 0), upTo: Number.MAX_SAFE_INTEGER, types: [type], limit: 1 }),
    ({ entries }) => entries[0]?.seq
  )

const pageSize = 500

const forEachPage = Effect.fnUntraced(function* <E, R, E2, R2>(
  from: number,
  read: (after: number) => Effect.Effect<ReadonlyArray<Entry>, E, R>,
  f: (entries: ReadonlyArray<Entry>) => Effect.Effect<void, E2, R2>
) {
  let after = from
  while (true) {
    const entries = yield* read(after)
    if (entries.length > 0) yield* f(entries)
    if (entries.length < pageSize) return
    after = entries.at(-1)!.seq
  }
})
