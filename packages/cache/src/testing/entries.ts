/**
 * Entries and artifacts that the suites of the cache work with.
 *
 * @since 0.1.0
 */
import * as CanonicalJson from "@strata/durable/CanonicalJson"
import { sha256 } from "@strata/durable/Digest"
import * as Text from "@strata/durable/Text"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { ArtifactStore } from "../ArtifactStore.ts"
import { type Artifact, type CacheEntry, Recording } from "../CacheEntry.ts"
import { StepKey } from "../StepKey.ts"

/**
 * The key that goes by a name.
 *
 * @since 0.1.0
 * @category fixtures
 */
export const keyOf = (name: string): StepKey => StepKey.make(sha256(name))

/**
 * The recording that goes by a name.
 *
 * @since 0.1.0
 * @category fixtures
 */
export const recordingOf = (name: string): Recording => Recording.make(sha256(name).slice(0, 32))

/**
 * An entry, recorded now. `by` names the recording, and who made it.
 *
 * @since 0.1.0
 * @category fixtures
 */
export const entryOf = (
  key: StepKey,
  value: Schema.Json,
  options?: { readonly by?: string | undefined; readonly artifacts?: ReadonlyArray<Artifact> | undefined }
): Effect.Effect<CacheEntry> =>
  Effect.map(Clock.currentTimeMillis, (now) => {
    const result = Result.getOrThrow(CanonicalJson.encodeResult(value))
    const by = options?.by ?? "first"
    return {
      key,
      result,
      digest: sha256(result),
      artifacts: Text.sortedBy(options?.artifacts ?? [], ({ name }) => name),
      metadata: {
        recording: recordingOf(by),
        recordedBy: by,
        recordedAt: now,
        action: "measure",
        version: "1",
        durationMs: 12.5
      }
    }
  })

/**
 * Stores text as an artifact.
 *
 * @since 0.1.0
 * @category fixtures
 */
export const artifactOf = (name: string, text: string) =>
  Effect.map(
    ArtifactStore.use((store) => store.add(Stream.make(new TextEncoder().encode(text)))),
    (blob): Artifact => ({ name, ...blob })
  )
