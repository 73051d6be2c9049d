import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import { createHash } from "node:crypto"
import type { CacheEntry, Recording } from "../../CacheEntry.ts"
import type { CacheError } from "../../CacheError.ts"
import { ArtifactMissing, Invalid, Unexpected } from "../../CacheError.ts"
import * as Lookup from "../../Lookup.ts"
import type { PutOutcome, StepCache } from "../../StepCache.ts"
import type { StepKey } from "../../StepKey.ts"
import { checkSize } from "../blobs.ts"
import { undecodable } from "../http/entryMessage.ts"
import * as LookupTime from "../http/lookupTime.ts"
import type { Arbitration } from "./arbitration.ts"
import * as Blobs from "./blobs.ts"
import type { Connection } from "./connection.ts"
import * as EntryValue from "./entryValue.ts"
import { pieces } from "./pieces.ts"
import * as Reply from "./reply.ts"
import * as Scripts from "./scripts.ts"
import { expiry, type Settings } from "./settings.ts"
import { checkEntry, checkWritable, failWith } from "../refusing.ts"

type Service = StepCache["Service"]

interface Parts {
  readonly connection: Connection
  readonly settings: Settings
  readonly arbitration: Arbitration
}

export const make = (parts: Parts): Service => ({
  name: parts.settings.tier,
  arbitration: "exact",
  get: get(parts),
  put: put(parts),
  evict: evict(parts),
  quarantine: quarantine(parts)
})

const keyOf = ({ prefix }: Settings, key: StepKey): string => `${prefix}entry:${key}`

// ---------------------------------------------------------------------------------------------------------------------
// lookup
// ---------------------------------------------------------------------------------------------------------------------

const get = (parts: Parts): Service["get"] => {
  const { settings } = parts
  return Effect.fn("RedisCache.get")(function* (key, options) {
    yield* Effect.annotateCurrentSpan({ tier: settings.tier, key })
    return yield* LookupTime.within(settings.tier, settings.lookup, (received) =>
      find(parts, key, options?.recording, received)
    )
  })
}

const find = Effect.fnUntraced(function* (
  parts: Parts,
  key: StepKey,
  wanted: Recording | undefined,
  received: LookupTime.Received
): Effect.fn.Return<Lookup.Lookup, CacheError> {
  const entry = yield* receive(parts, key, received)
  if (Result.isFailure(entry)) return Lookup.miss(entry.failure)
  if (wanted !== undefined && wanted !== entry.success.metadata.recording) return Lookup.fenced
  const digests = yield* lacking(parts, entry.success)
  return digests.length === 0
    ? Lookup.hit(entry.success, parts.settings.tier)
    : Lookup.miss({ _tag: "ArtifactMissing", digests })
})

/** Most entries are one piece of this size. */
const firstBytes = 64 * 1024

/** No more than an entry may have, and one byte, is received. */
const receive = (
  { connection, settings }: Parts,
  key: StepKey,
  received: LookupTime.Received
): Effect.Effect<Result.Result<CacheEntry, Lookup.MissReason>, CacheError> => {
  const limit = settings.maxEntryBytes
  const value = pieces(connection, keyOf(settings, key), { first: Math.min(firstBytes, limit + 1), most: limit + 1 })
  return value.pipe(
    Stream.tap((piece) => Effect.sync(() => received(piece.length))),
    Stream.runCollect,
    Effect.map((pieces): Result.Result<CacheEntry, Lookup.MissReason> => {
      const value = Buffer.concat(pieces)
      if (value.length === 0) return Result.fail({ _tag: "Absent" })
      return value.length > limit
        ? Result.fail(undecodable(`it is larger than ${limit} bytes`))
        : EntryValue.decode(key, value)
    }),
    Effect.catchReason("CacheError", "Invalid", ({ detail }) => Effect.succeed(Result.fail(undecodable(detail))))
  )
}

/** The digests of those artifacts of an entry that are not there. */
const lacking = (
  { connection, settings }: Parts,
  { artifacts }: CacheEntry
): Effect.Effect<ReadonlyArray<CacheEntry["digest"]>, CacheError> =>
  settings.artifacts === "trust" || artifacts.length === 0
    ? Effect.succeed([])
    : Effect.map(Blobs.missing(connection, settings, artifacts), (blobs) => blobs.map(({ digest }) => digest))

// ---------------------------------------------------------------------------------------------------------------------
// put
// ---------------------------------------------------------------------------------------------------------------------

const put = (parts: Parts): Service["put"] => {
  const { arbitration, connection, settings } = parts
  const { maxEntryBytes: maxBytes, tier } = settings
  return Effect.fn("RedisCache.put")(function* (entry: CacheEntry) {
    yield* Effect.annotateCurrentSpan({ tier, key: entry.key, digest: entry.digest })
    yield* checkEntry(settings, entry)
    const encoded = EntryValue.encode(entry, Buffer.from(entry.result, "utf8"))
    if (Result.isFailure(encoded)) return yield* failWith(new Invalid({ tier, detail: "its metadata are none" }))
    yield* checkSize({ tier, maxBytes }, encoded.success.length)
    yield* arbitration.ensure
    const digests = yield* lacking(parts, entry)
    if (digests.length > 0) return yield* failWith(new ArtifactMissing({ tier, digests }))
    yield* Blobs.prolong(connection, settings, entry.artifacts)
    return yield* offer(parts, entry, encoded.success, mostReplacements)
  })
}

/** How often a value that cannot be served may be replaced by another such one meanwhile. */
const mostReplacements = 5

/** The first stays, unless it is none that anybody can be served. */
const offer: (parts: Parts, entry: CacheEntry, value: Buffer, left: number) => Effect.Effect<PutOutcome, CacheError> =
  Effect.fnUntraced(function* (parts, entry, value, left) {
    const { connection, settings } = parts
    const key = keyOf(settings, entry.key)
    const offered = ["SET", key, value, "NX", "GET", ...expiry(settings)] as const
    const winner = yield* connection.send(Reply.bytesOrNothing, offered, value.length)
    if (winner === undefined) return { _tag: "Inserted" }
    const kept = EntryValue.decode(entry.key, winner)
    if (Result.isSuccess(kept) && (yield* lacking(parts, kept.success)).length === 0) {
      return { _tag: kept.success.digest === entry.digest ? "ExistingSame" : "Conflict", entry: kept.success }
    }
    const seen = createHash("sha1").update(winner).digest("hex")
    const replaced = yield* connection.send(Reply.count, [
      "EVAL",
      Scripts.replace,
      "1",
      key,
      seen,
      value,
      ...expiry(settings).slice(1)
    ])
    if (replaced === 1) return { _tag: "Inserted" }
    if (left > 0) return yield* offer(parts, entry, value, left - 1)
    return yield* failWith(new Unexpected({ tier: settings.tier, detail: "the entry changes all the time" }))
  })

// ---------------------------------------------------------------------------------------------------------------------
// taking out
// ---------------------------------------------------------------------------------------------------------------------

const evict = (parts: Parts): Service["evict"] => {
  const { connection, settings } = parts
  return Effect.fn("RedisCache.evict")(function* (key, options) {
    yield* Effect.annotateCurrentSpan({ tier: settings.tier, key })
    yield* checkWritable(settings)
    if (options?.recording !== undefined) return yield* evictRecording(parts, key, options.recording)
    return (yield* connection.send(Reply.count, ["UNLINK", keyOf(settings, key)])) > 0
  })
}

const quarantine = (parts: Parts): Service["quarantine"] =>
  Effect.fn("RedisCache.quarantine")(function* (key, { reason, recording }) {
    yield* Effect.annotateCurrentSpan({ tier: parts.settings.tier, key, reason: reason._tag })
    yield* checkWritable(parts.settings)
    return yield* evictRecording(parts, key, recording)
  })

const evictRecording = (
  { connection, settings }: Parts,
  key: StepKey,
  recording: Recording
): Effect.Effect<boolean, CacheError> =>
  Effect.map(
    connection.send(Reply.count, ["EVAL", Scripts.evict, "1", keyOf(settings, key), recording]),
    (taken) => taken > 0
  )

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------
