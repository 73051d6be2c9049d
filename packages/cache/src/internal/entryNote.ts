import { sha256 } from "@strata/durable/Digest"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { Artifact, type CacheEntry, Metadata, Signature } from "../CacheEntry.ts"
import type { MissReason } from "../Lookup.ts"
import type { StepKey } from "../StepKey.ts"
import { contradiction } from "./storedEntry.ts"

/** What is stored of an entry beside its key, its result and what statements look at. */
const Note = Schema.fromJsonString(
  Schema.Struct({
    artifacts: Schema.Array(Artifact),
    metadata: Metadata,
    signature: Schema.optional(Signature)
  })
)

/** Fails when the metadata of the entry is none. */
export const encode = ({ artifacts, metadata, signature }: CacheEntry): Result.Result<string, Schema.SchemaError> =>
  encodeNote({ artifacts, metadata, ...(signature === undefined ? {} : { signature }) })

const encodeNote = Schema.encodeResult(Note)

const decodeNote = Schema.decodeResult(Note)

/** A row of an entry; null stands for what is larger than this client takes. */
export interface Row {
  readonly id: number
  readonly recording: string
  readonly digest: string
  readonly result: string | null
  readonly note: string | null
}

/** The entry that is stored, or why it is none that can be served. */
export const decode = (key: StepKey, row: Row, limit: number): Result.Result<CacheEntry, MissReason> =>
  Result.gen(function* () {
    const { note, result } = row
    if (note === null || result === null) return yield* undecodable(`it is larger than ${limit} bytes`)
    const { artifacts, metadata, signature } = yield* Result.mapError(decodeNote(note), (): MissReason => ({
      _tag: "Undecodable",
      detail: "it has no metadata"
    }))
    if (metadata.recording !== row.recording) return yield* undecodable("it has two recordings")
    const digest = sha256(result)
    if (digest !== row.digest) return yield* Result.fail<MissReason>({ _tag: "DigestMismatch" })
    const entry: CacheEntry = {
      key,
      result,
      digest,
      artifacts,
      metadata,
      ...(signature === undefined ? {} : { signature })
    }
    const detail = contradiction(entry)
    return detail === undefined ? entry : yield* undecodable(detail)
  })

const undecodable = (detail: string): Result.Result<never, MissReason> => Result.fail({ _tag: "Undecodable", detail })
