import * as ArtifactStore from "@strata/cache/ArtifactStore"
import * as S3Cache from "@strata/cache/S3Cache"
import * as StepCache from "@strata/cache/StepCache"
import { arbitrationSuite, artifactStoreSuite, stepCacheSuite } from "@strata/cache/testing"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { describe, it } from "vitest"
import { serve, somePrefix } from "./support/s3.ts"

const server = await serve()

describe.skipIf(server === undefined)("S3", () => {
  // A file without tests is an error.
  it("is there", () => {})
  if (server === undefined) return

  const layer = Layer.suspend(() => {
    const options = { ...server, prefix: somePrefix() }
    return Layer.merge(
      Layer.effect(StepCache.StepCache, S3Cache.stepCache(options)),
      Layer.effect(ArtifactStore.ArtifactStore, S3Cache.artifactStore(options))
    )
  })

  stepCacheSuite("S3", { layer, arbitration: "exact", evict: true, artifacts: true, live: true })
  artifactStoreSuite("S3", { layer, collects: false, live: true })
  arbitrationSuite("S3", {
    arbitration: "exact",
    // The one that is started here takes 20 milliseconds for a request.
    rounds: process.env["STRATA_TEST_S3_URL"] === undefined ? 4 : 100,
    clients: (count) =>
      Effect.suspend(() => {
        const options = { ...server, prefix: somePrefix() }
        return Effect.replicateEffect(S3Cache.stepCache(options), count)
      })
  })
})
