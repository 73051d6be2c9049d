import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { Buffer } from "node:buffer"
import type { CacheEntry, Recording } from "../../CacheEntry.ts"
import type { CacheError } from "../../CacheError.ts"
import { ArtifactMissing, Invalid, Unexpected, Unsupported } from "../../CacheError.ts"
import * as Lookup from "../../Lookup.ts"
import type { PutOutcome, StepCache } from "../../StepCache.ts"
import type { StepKey } from "../../StepKey.ts"
import { checkSize, distinct } from "../blobs.ts"
import * as Answer from "../http/answer.ts"
import * as EntryMessage from "../http/entryMessage.ts"
import * as LookupTime from "../http/lookupTime.ts"
import type { Arbitration } from "./arbitration.ts"
import * as Blobs from "./blobs.ts"
import type { Client } from "./client.ts"
import * as Conditional from "./conditional.ts"
import type { Settings } from "./settings.ts"
import { checkEntry, checkWritable, failWith } from "../refusing.ts"

/**
 * An entry is an object with the message by which entries go over HTTP, and the result in it. One that was taken out is
 * an empty object: that it is still the one that was looked at can be a condition of a put, and of a removal hardly
 * anywhere.
 */

type Service = StepCache["Service"]

interface Parts {
  readonly client: Client
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

const keyOf = (key: StepKey): string => `ac/${key}`

// ---------------------------------------------------------------------------------------------------------------------
// objects
// ---------------------------------------------------------------------------------------------------------------------

/** What is stored under a key, and the tag by which it can be named. */
interface Stored {
  readonly message: Uint8Array
  readonly tag: string
}

/** Nothing where there is no entry; the tag of one that was taken out. */
type Found = Stored | { readonly message: undefined; readonly tag: string | undefined }

const receive = (
  { client, settings }: Parts,
  key: StepKey,
  received?: LookupTime.Received
): Effect.Effect<Found, CacheError> =>
  client.request({ method: "GET", key: keyOf(key) }).pipe(
    Effect.flatMap((outcome): Effect.Effect<Found, CacheError> => {
      if (outcome._tag === "Absent") return Effect.succeed({ message: undefined, tag: undefined })
      const tag = outcome._tag === "Done" ? outcome.answer.headers.etag : undefined
      if (outcome._tag !== "Done" || tag === undefined) {
        return failWith(new Unexpected({ tier: settings.tier, detail: "an object without a tag" }))
      }
      return Effect.map(Answer.readAll(settings.tier, outcome.answer, settings.maxEntryBytes, received), (message) =>
        message.length === 0 ? { message: undefined, tag } : { message, tag }
      )
    }),
    Effect.scoped
  )

const decode = (key: StepKey, message: Uint8Array): Result.Result<CacheEntry, Lookup.MissReason> =>
  Result.flatMap(EntryMessage.decode(key, message), (received) =>
    received.inlined === undefined
      ? Result.fail(EntryMessage.undecodable("it has no result"))
      : EntryMessage.complete(received, received.inlined)
  )

/** The digests of those artifacts of an entry that are not there. */
const lacking = (
  { client, settings }: Parts,
  { artifacts }: CacheEntry
): Effect.Effect<ReadonlyArray<CacheEntry["digest"]>, CacheError> =>
  settings.artifacts === "trust" || artifacts.length === 0
    ? Effect.succeed([])
    : Effect.map(Blobs.missing(client, distinct(artifacts)), (blobs) => blobs.map(({ digest }) => digest))

// ---------------------------------------------------------------------------------------------------------------------
// lookup
// ---------------------------------------------------------------------------------------------------------------------

const get = (parts: Parts): Service["get"] => {
  const { lookup, tier } = parts.settings
  return Effect.fn("S3Cache.get")(function* (key, options) {
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
  const found = yield* Effect.result(receive(parts, key, received))
  if (Result.isFailure(found)) return yield* missOf(found.failure)
  const { message } = found.success
  if (message === undefined) return Lookup.absent
  const entry = decode(key, message)
  if (Result.isFailure(entry)) return Lookup.miss(entry.failure)
  if (wanted !== undefined && wanted !== entry.success.metadata.recording) return Lookup.fenced
  const digests = yield* lacking(parts, entry.success)
  return digests.length === 0
    ? Lookup.hit(entry.success, parts.settings.tier)
    : Lookup.miss({ _tag: "ArtifactMissing", digests })
})

/** What is wrong with content is a miss; that the tier failed is an error. */
const missOf = (error: CacheError): Effect.Effect<Lookup.Lookup, CacheError> => {
  const { reason } = error
  return reason._tag === "TooLarge"
    ? Effect.succeed(Lookup.miss(EntryMessage.undecodable(`it is larger than ${reason.limit} bytes`)))
    : Effect.fail(error)
}

// ---------------------------------------------------------------------------------------------------------------------
// put
// ---------------------------------------------------------------------------------------------------------------------

const put = (parts: Parts): Service["put"] => {
  const { maxEntryBytes: maxBytes, tier } = parts.settings
  return Effect.fn("S3Cache.put")(function* (entry: CacheEntry) {
    yield* Effect.annotateCurrentSpan({ tier, key: entry.key, digest: entry.digest })
    yield* checkEntry(parts.settings, entry)
    const result = Buffer.from(entry.result, "utf8")
    const encoded = EntryMessage.encode(entry, result, result.length)
    if (Result.isFailure(encoded)) return yield* failWith(new Invalid({ tier, detail: "its metadata are none" }))
    yield* checkSize({ tier, maxBytes }, encoded.success.length)
    yield* parts.arbitration.ensure
    const digests = yield* lacking(parts, entry)
    if (digests.length > 0) return yield* failWith(new ArtifactMissing({ tier, digests }))
    return yield* offer(parts, entry, encoded.success)
  })
}

/** How often what is there may change between a look and a put. */
const mostChanges = 10

/** How often a server may fail to say what became of a put. */
const mostFailures = 2

const isUncertain = (outcome: Conditional.Settled): boolean =>
  outcome._tag === "Unknown" || (outcome._tag === "Unmet" && outcome.repeated)

/** The first stays, unless it is none that anybody can be served. */
const offer = Effect.fnUntraced(function* (
  parts: Parts,
  entry: CacheEntry,
  message: Uint8Array
): Effect.fn.Return<PutOutcome, CacheError> {
  const key = keyOf(entry.key)
  const tags: Array<string | undefined> = []
  // A put may have stored the entry though its answer is lost, or does not say so.
  let mayBeOurs = false
  let failures = 0
  while (tags.length < mostChanges) {
    const tag = tags.at(-1)
    const outcome = yield* tag === undefined
      ? Conditional.create(parts.client, key, message)
      : Conditional.replace(parts.client, key, message, tag)
    if (outcome._tag === "Done") return { _tag: "Inserted" }
    if (outcome._tag === "Unknown" && ++failures > mostFailures) return yield* outcome.error
    mayBeOurs ||= isUncertain(outcome)
    const kept = yield* standing(parts, entry.key)
    if (kept.entry !== undefined) {
      const { digest, metadata } = kept.entry
      if (digest !== entry.digest) return { _tag: "Conflict", entry: kept.entry }
      const isOurs = mayBeOurs && metadata.recording === entry.metadata.recording
      return isOurs ? { _tag: "Inserted" } : { _tag: "ExistingSame", entry: kept.entry }
    }
    tags.push(kept.tag)
  }
  return yield* changing(parts, tags)
})

/** The entry of a key if it can be served, or the tag of what is in its place. */
const standing = Effect.fnUntraced(function* (
  parts: Parts,
  key: StepKey
): Effect.fn.Return<{ readonly entry?: CacheEntry; readonly tag?: string | undefined }, CacheError> {
  const { message, tag } = yield* receive(parts, key)
  if (message === undefined) return { tag }
  const entry = decode(key, message)
  if (Result.isFailure(entry)) return { tag }
  return (yield* lacking(parts, entry.success)).length === 0 ? { entry: entry.success } : { tag }
})

// ---------------------------------------------------------------------------------------------------------------------
// taking out
// ---------------------------------------------------------------------------------------------------------------------

const evict = (parts: Parts): Service["evict"] =>
  Effect.fn("S3Cache.evict")(function* (key, options) {
    yield* Effect.annotateCurrentSpan({ tier: parts.settings.tier, key })
    yield* checkWritable(parts.settings)
    return yield* takeOut(parts, key, options?.recording)
  })

const quarantine = (parts: Parts): Service["quarantine"] =>
  Effect.fn("S3Cache.quarantine")(function* (key, { reason, recording }) {
    yield* Effect.annotateCurrentSpan({ tier: parts.settings.tier, key, reason: reason._tag })
    yield* checkWritable(parts.settings)
    return yield* takeOut(parts, key, recording)
  })

/** What was looked at is written over, if it is still there. With a recording, only that one. */
const takeOut = Effect.fnUntraced(function* (
  parts: Parts,
  key: StepKey,
  recording: Recording | undefined
): Effect.fn.Return<boolean, CacheError> {
  yield* parts.arbitration.ensure
  const tags: Array<string> = []
  // A put may have taken it out though its answer is lost, or does not say so.
  let mayBeOurs = false
  let failures = 0
  while (tags.length < mostChanges) {
    const { message, tag } = yield* receive(parts, key)
    if (message === undefined) return mayBeOurs
    if (recording !== undefined && recording !== recordingOf(key, message)) return false
    const outcome = yield* Conditional.replace(parts.client, keyOf(key), nothing, tag)
    if (outcome._tag === "Done") return true
    if (outcome._tag === "Unknown" && ++failures > mostFailures) return yield* outcome.error
    mayBeOurs = isUncertain(outcome)
    tags.push(tag)
  }
  return yield* changing(parts, tags)
})

/** Of whatever has one, also when it cannot be served. */
const recordingOf = (key: StepKey, message: Uint8Array): Recording | undefined => {
  const received = EntryMessage.decode(key, message)
  return Result.isSuccess(received) ? received.success.entry.metadata.recording : undefined
}

const nothing = new Uint8Array()

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/** What was seen is refused as a condition: it changes faster than it can be looked at, or that is nothing for the server. */
const changing = ({ settings: { tier } }: Parts, seen: ReadonlyArray<string | undefined>) =>
  failWith(
    new Set(seen).size > 1
      ? new Unexpected({ tier, detail: "the entry changes all the time" })
      : new Unsupported({ tier, operation: "replace an object: it refuses If-Match with the tag that it has given" })
  )
