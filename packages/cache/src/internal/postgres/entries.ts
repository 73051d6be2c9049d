import type { Digest } from "@strata/durable/Digest"
import * as Rows from "@strata/durable/Rows"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import { Buffer } from "node:buffer"
import type { CacheEntry, Recording } from "../../CacheEntry.ts"
import type { CacheError } from "../../CacheError.ts"
import { ArtifactMissing, Invalid, Unexpected } from "../../CacheError.ts"
import * as Lookup from "../../Lookup.ts"
import type { PutOutcome, StepCache } from "../../StepCache.ts"
import type { StepKey } from "../../StepKey.ts"
import { checkSize, distinct } from "../blobs.ts"
import * as Blobs from "./blobs.ts"
import type { Database } from "./database.ts"
import * as EntryNote from "../entryNote.ts"
import * as LookupTime from "../http/lookupTime.ts"
import * as EntryParts from "./parts.ts"
import type { Settings } from "./settings.ts"
import { checkEntry, checkWritable, failWith } from "../refusing.ts"

type Service = StepCache["Service"]

interface Parts {
  readonly database: Database
  /** In which it is written down that an entry was used. */
  readonly scope: Scope.Scope
}

export const make = (database: Database): Effect.Effect<Service, never, Scope.Scope> =>
  Effect.map(Scope.Scope, (scope) => {
    const parts = { database, scope }
    return {
      name: database.settings.tier,
      arbitration: "exact",
      get: get(parts),
      put: put(database),
      evict: evict(database),
      quarantine: quarantine(database)
    }
  })

// ---------------------------------------------------------------------------------------------------------------------
// lookup
// ---------------------------------------------------------------------------------------------------------------------

const get = (parts: Parts): Service["get"] => {
  const { lookup, tier } = parts.database.settings
  return Effect.fn("PostgresCache.get")(function* (key, options) {
    yield* Effect.annotateCurrentSpan({ tier, key })
    return yield* LookupTime.within(tier, lookup, (received) => find(parts, key, options?.recording, received))
  })
}

const find = Effect.fnUntraced(function* (
  parts: Parts,
  key: StepKey,
  wanted: Recording | undefined,
  received: LookupTime.Received
): Effect.fn.Return<Lookup.Lookup, CacheError> {
  const { database } = parts
  const { maxEntryBytes, tier, useGrainMs } = database.settings
  const first = firstBytes(database.settings)
  const [values] = yield* database.run(database.statements.find, [key, first, useGrainMs], first)
  if (values === undefined) return Lookup.absent
  const found = EntryParts.toFound(values, 0)
  received((found.result?.length ?? 0) + (found.note?.length ?? 0))
  if (wanted !== undefined && wanted !== found.recording) return Lookup.fenced
  const row = yield* EntryParts.complete(database, key, found, received)
  if (row === undefined) return Lookup.absent
  const entry = EntryNote.decode(key, row, maxEntryBytes)
  if (Result.isFailure(entry)) return Lookup.miss(entry.failure)
  const digests = yield* lacking(database, entry.success)
  if (digests.length > 0) return Lookup.miss({ _tag: "ArtifactMissing", digests })
  if (values[7] === true) yield* used(parts, key, row)
  return Lookup.hit(entry.success, tier)
})

/** Most results and notes come along with the row of their entry. */
const firstBytes = ({ maxEntryBytes }: Settings): number => Math.min(64 * 1024, maxEntryBytes)

/** The digests of those artifacts of an entry that are not there. */
const lacking = (database: Database, { artifacts }: CacheEntry): Effect.Effect<ReadonlyArray<Digest>, CacheError> =>
  database.settings.artifacts === "trust" || artifacts.length === 0
    ? Effect.succeed([])
    : Effect.map(Blobs.missing(database, artifacts), (blobs) => blobs.map(({ digest }) => digest))

/** A hit is one whether or not the time of its use could be written down, and does not wait for that. */
const used = ({ database, scope }: Parts, key: StepKey, { id }: EntryNote.Row): Effect.Effect<void> =>
  database.settings.readOnly
    ? Effect.void
    : database.attempt(database.statements.use, [key, id]).pipe(
        Effect.catch((error) => Effect.logDebug("The use of a shared entry was not written down", error)),
        Effect.forkIn(scope),
        Effect.asVoid
      )

// ---------------------------------------------------------------------------------------------------------------------
// put
// ---------------------------------------------------------------------------------------------------------------------

const put = (database: Database): Service["put"] => {
  const { maxEntryBytes: maxBytes, tier } = database.settings
  return Effect.fn("PostgresCache.put")(function* (entry: CacheEntry) {
    yield* Effect.annotateCurrentSpan({ tier, key: entry.key, digest: entry.digest })
    yield* checkEntry(database.settings, entry)
    const note = EntryNote.encode(entry)
    if (Result.isFailure(note)) return yield* failWith(new Invalid({ tier, detail: "its metadata are none" }))
    const size = Math.max(Buffer.byteLength(entry.result), Buffer.byteLength(note.success))
    yield* checkSize({ tier, maxBytes }, size)
    return yield* offer(database, entry, note.success, mostAttempts)
  })
}

/** How often another entry may come or go at the very moment of a put. */
const mostAttempts = 10

/** The first stays, unless it is none that can be served to anybody. */
const offer: (
  database: Database,
  entry: CacheEntry,
  note: string,
  left: number
) => Effect.Effect<PutOutcome, CacheError> = Effect.fnUntraced(function* (database, entry, note, left) {
  const { settings, statements } = database
  const { artifacts, digest, key, metadata, result } = entry
  if (left === 0) {
    return yield* failWith(new Unexpected({ tier: settings.tier, detail: "the entry changes all the time" }))
  }
  const blobs = settings.artifacts === "trust" ? [] : distinct(artifacts)
  const first = firstBytes(settings)
  const rows = yield* database.run(
    statements.insert,
    [key, metadata.recording, digest, result, note, JSON.stringify(blobs), first],
    result.length + note.length + first
  )
  if (rows.some(([kind]) => kind === "inserted")) return { _tag: "Inserted" }
  const existing = rows.find(([kind]) => kind === "existing")
  if (existing !== undefined) {
    const row = yield* EntryParts.complete(database, key, EntryParts.toFound(existing, 1))
    if (row === undefined) return yield* offer(database, entry, note, left - 1)
    if (row.result === null || row.note === null) return yield* tooLarge(settings)
    const kept = EntryNote.decode(key, row, settings.maxEntryBytes)
    if (Result.isSuccess(kept)) {
      return { _tag: kept.success.digest === digest ? "ExistingSame" : "Conflict", entry: kept.success }
    }
    yield* database.run(statements.discard, [key, row.id])
    return yield* offer(database, entry, note, left - 1)
  }
  const missing = new Set(rows.filter(([kind]) => kind === "missing").map((row) => Rows.text(row[3])))
  if (missing.size === 0) return yield* offer(database, entry, note, left - 1)
  const digests = blobs.map(({ digest }) => digest).filter((digest) => missing.has(digest))
  return yield* failWith(new ArtifactMissing({ tier: settings.tier, digests }))
})

const tooLarge = ({ maxEntryBytes, tier }: Settings): Effect.Effect<never, CacheError> =>
  failWith(new Invalid({ tier, detail: `the entry that is there is larger than ${maxEntryBytes} bytes` }))

// ---------------------------------------------------------------------------------------------------------------------
// taking out
// ---------------------------------------------------------------------------------------------------------------------

const evict = (database: Database): Service["evict"] =>
  Effect.fn("PostgresCache.evict")(function* (key, options) {
    yield* Effect.annotateCurrentSpan({ tier: database.settings.tier, key })
    yield* checkWritable(database.settings)
    return (yield* database.run(database.statements.evict, [key, options?.recording ?? null])).length > 0
  })

const quarantine = (database: Database): Service["quarantine"] =>
  Effect.fn("PostgresCache.quarantine")(function* (key, { reason, recording }) {
    yield* Effect.annotateCurrentSpan({ tier: database.settings.tier, key, reason: reason._tag })
    yield* checkWritable(database.settings)
    return (yield* database.run(database.statements.evict, [key, recording])).length > 0
  })
