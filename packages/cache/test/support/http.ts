import type { Blob, CacheEntry } from "@strata/cache/CacheEntry"
import { Recording } from "@strata/cache/CacheEntry"
import { StepKey } from "@strata/cache/StepKey"
import { sha256 } from "@strata/durable/Digest"

/** The blob of a content. */
export const blobOf = (content: Uint8Array): Blob => ({ digest: sha256(content), size: content.length })

/** An entry that holds together, under a key made of `seed`. */
export const entryOf = (
  seed: string,
  options: { readonly result?: string; readonly artifacts?: CacheEntry["artifacts"] } = {}
): CacheEntry => {
  const result = options.result ?? JSON.stringify({ seed })
  return {
    key: StepKey.make(sha256(`key of ${seed}`)),
    result,
    digest: sha256(result),
    artifacts: options.artifacts ?? [],
    metadata: {
      recording: Recording.make(sha256(`recording of ${seed}`).slice(0, 32)),
      recordedBy: "test",
      recordedAt: 1_700_000_000_000,
      action: "extract",
      version: "1",
      durationMs: 12.5
    }
  }
}
