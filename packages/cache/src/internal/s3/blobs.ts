import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Blob } from "../../CacheEntry.ts"
import { ArtifactMissing, CacheError, Unexpected } from "../../CacheError.ts"
import * as Check from "../checked.ts"
import type { Remote } from "../remoteArtifacts.ts"
import type { Client } from "./client.ts"
import * as Multipart from "./multipart.ts"
import type { Settings } from "./settings.ts"

/** How many blobs are asked about at a time. */
const concurrency = 16

const keyOf = ({ digest }: Pick<Blob, "digest">): string => `cas/${digest}`

export const remote = (client: Client, { multipartBytes }: Settings): Remote => ({
  upload: (blob, content) =>
    blob.size > multipartBytes ? Multipart.upload(client, keyOf(blob), blob, content) : upload(client, blob, content),
  download: (blob) => download(client, blob),
  missing: (blobs) => missing(client, blobs),
  remove: (digest) =>
    // A removal says the same whether or not something was there.
    Effect.flatMap(Effect.scoped(client.request({ method: "HEAD", key: keyOf({ digest }) })), (outcome) =>
      outcome._tag === "Done"
        ? Effect.as(Effect.scoped(client.request({ method: "DELETE", key: keyOf({ digest }) })), true)
        : Effect.succeed(false)
    )
})

/** The digest of the content is what is signed, so that the server refuses anything else. */
const upload = <E, R>(
  client: Client,
  blob: Blob,
  content: Stream.Stream<Uint8Array, E, R>
): Effect.Effect<void, CacheError | E, R> =>
  client.request({ method: "PUT", key: keyOf(blob), upload: { ...blob, content } }).pipe(
    Effect.flatMap(({ _tag }) =>
      _tag === "Done"
        ? Effect.void
        : Effect.fail(
            new CacheError({
              reason: new Unexpected({ tier: client.tier, detail: `${_tag} to a put without condition` })
            })
          )
    ),
    Effect.scoped
  )

/** Content that ends only when it is that of the blob. */
const download = (client: Client, blob: Blob): Stream.Stream<Uint8Array, CacheError> => {
  const { tier } = client
  return Stream.unwrap(
    Effect.map(client.request({ method: "GET", key: keyOf(blob) }), (outcome) =>
      outcome._tag === "Done"
        ? Check.checked(tier, blob, outcome.answer.body)
        : Stream.fail(new CacheError({ reason: new ArtifactMissing({ tier, digests: [blob.digest] }) }))
    )
  )
}

/** Those of the blobs that are not there in their size. */
export const missing = (client: Client, blobs: ReadonlyArray<Blob>): Effect.Effect<ReadonlyArray<Blob>, CacheError> =>
  Effect.filter(blobs, (blob) => Effect.map(isThere(client, blob), (there) => !there), { concurrency })

const isThere = (client: Client, blob: Blob): Effect.Effect<boolean, CacheError> =>
  Effect.map(
    Effect.scoped(client.request({ method: "HEAD", key: keyOf(blob) })),
    (outcome) => outcome._tag === "Done" && Number(outcome.answer.headers["content-length"]) === blob.size
  )
