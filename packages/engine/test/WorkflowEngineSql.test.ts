import { describe } from "@effect/vitest"
import * as Postgres from "@strata/durable/testing/postgres"
import { workflowSuite } from "@strata/engine/testing"
import * as Tiers from "./workflowTiers.ts"

workflowSuite("memory", Tiers.memory)
workflowSuite("SQLite", Tiers.sqlite)

describe.skipIf(!Postgres.isAvailable())("Postgres", () => {
  workflowSuite("Postgres", Tiers.postgres)
})
