import { describe } from "@effect/vitest"
import * as ArtifactStore from "@strata/cache/ArtifactStore"
import * as PostgresCache from "@strata/cache/PostgresCache"
import * as StepCache from "@strata/cache/StepCache"
import { arbitrationSuite, artifactStoreSuite, stepCacheSuite } from "@strata/cache/testing"
import * as Postgres from "@strata/durable/testing/postgres"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Support from "./support/postgres.ts"

describe.skipIf(!Postgres.isAvailable())("Postgres, shared", () => {
  const layer = Layer.effectContext(
    Effect.flatMap(Support.tierOf(), ({ blobs, entries }) =>
      Layer.build(
        Layer.merge(Layer.succeed(StepCache.StepCache, entries), Layer.succeed(ArtifactStore.ArtifactStore, blobs))
      )
    )
  )

  stepCacheSuite("Postgres, shared", { layer, arbitration: "exact", evict: true, artifacts: true, live: true })
  artifactStoreSuite("Postgres, shared", { layer, collects: false, live: true })
  // Clients start together, so that one of them makes the tables.
  arbitrationSuite("Postgres, shared", {
    arbitration: "exact",
    clients: (count) =>
      Effect.flatMap(Support.options, (options) =>
        Effect.replicateEffect(PostgresCache.stepCache({ ...options, maxConnections: 1 }), count)
      )
  })
})
