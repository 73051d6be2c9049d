import { changelogSuite, dirtyQueueSuite, type Tier } from "@strata/dirty-queue/testing"
import type { MigrationError } from "effect/sql/Migrator"
import type { SqlError } from "effect/sql/SqlError"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Tiers from "./tiers.ts"

const memory: Tier<never> = { layer: Tiers.memory }

const sqliteInMemory: Tier<SqlError | MigrationError> = { layer: (options) => Tiers.sqlite(options) }

const sqliteFile: Tier<SqlError | MigrationError> = {
  layer: (options) => Layer.unwrap(Effect.map(Tiers.tempFile, (filename) => Tiers.sqlite(options, filename))),
  twoConnections: (options) =>
    Effect.flatMap(Tiers.tempFile, (filename) =>
      Effect.all([
        Layer.build(Layer.fresh(Tiers.sqlite(options, filename))),
        Layer.build(Layer.fresh(Tiers.sqlite(options, filename)))
      ])
    )
}

for (const [name, tier] of [
  ["memory", memory],
  ["sqlite", sqliteInMemory],
  ["sqlite file", sqliteFile]
] as const) {
  changelogSuite(name, tier)
  dirtyQueueSuite(name, tier)
}
