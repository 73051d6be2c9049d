import { describe } from "@effect/vitest"
import * as Postgres from "@strata/durable/testing/postgres"
import { retentionSuite } from "@strata/engine/testing"
import * as Tiers from "./stateTiers.ts"

retentionSuite("memory", Tiers.memory)
retentionSuite("SQLite", Tiers.sqlite)

describe.skipIf(!Postgres.isAvailable())("Postgres", () => {
  retentionSuite("Postgres", Tiers.postgres)
})
