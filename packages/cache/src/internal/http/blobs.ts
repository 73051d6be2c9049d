import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Blob } from "../../CacheEntry.ts"
import { ArtifactMissing, CacheError, Unsupported } from "../../CacheError.ts"
import * as Check from "../checked.ts"
import type { Remote } from "../remoteArtifacts.ts"
import type { Client } from "./client.ts"

/** How many blobs are asked about at a time. */
const concurrency = 8

const pathOf = (blob: Blob): string => `cas/${blob.digest}`

export const remote = (client: Client): Remote => ({
  upload: (blob, content) => upload(client, blob, content),
  download: (blob) => download(client, blob),
  missing: (blobs) => missing(client, blobs),
  remove: () =>
    Effect.fail(new CacheError({ reason: new Unsupported({ tier: client.target.tier, operation: "remove blobs" }) }))
})

/** Sends a blob, whether or not it is there. */
export const upload = <E, R>(
  client: Client,
  blob: Blob,
  content: Stream.Stream<Uint8Array, E, R>
): Effect.Effect<void, CacheError | E, R> =>
  client.request("PUT", pathOf(blob), { ...blob, content }).pipe(Effect.scoped, Effect.asVoid)

/** Content that ends only when it is that of the blob. */
export const download = (client: Client, blob: Blob): Stream.Stream<Uint8Array, CacheError> => {
  const { tier } = client.target
  return Stream.unwrap(
    Effect.map(client.request("GET", pathOf(blob)), (outcome) =>
      outcome._tag === "Absent"
        ? Stream.fail(new CacheError({ reason: new ArtifactMissing({ tier, digests: [blob.digest] }) }))
        : Check.checked(tier, blob, outcome.answer.body)
    )
  )
}

/** Those of the blobs that are not there in their size. A server that tells no size is taken at its word. */
export const missing = (client: Client, blobs: ReadonlyArray<Blob>): Effect.Effect<ReadonlyArray<Blob>, CacheError> =>
  Effect.map(
    Effect.forEach(blobs, (blob) => isThere(client, blob), { concurrency }),
    (there) => blobs.filter((_, index) => there[index] === false)
  )

const isThere = (client: Client, blob: Blob): Effect.Effect<boolean, CacheError> =>
  client.request("HEAD", pathOf(blob)).pipe(
    Effect.scoped,
    Effect.map((outcome) => {
      if (outcome._tag === "Absent") return false
      const length = outcome.answer.headers["content-length"]
      return length === undefined || Number(length) === blob.size
    })
  )
