import * as ArtifactStore from "@strata/cache/ArtifactStore"
import * as HttpCache from "@strata/cache/HttpCache"
import * as StepCache from "@strata/cache/StepCache"
import { artifactStoreSuite, stepCacheSuite } from "@strata/cache/testing"
import * as CacheServer from "@strata/cache/testing/cacheServer"
import * as Nginx from "@strata/cache/testing/nginx"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"

/** Both services over an empty server of their own. */
const over = <E>(server: Effect.Effect<{ readonly url: string }, E, Scope.Scope>) =>
  Layer.unwrap(
    Effect.map(server, ({ url }) =>
      Layer.merge(
        Layer.effect(StepCache.StepCache, HttpCache.stepCache({ url })),
        Layer.effect(ArtifactStore.ArtifactStore, HttpCache.artifactStore({ url }))
      )
    )
  )

const servers = {
  "HTTP, a strict server": over(CacheServer.make()),
  ...((await Effect.runPromise(Nginx.isInstalled)) ? { "HTTP, nginx": over(Nginx.make()) } : {})
}

for (const [name, layer] of Object.entries(servers)) {
  stepCacheSuite(name, { layer, arbitration: "last-writer-wins", evict: false, artifacts: false, live: true })
  artifactStoreSuite(name, { layer, collects: false, live: true })
}
