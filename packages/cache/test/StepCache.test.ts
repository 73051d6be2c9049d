import * as StepCache from "../src/StepCache.ts"
import { localStepCacheSuite, stepCacheSuite } from "../src/testing.ts"
import * as Layer from "effect/Layer"
import * as Local from "./support/local.ts"

const capabilities = { arbitration: "exact", evict: true, artifacts: true } as const

stepCacheSuite("memory", { ...capabilities, layer: StepCache.layer().pipe(Layer.provideMerge(Local.memory)) })
stepCacheSuite("sqlite", { ...capabilities, layer: StepCache.layer().pipe(Layer.provideMerge(Local.sqlite())) })
stepCacheSuite("sqlite, artifacts verified", {
  ...capabilities,
  layer: StepCache.layer({ artifacts: "verify" }).pipe(Layer.provideMerge(Local.sqlite()))
})
localStepCacheSuite("memory", { layer: Local.memory })
localStepCacheSuite("sqlite", { layer: Local.sqlite() })
