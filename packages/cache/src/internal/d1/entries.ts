import * as Rows from "@strata/durable/Rows"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import { Buffer } from "node:buffer"
import type { CacheEntry } from "../../CacheEntry.ts"
import type { CacheError } from "../../CacheError.ts"
import { ArtifactMissing, Invalid, Unexpected } from "../../CacheError.ts"
import * as Lookup from "../../Lookup.ts"
import type { PutOutcome, StepCache } from "../../StepCache.ts"
import type { StepKey } from "../../StepKey.ts"
import { checkSize, distinct } from "../blobs.ts"
import * as EntryNote from "../entryNote.ts"
import type { Database } from "./database.ts"
import type { Settings } from "./settings.ts"
import { checkEntry, checkWritable, failWith } from "../refusing.ts"

type Service = StepCache["Service"]

interface Parts {
  readonly database: Database
  /** In which it is written down that an entry was used. */
  readonly scope: Scope.Scope
}

export const make = (database: Database): Effect.Effect<Service, never, Scope.Scope> =>
  Effect.map(Scope.Scope, (scope) => ({
    name: database.settings.tier,
    arbitration: "exact",
    get: get({ database, scope }),
    put: put(database),
    evict: evict(database),
    quarantine: quarantine(database)
  }))

// ---------------------------------------------------------------------------------------------------------------------
// lookup
// ---------------------------------------------------------------------------------------------------------------------

const get = (parts: Parts): Service["get"] => {
  const { database } = parts
  const { maxEntryBytes, tier, useGrainMs } = database.settings
  return Effect.fn("D1Cache.get")(function* (key, options) {
    yield* Effect.annotateCurrentSpan({ tier, key })
    const [found] = yield* database.run(database.statements.find, [key, useGrainMs])
    if (found === undefined) return Lookup.absent
    const row = toRow(found)
    const wanted = options?.recording
    if (wanted !== undefined && wanted !== row.recording) return Lookup.fenced
    const entry = EntryNote.decode(key, row, maxEntryBytes)
    if (Result.isFailure(entry)) return Lookup.miss(entry.failure)
    const digests = yield* lacking(database.settings, entry.success)
    if (digests.length > 0) return Lookup.miss({ _tag: "ArtifactMissing", digests })
    if (found[5] === 1) yield* used(parts, key, row)
    return Lookup.hit(entry.success, tier)
  })
}

/** The digests of those artifacts of an entry that are not there. */
const lacking = (
  { blobs }: Settings,
  { artifacts }: CacheEntry
): Effect.Effect<ReadonlyArray<CacheEntry["digest"]>, CacheError> =>
  blobs === undefined || artifacts.length === 0
    ? Effect.succeed([])
    : Effect.map(blobs.missing(distinct(artifacts)), (missing) => missing.map(({ digest }) => digest))

/** A hit is one whether or not the time of its use could be written down, and does not wait for that. */
const used = ({ database, scope }: Parts, key: StepKey, { id }: EntryNote.Row): Effect.Effect<void> =>
  database.settings.readOnly
    ? Effect.void
    : database.run(database.statements.use, [key, id]).pipe(
        Effect.catch((error) => Effect.logDebug("The use of a shared entry was not written down", error)),
        Effect.forkIn(scope),
        Effect.asVoid
      )

// ---------------------------------------------------------------------------------------------------------------------
// put
// ---------------------------------------------------------------------------------------------------------------------

const put = (database: Database): Service["put"] => {
  const { maxEntryBytes: maxBytes, tier } = database.settings
  return Effect.fn("D1Cache.put")(function* (entry: CacheEntry) {
    yield* Effect.annotateCurrentSpan({ tier, key: entry.key, digest: entry.digest })
    yield* checkEntry(database.settings, entry)
    const note = EntryNote.encode(entry)
    if (Result.isFailure(note)) return yield* failWith(new Invalid({ tier, detail: "its metadata are none" }))
    yield* checkSize({ tier, maxBytes }, Buffer.byteLength(entry.result) + Buffer.byteLength(note.success))
    const digests = yield* lacking(database.settings, entry)
    if (digests.length > 0) return yield* failWith(new ArtifactMissing({ tier, digests }))
    return yield* offer(database, entry, note.success, mostAttempts)
  })
}

/** How often another entry that cannot be served may come at the very moment of a put. */
const mostAttempts = 10

/** The first stays, unless it is none that anybody can be served. */
const offer: (
  database: Database,
  entry: CacheEntry,
  note: string,
  left: number
) => Effect.Effect<PutOutcome, CacheError> = Effect.fnUntraced(function* (database, entry, note, left) {
  const { batch, prepare, run, settings, statements } = database
  const { digest, key, metadata, result } = entry
  if (left === 0) {
    return yield* failWith(new Unexpected({ tier: settings.tier, detail: "the entry changes all the time" }))
  }
  // In one batch, so that the entry which was there is told before it can go.
  const [inserted, existing] = yield* batch([
    prepare(statements.insert, [key, metadata.recording, digest, result, note]),
    prepare(statements.existing, [key])
  ])
  if (inserted?.length === 1) return { _tag: "Inserted" }
  const [found] = existing ?? []
  if (found === undefined) {
    return yield* failWith(new Unexpected({ tier: settings.tier, detail: "a batch without an answer" }))
  }
  const row = toRow(found)
  const kept = EntryNote.decode(key, row, settings.maxEntryBytes)
  if (Result.isSuccess(kept) && (yield* lacking(settings, kept.success)).length === 0) {
    return { _tag: kept.success.digest === digest ? "ExistingSame" : "Conflict", entry: kept.success }
  }
  yield* run(statements.discard, [key, row.id])
  return yield* offer(database, entry, note, left - 1)
})

// ---------------------------------------------------------------------------------------------------------------------
// taking out
// ---------------------------------------------------------------------------------------------------------------------

const evict = (database: Database): Service["evict"] =>
  Effect.fn("D1Cache.evict")(function* (key, options) {
    const { run, settings, statements } = database
    yield* Effect.annotateCurrentSpan({ tier: settings.tier, key })
    yield* checkWritable(settings)
    const recording = options?.recording
    const taken =
      recording === undefined
        ? yield* run(statements.evict, [key])
        : yield* run(statements.evictRecording, [key, recording])
    return taken.length > 0
  })

const quarantine = (database: Database): Service["quarantine"] =>
  Effect.fn("D1Cache.quarantine")(function* (key, { reason, recording }) {
    yield* Effect.annotateCurrentSpan({ tier: database.settings.tier, key, reason: reason._tag })
    yield* checkWritable(database.settings)
    return (yield* database.run(database.statements.evictRecording, [key, recording])).length > 0
  })

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const toRow = (values: Rows.Values): EntryNote.Row => ({
  id: Rows.integer(values[0]),
  recording: Rows.text(values[1]),
  digest: Rows.text(values[2]),
  result: Rows.text(values[3]),
  note: Rows.text(values[4])
})
