import { afterAll, describe } from "@effect/vitest"
import * as ArtifactStore from "@strata/cache/ArtifactStore"
import * as StepCache from "@strata/cache/StepCache"
import { arbitrationSuite, stepCacheSuite } from "@strata/cache/testing"
import * as D1 from "@strata/durable/testing/d1"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { tierAt } from "./support/d1.ts"

const d1 = await D1.forThisFile()
afterAll(d1.stop)

describe.skipIf(!d1.isAvailable)("D1, shared", () => {
  const layer = Layer.effect(
    StepCache.StepCache,
    Effect.gen(function* () {
      const blobs = yield* ArtifactStore.ArtifactStore
      return yield* tierAt(yield* d1.database, { blobs })
    })
  ).pipe(Layer.provideMerge(ArtifactStore.layerMemory()))

  stepCacheSuite("D1, shared", { layer, arbitration: "exact", evict: true, artifacts: true, live: true })
  // Clients start together, so that one of them makes the table. `miniflare` takes some 20 ms of work for a statement.
  arbitrationSuite("D1, shared", {
    rounds: Number(process.env["STRATA_TEST_D1_ROUNDS"] ?? 10),
    arbitration: "exact",
    clients: (count) => Effect.flatMap(d1.database, (db) => Effect.replicateEffect(tierAt(db), count))
  })
})
