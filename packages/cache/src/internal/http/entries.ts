import { sha256 } from "@strata/durable/Digest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import { Buffer } from "node:buffer"
import type { CacheEntry, Recording } from "../../CacheEntry.ts"
import type { CacheError } from "../../CacheError.ts"
import { Invalid, Unsupported } from "../../CacheError.ts"
import * as Lookup from "../../Lookup.ts"
import type { StepCache } from "../../StepCache.ts"
import type { StepKey } from "../../StepKey.ts"
import { checkSize } from "../blobs.ts"
import * as Answer from "./answer.ts"
import * as Blobs from "./blobs.ts"
import type { Client } from "./client.ts"
import * as EntryMessage from "./entryMessage.ts"
import * as LookupTime from "./lookupTime.ts"
import type { Settings } from "./settings.ts"
import { checkEntry, failWith } from "../refusing.ts"

type Service = StepCache["Service"]

export const make = (client: Client, settings: Settings): Service => ({
  name: settings.tier,
  arbitration: "last-writer-wins",
  get: get(client, settings),
  put: put(client, settings),
  evict: () => failWith(new Unsupported({ tier: settings.tier, operation: "evict entries" })),
  quarantine: () => failWith(new Unsupported({ tier: settings.tier, operation: "quarantine entries" }))
})

const pathOf = (key: StepKey): string => `ac/${key}`

// ---------------------------------------------------------------------------------------------------------------------
// lookup
// ---------------------------------------------------------------------------------------------------------------------

const get = (client: Client, settings: Settings): Service["get"] =>
  Effect.fn("HttpCache.get")(function* (key, options) {
    yield* Effect.annotateCurrentSpan({ tier: settings.tier, key })
    return yield* LookupTime.within(settings.tier, settings.lookup, (received) =>
      find({ client, settings, received }, key, options?.recording)
    )
  })

/** A lookup that is under way. */
interface Looking {
  readonly client: Client
  readonly settings: Settings
  readonly received: LookupTime.Received
}

const find = Effect.fnUntraced(function* (
  looking: Looking,
  key: StepKey,
  wanted: Recording | undefined
): Effect.fn.Return<Lookup.Lookup, CacheError> {
  const bytes = yield* receiveMessage(looking, key)
  if (Result.isFailure(bytes)) return Lookup.miss(bytes.failure)
  const message = EntryMessage.decode(key, bytes.success)
  if (Result.isFailure(message)) return Lookup.miss(message.failure)
  if (wanted !== undefined && wanted !== message.success.entry.metadata.recording) return Lookup.fenced
  return yield* complete(looking, message.success)
})

const receiveMessage = ({ client, received, settings }: Looking, key: StepKey): Effect.Effect<Part, CacheError> =>
  client.request("GET", pathOf(key)).pipe(
    Effect.flatMap((outcome): Effect.Effect<Part, CacheError> =>
      outcome._tag === "Absent"
        ? Effect.succeed(Result.fail({ _tag: "Absent" }))
        : Effect.map(Answer.readAll(settings.tier, outcome.answer, settings.maxEntryBytes, received), Result.succeed)
    ),
    Effect.scoped,
    Effect.catchTag("CacheError", toMiss)
  )

/** Fetches the result unless it came along, and asks for the artifacts. */
const complete = Effect.fnUntraced(function* (
  looking: Looking,
  message: EntryMessage.Received
): Effect.fn.Return<Lookup.Lookup, CacheError> {
  const { client, settings } = looking
  const result = yield* receiveResult(looking, message)
  const entry = Result.flatMap(result, (bytes) => EntryMessage.complete(message, bytes))
  if (Result.isFailure(entry)) return Lookup.miss(entry.failure)
  const { artifacts } = entry.success
  const gone = settings.artifacts === "exists" ? yield* Blobs.missing(client, artifacts) : []
  return gone.length === 0
    ? Lookup.hit(entry.success, settings.tier)
    : Lookup.miss({ _tag: "ArtifactMissing", digests: gone.map(({ digest }) => digest) })
})

const receiveResult = (
  { client, received, settings: { maxEntryBytes, tier } }: Looking,
  { inlined, resultBlob }: EntryMessage.Received
): Effect.Effect<Part, CacheError> =>
  inlined !== undefined
    ? Effect.succeed(Result.succeed(inlined))
    : checkSize({ tier, maxBytes: maxEntryBytes }, resultBlob.size).pipe(
        Effect.andThen(
          Blobs.download(client, resultBlob).pipe(
            Stream.tap((chunk) => Effect.sync(() => received(chunk.length))),
            Stream.runCollect
          )
        ),
        Effect.map((chunks) => Result.succeed<Uint8Array>(Buffer.concat(chunks, resultBlob.size))),
        Effect.catchTag("CacheError", toMiss)
      )

/** A part of an entry, or why the entry cannot be served. */
type Part = Result.Result<Uint8Array, Lookup.MissReason>

/** What is wrong with content is a miss; that the tier failed is an error. */
const toMiss = (error: CacheError): Effect.Effect<Result.Result<never, Lookup.MissReason>, CacheError> => {
  const { reason } = error
  switch (reason._tag) {
    case "ArtifactMissing":
      return Effect.succeed(Result.fail({ _tag: "ArtifactMissing", digests: reason.digests }))
    case "ArtifactCorrupt":
      return Effect.succeed(Result.fail({ _tag: "DigestMismatch" }))
    case "TooLarge":
      return Effect.succeed(Result.fail(EntryMessage.undecodable(`it is larger than ${reason.limit} bytes`)))
    case "Invalid":
      return Effect.succeed(Result.fail(EntryMessage.undecodable(reason.detail)))
    default:
      return Effect.fail(error)
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// put
// ---------------------------------------------------------------------------------------------------------------------

/** The result is sent even when it is in the message, since servers check that every output file is there. */
const put = (client: Client, settings: Settings): Service["put"] =>
  Effect.fn("HttpCache.put")(function* (entry: CacheEntry) {
    const { inlineBytes, maxEntryBytes, tier } = settings
    yield* Effect.annotateCurrentSpan({ tier, key: entry.key, digest: entry.digest })
    yield* checkEntry(settings, entry)
    const result = Buffer.from(entry.result, "utf8")
    const encoded = EntryMessage.encode(entry, result, inlineBytes)
    if (Result.isFailure(encoded)) return yield* failWith(new Invalid({ tier, detail: "its metadata are none" }))
    const message = encoded.success
    yield* checkSize({ tier, maxBytes: maxEntryBytes }, Math.max(result.length, message.length))
    yield* Blobs.upload(client, { digest: entry.digest, size: result.length }, Stream.make(result))
    const body = { digest: sha256(message), size: message.length, content: Stream.make(message) }
    yield* Effect.scoped(client.request("PUT", pathOf(entry.key), body))
    return { _tag: "Unarbitrated" } as const
  })

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------
