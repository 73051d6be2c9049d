import { Digest, sha256 } from "@strata/durable/Digest"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { Buffer } from "node:buffer"
import { Artifact, type Blob, type CacheEntry, Metadata, Signature } from "../../CacheEntry.ts"
import type { MissReason } from "../../Lookup.ts"
import { StepKey } from "../../StepKey.ts"
import { contradiction } from "../storedEntry.ts"
import * as ActionResult from "./actionResult.ts"

/**
 * How an entry travels: as an `ActionResult` whose output files are the result and the artifacts, so that a server which
 * checks such messages keeps an entry only with its blobs. What only readers of ours need is JSON in its `stdout_raw`.
 */

const resultPath = "result.json"

const artifactPrefix = "artifacts/"

const Note = Schema.Struct({
  format: Schema.Literal(1),
  key: StepKey,
  metadata: Metadata,
  signature: Schema.optional(Signature)
})

const encodeNote = Schema.encodeUnknownResult(Schema.fromJsonString(Note))

const decodeNote = Schema.decodeUnknownResult(Schema.fromJsonString(Note))

const decodeArtifact = Schema.decodeUnknownResult(Artifact)

const decodeDigest = Schema.decodeUnknownResult(Digest)

// ---------------------------------------------------------------------------------------------------------------------
// encoding
// ---------------------------------------------------------------------------------------------------------------------

/** The message of an entry that does not contradict itself. Fails when its metadata is not that of an entry. */
export const encode = (
  entry: CacheEntry,
  result: Uint8Array,
  inlineBytes: number
): Result.Result<Uint8Array, Schema.SchemaError> =>
  Result.map(encodeNote(noteOf(entry)), (note) =>
    ActionResult.encode({
      outputFiles: [
        ...entry.artifacts.map(({ digest, name, size }) => ({
          path: `${artifactPrefix}${name}`,
          hash: digest,
          size,
          contents: noBytes
        })),
        {
          path: resultPath,
          hash: entry.digest,
          size: result.length,
          contents: result.length <= inlineBytes ? result : noBytes
        }
      ],
      stdoutRaw: Buffer.from(note, "utf8"),
      worker: entry.metadata.recordedBy
    })
  )

const noteOf = ({ key, metadata, signature }: CacheEntry): typeof Note.Type => ({
  format: 1,
  key,
  metadata,
  ...(signature === undefined ? {} : { signature })
})

const noBytes = new Uint8Array()

// ---------------------------------------------------------------------------------------------------------------------
// decoding
// ---------------------------------------------------------------------------------------------------------------------

/** An entry whose result may be elsewhere. */
export interface Received {
  readonly entry: Omit<CacheEntry, "result">
  readonly resultBlob: Blob
  readonly inlined: Uint8Array | undefined
}

export const decode = (key: StepKey, bytes: Uint8Array): Result.Result<Received, MissReason> =>
  Result.gen(function* () {
    const message = yield* Result.mapError(ActionResult.decode(bytes), () => undecodable("it is no ActionResult"))
    const note = yield* Result.mapError(decodeNote(utf8(message.stdoutRaw)), () => undecodable("it has no metadata"))
    if (note.key !== key) return yield* Result.fail<MissReason>({ _tag: "WrongKey" })

    const artifacts: Array<Artifact> = []
    let result: ActionResult.OutputFile | undefined
    for (const file of message.outputFiles) {
      if (file.path === resultPath && result === undefined) result = file
      else if (file.path.startsWith(artifactPrefix)) artifacts.push(yield* artifactOf(file))
      else return yield* Result.fail(undecodable("it has an output file that is none of an entry"))
    }
    if (result === undefined) return yield* Result.fail(undecodable("it has no result"))
    const digest = yield* Result.mapError(decodeDigest(result.hash), () => undecodable("its result has no digest"))
    const { signature } = note
    return {
      entry: { key, digest, artifacts, metadata: note.metadata, ...(signature === undefined ? {} : { signature }) },
      resultBlob: { digest, size: result.size },
      inlined: result.contents.length === 0 ? undefined : result.contents
    }
  })

/** The entry with the result that was received for it. */
export const complete = (received: Received, result: Uint8Array): Result.Result<CacheEntry, MissReason> => {
  const { digest, size } = received.resultBlob
  if (result.length !== size || sha256(result) !== digest) return Result.fail({ _tag: "DigestMismatch" })
  const text = utf8(result)
  if (text === undefined) return Result.fail(undecodable("its result is not UTF-8"))
  const entry = { ...received.entry, result: text }
  const detail = contradiction(entry)
  return detail === undefined ? Result.succeed(entry) : Result.fail(undecodable(detail))
}

export const undecodable = (detail: string): MissReason => ({ _tag: "Undecodable", detail })

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const artifactOf = (file: ActionResult.OutputFile): Result.Result<Artifact, MissReason> =>
  Result.mapError(
    decodeArtifact({ name: file.path.slice(artifactPrefix.length), digest: file.hash, size: file.size }),
    () => undecodable("an artifact has no name, digest or size")
  )

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

const utf8 = (bytes: Uint8Array): string | undefined => {
  try {
    return decoder.decode(bytes)
  } catch {
    return undefined
  }
}
