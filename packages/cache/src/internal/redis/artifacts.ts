import { sha256 } from "@strata/durable/Digest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { createHash, type Hash } from "node:crypto"
import type { ArtifactStore } from "../../ArtifactStore.ts"
import type { Blob } from "../../CacheEntry.ts"
import { ArtifactMissing, CacheError, Unsupported } from "../../CacheError.ts"
import { checkSize, collect } from "../blobs.ts"
import { checked } from "../checked.ts"
import * as Blobs from "./blobs.ts"
import type { Connection } from "./connection.ts"
import { pieceBytes, pieces } from "./pieces.ts"
import * as Reply from "./reply.ts"
import * as Scripts from "./scripts.ts"
import { expiry, type Settings } from "./settings.ts"
import { checkWritable } from "../refusing.ts"

type Service = ArtifactStore["Service"]

export const make = (connection: Connection, settings: Settings): Service => ({
  name: settings.tier,
  add: add(connection, settings),
  put: put(connection, settings),
  get: get(connection, settings),
  missing: missing(connection, settings),
  remove: remove(connection, settings),
  list: Stream.fail(new CacheError({ reason: new Unsupported({ tier: settings.tier, operation: "list blobs" }) }))
})

// ---------------------------------------------------------------------------------------------------------------------
// operations
// ---------------------------------------------------------------------------------------------------------------------

/** Sends the content whether or not it is there, since what is there may be corrupt. */
const add = (connection: Connection, settings: Settings): Service["add"] => {
  const bounds = boundsOf(settings)
  return Effect.fn("RedisCache.add")(function* (content) {
    yield* Effect.annotateCurrentSpan({ tier: settings.tier })
    yield* checkWritable(settings)
    const bytes = yield* collect(bounds, content)
    const blob = { digest: sha256(bytes), size: bytes.length }
    yield* upload(connection, settings, blob, bytes)
    return blob
  })
}

const put = (connection: Connection, settings: Settings): Service["put"] => {
  const { tier } = settings
  const bounds = boundsOf(settings)
  return Effect.fn("RedisCache.putBlob")(function* (blob, content) {
    yield* Effect.annotateCurrentSpan({ tier, digest: blob.digest, size: blob.size })
    yield* checkWritable(settings)
    yield* checkSize(bounds, blob.size)
    if (yield* Blobs.isThere(connection, settings, blob)) return yield* Blobs.prolong(connection, settings, [blob])
    yield* upload(connection, settings, blob, yield* collect(bounds, checked(tier, blob, content)))
  })
}

const get = (connection: Connection, settings: Settings): Service["get"] => {
  const bounds = boundsOf(settings)
  return (blob) =>
    Stream.fromEffectDrain(checkSize(bounds, blob.size)).pipe(
      Stream.concat(Stream.suspend(() => download(connection, settings, blob))),
      Stream.withSpan("RedisCache.getBlob", {
        attributes: { tier: settings.tier, digest: blob.digest, size: blob.size }
      })
    )
}

const missing = (connection: Connection, settings: Settings): Service["missing"] =>
  Effect.fn("RedisCache.missing")(function* (blobs) {
    yield* Effect.annotateCurrentSpan({ tier: settings.tier, blobs: blobs.length })
    return yield* Blobs.missing(connection, settings, blobs)
  })

const remove = (connection: Connection, settings: Settings): Service["remove"] =>
  Effect.fn("RedisCache.remove")(function* (digest) {
    yield* Effect.annotateCurrentSpan({ tier: settings.tier, digest })
    yield* checkWritable(settings)
    return (yield* connection.send(Reply.count, ["UNLINK", Blobs.keyOf(settings, { digest })])) > 0
  })

// ---------------------------------------------------------------------------------------------------------------------
// content
// ---------------------------------------------------------------------------------------------------------------------

const upload = (
  connection: Connection,
  settings: Settings,
  blob: Blob,
  content: Buffer
): Effect.Effect<void, CacheError> =>
  connection.send(Reply.done, ["SET", Blobs.keyOf(settings, blob), content, ...expiry(settings)])

const download = (connection: Connection, settings: Settings, blob: Blob): Stream.Stream<Uint8Array, CacheError> => {
  const seen: Seen = { hash: createHash("sha1"), size: 0 }
  return checked(settings.tier, blob, received(connection, settings, blob, seen)).pipe(
    Stream.tapError((error) =>
      error.reason._tag === "ArtifactCorrupt" ? discard(connection, settings, blob, seen) : Effect.void
    )
  )
}

/** What has been received. */
interface Seen {
  readonly hash: Hash
  size: number
}

/** One byte more than the blob has, if there is one: it is then another. */
const received = (
  connection: Connection,
  settings: Settings,
  blob: Blob,
  seen: Seen
): Stream.Stream<Uint8Array, CacheError> => {
  const most = blob.size + 1
  return pieces(connection, Blobs.keyOf(settings, blob), { first: Math.min(most, pieceBytes), most }).pipe(
    Stream.tap((piece) => {
      seen.hash.update(piece)
      seen.size += piece.length
      return seen.size === 0 ? checkThere(connection, settings, blob) : Effect.void
    })
  )
}

/** What is not there reads as if it were empty. */
const checkThere = (connection: Connection, settings: Settings, blob: Blob): Effect.Effect<void, CacheError> =>
  Effect.flatMap(blob.size > 0 ? Effect.succeed(false) : Blobs.isThere(connection, settings, blob), (there) =>
    there
      ? Effect.void
      : Effect.fail(new CacheError({ reason: new ArtifactMissing({ tier: settings.tier, digests: [blob.digest] }) }))
  )

/**
 * Takes out content of the right size that is not that of its digest, if it is still there, so that the next put sends
 * it. Content of another size is sent again anyway, and may be right though it was asked for with a wrong size.
 */
const discard = (connection: Connection, settings: Settings, blob: Blob, seen: Seen): Effect.Effect<void> =>
  settings.readOnly || seen.size !== blob.size
    ? Effect.void
    : Effect.ignore(
        connection.send(Reply.count, [
          "EVAL",
          Scripts.discard,
          "1",
          Blobs.keyOf(settings, blob),
          seen.hash.digest("hex")
        ])
      )

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const boundsOf = ({ maxBlobBytes, tier }: Settings) => ({ tier, maxBytes: maxBlobBytes })
