import { afterAll, describe } from "@effect/vitest"
import { changelogSuite, dirtyQueueSuite, type UnjoinedTier } from "@strata/dirty-queue/testing"
import * as D1 from "@strata/durable/testing/d1"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { MigrationError } from "effect/sql/Migrator"
import type { SqlError } from "effect/sql/SqlError"
import * as Tiers from "./tiers.ts"

const d1 = await D1.forThisFile()
afterAll(d1.stop)

const tier: UnjoinedTier<SqlError | MigrationError | D1.D1Error> = {
  unjoined: (options) => Tiers.d1(d1.layer, options),
  twoConnections: (options) =>
    Effect.flatMap(d1.database, (db) =>
      Effect.all([
        Layer.build(Layer.fresh(Tiers.d1(D1.layerOf(db), options))),
        Layer.build(Layer.fresh(Tiers.d1(D1.layerOf(db), options)))
      ])
    )
}

describe.skipIf(!d1.isAvailable)("D1", () => {
  changelogSuite("d1", tier)
  dirtyQueueSuite("d1", tier)
})
