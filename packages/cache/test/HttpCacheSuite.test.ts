import * as ArtifactStore from "@strata/cache/ArtifactStore"
import * as HttpCache from "@strata/cache/HttpCache"
import * as StepCache from "@strata/cache/StepCache"
import { arbitrationSuite, artifactStoreSuite, stepCacheSuite } from "@strata/cache/testing"
import * as CacheServer from "@strata/cache/testing/cacheServer"
import * as Nginx from "@strata/cache/testing/nginx"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"

/** Clients of one empty server. */
const clientsOf =
  <E>(server: Effect.Effect<{ readonly url: string }, E, Scope.Scope>) =>
  (count: number) =>
    Effect.flatMap(server, ({ url }) => Effect.replicateEffect(HttpCache.stepCache({ url }), count))

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
  "HTTP, a strict server": CacheServer.make(),
  "HTTP, puts done by 201": CacheServer.make(CacheServer.honest, 201),
  "HTTP, puts done by 204": CacheServer.make(CacheServer.honest, 204),
  ...((await Effect.runPromise(Nginx.isInstalled)) ? { "HTTP, nginx": Nginx.make() } : {})
}

for (const [name, server] of Object.entries(servers)) {
  const layer = over(server)
  stepCacheSuite(name, { layer, arbitration: "last-writer-wins", evict: false, artifacts: false, live: true })
  artifactStoreSuite(name, { layer, collects: false, live: true })
  arbitrationSuite(name, { clients: clientsOf(server), arbitration: "last-writer-wins" })
}
