import * as ArtifactStore from "@strata/cache/ArtifactStore"
import * as RedisCache from "@strata/cache/RedisCache"
import * as StepCache from "@strata/cache/StepCache"
import { arbitrationSuite, artifactStoreSuite, stepCacheSuite } from "@strata/cache/testing"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { describe, it } from "vitest"
import { serve, somePrefix } from "./support/redis.ts"

const url = await serve()

describe.skipIf(url === undefined)("Redis", () => {
  // A file without tests is an error.
  it("is there", () => {})
  if (url === undefined) return

  const layer = Layer.suspend(() => {
    const options = { url, prefix: somePrefix() }
    return Layer.merge(
      Layer.effect(StepCache.StepCache, RedisCache.stepCache(options)),
      Layer.effect(ArtifactStore.ArtifactStore, RedisCache.artifactStore(options))
    )
  })

  stepCacheSuite("Redis", { layer, arbitration: "exact", evict: true, artifacts: true, live: true })
  artifactStoreSuite("Redis", { layer, collects: false, live: true })
  arbitrationSuite("Redis", {
    arbitration: "exact",
    clients: (count) =>
      Effect.suspend(() => {
        const options = { url, prefix: somePrefix() }
        return Effect.replicateEffect(RedisCache.stepCache(options), count)
      })
  })
})
