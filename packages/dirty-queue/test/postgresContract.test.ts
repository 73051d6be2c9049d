import { describe } from "@effect/vitest"
import { changelogSuite, dirtyQueueSuite, type Tier } from "@strata/dirty-queue/testing"
import * as Postgres from "@strata/durable/testing/postgres"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { MigrationError } from "effect/sql/Migrator"
import type { SqlError } from "effect/sql/SqlError"
import * as Tiers from "./tiers.ts"

const postgres: Tier<SqlError | MigrationError> = {
  layer: (options) => Tiers.postgres(options),
  twoConnections: (options) =>
    Effect.flatMap(Postgres.schema, (schema) =>
      Effect.all([
        Layer.build(Layer.fresh(Tiers.postgres(options, schema))),
        Layer.build(Layer.fresh(Tiers.postgres(options, schema)))
      ])
    )
}

describe.skipIf(!Postgres.isAvailable())("Postgres", () => {
  changelogSuite("postgres", postgres)
  dirtyQueueSuite("postgres", postgres)
})
