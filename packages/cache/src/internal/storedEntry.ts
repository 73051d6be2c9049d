import * as CanonicalJson from "@strata/durable/CanonicalJson"
import { sha256 } from "@strata/durable/Digest"
import * as Text from "@strata/durable/Text"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { Artifact, type CacheEntry, Recording } from "../CacheEntry.ts"
import type { MissReason } from "../Lookup.ts"
import type { StepKey } from "../StepKey.ts"
import type { StoredEntry, StoredRecord } from "../StepCacheStorage.ts"

// ---------------------------------------------------------------------------------------------------------------------
// from storage
// ---------------------------------------------------------------------------------------------------------------------

/** What is stored of a key as an entry, or why it is none that can be served. */
export const verify = (key: StepKey, stored: StoredEntry): Result.Result<CacheEntry, MissReason> => {
  if (stored.key !== key) return Result.fail({ _tag: "WrongKey" })
  const digest = sha256(stored.value)
  if (digest !== stored.digest) return Result.fail({ _tag: "DigestMismatch" })
  if (!isRecording(stored.recording)) return undecodable("the recording has no name")
  const artifacts = stored.artifacts === "[]" ? Result.succeed([]) : decodeArtifacts(stored.artifacts)
  if (Result.isFailure(artifacts)) return undecodable("its artifacts are not named as they should be")
  return Result.succeed({
    key,
    result: stored.value,
    digest,
    artifacts: artifacts.success,
    metadata: {
      recording: stored.recording,
      recordedBy: stored.recordedBy,
      recordedAt: stored.recordedAt,
      action: stored.action,
      version: stored.version,
      durationMs: stored.durationMs
    }
  })
}

/** Events name recordings; what is none, since it was damaged, goes by its digest. */
export const toRecording = (text: string): Recording =>
  isRecording(text) ? text : Recording.make(sha256(text).slice(0, 32))

const undecodable = (detail: string): Result.Result<never, MissReason> => Result.fail({ _tag: "Undecodable", detail })

const isRecording = Schema.is(Recording)

const decodeArtifacts = Schema.decodeUnknownResult(Schema.fromJsonString(Schema.Array(Artifact)))

// ---------------------------------------------------------------------------------------------------------------------
// to storage
// ---------------------------------------------------------------------------------------------------------------------

export const toStored = (
  { artifacts, digest, key, metadata, result }: CacheEntry,
  from: string | undefined
): StoredRecord & { readonly value: string } => ({
  key,
  value: result,
  digest,
  artifacts: JSON.stringify(artifacts.map(({ digest, name, size }) => ({ digest, name, size }))),
  recording: metadata.recording,
  recordedBy: metadata.recordedBy,
  recordedAt: metadata.recordedAt,
  action: metadata.action,
  version: metadata.version,
  durationMs: metadata.durationMs,
  from: from ?? null
})

/** What makes an entry contradict itself, if anything does. */
export const contradiction = ({ artifacts, digest, metadata, result }: CacheEntry): string | undefined => {
  if (!isCanonical(result)) return "the result is not canonical JSON"
  if (sha256(result) !== digest) return "the digest is not that of the result"
  if (artifacts.some(({ name }, i) => i > 0 && Text.compareBytes(artifacts[i - 1]!.name, name) >= 0)) {
    return "the artifacts are not in the order of their names, or share one"
  }
  const texts = [metadata.recordedBy, metadata.action, metadata.version, ...artifacts.map(({ name }) => name)]
  return texts.every((text) => text !== "" && Text.isStorable(text))
    ? undefined
    : "a text is empty, or is not well-formed Unicode without NUL"
}

const isCanonical = (text: string): boolean => {
  const parsed = parse(text)
  if (Result.isFailure(parsed)) return false
  const canonical = CanonicalJson.encodeResult(parsed.success)
  return Result.isSuccess(canonical) && canonical.success === text
}

const parse = Schema.decodeUnknownResult(Schema.fromJsonString(Schema.Json))
