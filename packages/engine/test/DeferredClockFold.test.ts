import { describe } from "@effect/vitest"
import * as Postgres from "@strata/durable/testing/postgres"
import { deferredClockFoldSuite } from "@strata/engine/testing"
import * as Tiers from "./stateTiers.ts"

deferredClockFoldSuite("memory", Tiers.memory, { seeds: Array.from({ length: 40 }, (_, seed) => seed + 1) })
deferredClockFoldSuite("SQLite", Tiers.sqlite)

describe.skipIf(!Postgres.isAvailable())("Postgres", () => {
  deferredClockFoldSuite("Postgres", Tiers.postgres, { seeds: [1, 2] })
})
