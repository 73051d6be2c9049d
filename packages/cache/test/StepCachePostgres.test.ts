import { describe } from "@effect/vitest"
import * as StepCache from "@strata/cache/StepCache"
import { cacheTableSuite, collectorSuite, localStepCacheSuite, stepCacheSuite } from "@strata/cache/testing"
import * as Postgres from "@strata/durable/testing/postgres"
import * as Layer from "effect/Layer"
import * as Local from "./support/local.ts"

describe.skipIf(!Postgres.isAvailable())("Postgres", () => {
  stepCacheSuite("Postgres", {
    layer: StepCache.layer().pipe(Layer.provideMerge(Local.postgres)),
    arbitration: "exact",
    evict: true,
    artifacts: true,
    live: true
  })
  localStepCacheSuite("Postgres", { layer: Local.postgres })
  cacheTableSuite("Postgres", { layer: Local.postgres, runs: 30 })
  collectorSuite("Postgres", { layer: Local.postgres })
})
