import { sha256 } from "@strata/durable/Digest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Stream from "effect/Stream"
import { Buffer } from "node:buffer"
import type { Blob } from "../../CacheEntry.ts"
import { CacheError, Unexpected } from "../../CacheError.ts"
import * as Check from "../checked.ts"
import * as Answer from "../http/answer.ts"
import type { Client } from "./client.ts"
import * as Xml from "./xml.ts"

/**
 * A large object in parts, one of which is in memory at a time: each is signed with its digest, and the object is there
 * when all of them are.
 *
 * Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/mpuoverview.html
 */

/** Bytes of a part. The least that servers take is 5 MiB. */
const usualPartBytes = 8 * 1024 ** 2

const mostParts = 10_000

/** Answers are a few names. */
const answerBytes = 65_536

/** How long whoever was interrupted waits for the parts to be taken away. */
const abortMs = 5000

export const upload = <E, R>(
  client: Client,
  key: string,
  blob: Blob,
  content: Stream.Stream<Uint8Array, E, R>
): Effect.Effect<void, CacheError | E, R> =>
  Effect.acquireUseRelease(
    begin(client, key),
    (uploadId) =>
      Effect.flatMap(sendParts(client, key, uploadId, blob, content), (tags) => complete(client, key, uploadId, tags)),
    (uploadId, exit) => (Exit.isSuccess(exit) ? Effect.void : abort(client, key, uploadId))
  )

// ---------------------------------------------------------------------------------------------------------------------
// steps
// ---------------------------------------------------------------------------------------------------------------------

const begin = (client: Client, key: string): Effect.Effect<string, CacheError> =>
  Effect.scoped(
    Effect.gen(function* () {
      const message = yield* tell(client, key, { uploads: "" })
      const uploadId = message.fields.get("UploadId")
      return uploadId === undefined || uploadId === ""
        ? yield* unexpected(client, "an upload without a name")
        : uploadId
    })
  )

/** The tags of the parts, in order. */
const sendParts = Effect.fnUntraced(function* <E, R>(
  client: Client,
  key: string,
  uploadId: string,
  blob: Blob,
  content: Stream.Stream<Uint8Array, E, R>
): Effect.fn.Return<ReadonlyArray<string>, CacheError | E, R> {
  const part = Buffer.allocUnsafe(Math.max(usualPartBytes, Math.ceil(blob.size / mostParts)))
  const tags: Array<string> = []
  let filled = 0
  const send = Effect.suspend(() => {
    const bytes = part.subarray(0, filled)
    const query = { partNumber: `${tags.length + 1}`, uploadId }
    const upload = { digest: sha256(bytes), size: bytes.length, content: Stream.make<[Uint8Array]>(bytes) }
    return Effect.scoped(client.request({ method: "PUT", key, query, upload })).pipe(
      Effect.flatMap((outcome) => {
        const tag = outcome._tag === "Done" ? outcome.answer.headers.etag : undefined
        return tag === undefined ? unexpected(client, "a part without a tag") : Effect.succeed(tag)
      }),
      Effect.map((tag) => {
        tags.push(tag)
        filled = 0
      })
    )
  })
  const add = (chunk: Uint8Array): Effect.Effect<void, CacheError> =>
    Effect.suspend(() => {
      const taken = Math.min(chunk.length, part.length - filled)
      part.set(chunk.subarray(0, taken), filled)
      filled += taken
      if (filled < part.length) return Effect.void
      return Effect.andThen(send, taken < chunk.length ? add(chunk.subarray(taken)) : Effect.void)
    })
  yield* Stream.runForEach(Check.checked(client.tier, blob, content), add)
  if (filled > 0) yield* send
  return tags
})

const complete = (
  client: Client,
  key: string,
  uploadId: string,
  tags: ReadonlyArray<string>
): Effect.Effect<void, CacheError> => {
  const parts = tags.map((tag, i) => `<Part><PartNumber>${i + 1}</PartNumber><ETag>${Xml.escape(tag)}</ETag></Part>`)
  const xmlns = "http://s3.amazonaws.com/doc/2006-03-01/"
  const body = `<CompleteMultipartUpload xmlns="${xmlns}">${parts.join("")}</CompleteMultipartUpload>`
  return Effect.scoped(Effect.asVoid(tell(client, key, { uploadId }, Buffer.from(body, "utf8"))))
}

/** A server takes parts away that nobody completes only where it is told to. */
const abort = (client: Client, key: string, uploadId: string): Effect.Effect<void> =>
  Effect.scoped(client.request({ method: "DELETE", key, query: { uploadId } })).pipe(
    Effect.timeoutOption(abortMs),
    Effect.ignore({ log: true })
  )

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

/** Answers may begin before it is known what becomes of them: one of a success can be an error. */
const tell = Effect.fnUntraced(function* (
  client: Client,
  key: string,
  query: Readonly<Record<string, string>>,
  body: Uint8Array = nothing
) {
  const upload = { digest: sha256(body), size: body.length, content: Stream.make(body) }
  const outcome = yield* client.request({ method: "POST", key, query, upload })
  if (outcome._tag !== "Done") return yield* unexpected(client, `${outcome._tag} to an upload in parts`)
  const message = client.parse(yield* Answer.readAll(client.tier, outcome.answer, answerBytes))
  if (message === undefined) return yield* unexpected(client, "no message to an upload in parts")
  if (message.root === "Error") return yield* client.refuse("POST", message.fields.get("Code"))
  return message
})

const nothing = new Uint8Array()

const unexpected = ({ tier }: Client, detail: string): Effect.Effect<never, CacheError> =>
  Effect.fail(new CacheError({ reason: new Unexpected({ tier, detail }) }))
