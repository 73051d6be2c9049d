import { describe } from "@effect/vitest"
import * as Postgres from "@strata/durable/testing/postgres"
import { clockStoreSuite } from "@strata/engine/testing"
import * as Tiers from "./stateTiers.ts"

clockStoreSuite("memory", Tiers.memory)
clockStoreSuite("SQLite", Tiers.sqlite)

describe.skipIf(!Postgres.isAvailable())("Postgres", () => {
  clockStoreSuite("Postgres", Tiers.postgres)
})
