import { describe } from "@effect/vitest"
import * as Postgres from "@strata/durable/testing/postgres"
import { deferredStoreSuite } from "@strata/engine/testing"
import * as Tiers from "./stateTiers.ts"

deferredStoreSuite("memory", Tiers.memory)
deferredStoreSuite("SQLite", Tiers.sqlite)

describe.skipIf(!Postgres.isAvailable())("Postgres", () => {
  deferredStoreSuite("Postgres", Tiers.postgres)
})
