import { afterAll, describe } from "@effect/vitest"
import * as Postgres from "@strata/durable/testing/postgres"
import { journalSuite } from "@strata/journal/testing"
import * as Tiers from "./tiers.ts"

afterAll(await Postgres.forThisFile())

describe.skipIf(!Postgres.isAvailable())("Postgres", () => {
  journalSuite("Postgres", Tiers.postgres)
})
