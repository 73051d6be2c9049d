import { describe } from "@effect/vitest"
import * as Postgres from "@strata/durable/testing/postgres"
import { runHistorySuite } from "@strata/engine/testing"
import * as Tiers from "./workflowTiers.ts"

runHistorySuite("memory", Tiers.memory)
runHistorySuite("SQLite", Tiers.sqlite)

describe.skipIf(!Postgres.isAvailable())("Postgres", () => {
  runHistorySuite("Postgres", Tiers.postgres)
})
