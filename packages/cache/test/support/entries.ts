/** Entries for tests: the same arguments give the same entry, but for its recording. */
import * as CanonicalJson from "@strata/durable/CanonicalJson"
import { sha256 } from "@strata/durable/Digest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { ArtifactStore } from "../../src/ArtifactStore.ts"
import { type Artifact, type CacheEntry, Recording } from "../../src/CacheEntry.ts"
import { StepKey } from "../../src/StepKey.ts"

export const keyOf = (name: string): StepKey => StepKey.make(sha256(name))

let recordings = 0

export const makeEntry = (options: {
  readonly key: StepKey
  readonly value: Schema.Json
  readonly artifacts?: ReadonlyArray<Artifact>
  readonly by?: string
}): Effect.Effect<CacheEntry> =>
  Effect.gen(function* () {
    const result = yield* Effect.orDie(CanonicalJson.encode(options.value))
    recordings++
    return {
      key: options.key,
      result,
      digest: sha256(result),
      artifacts: options.artifacts ?? [],
      metadata: {
        recording: Recording.make(recordings.toString(16).padStart(32, "0")),
        recordedBy: options.by ?? "test",
        recordedAt: yield* Clock.currentTimeMillis,
        action: "test",
        version: "1",
        durationMs: 1
      }
    }
  })

/** Puts text into the artifact store in context, and names it. */
export const storeArtifact = (name: string, text: string) =>
  Effect.map(
    ArtifactStore.use((store) => store.add(Stream.make(new TextEncoder().encode(text)))),
    (blob): Artifact => ({ name, ...blob })
  )
