import * as DurableWriter from "@strata/durable/DurableWriter"
import * as Postgres from "@strata/durable/testing/postgres"
import * as ClockStorage from "@strata/engine/ClockStorage"
import * as DeferredStorage from "@strata/engine/DeferredStorage"
import * as RunStore from "@strata/engine/RunStore"
import type { Tier } from "@strata/engine/testing"
import * as JournalStorage from "@strata/journal/JournalStorage"
import * as SqliteClient from "@strata/sqlite/SqliteClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { join } from "node:path"
import { tempFolder } from "./tiers.ts"

export const memory: Tier<never> = {
  layer: Layer.mergeAll(
    ClockStorage.layerMemory,
    DeferredStorage.layerMemory,
    RunStore.layerMemory,
    JournalStorage.layerMemory
  ).pipe(Layer.provideMerge(DurableWriter.layerMemory()))
}

/** On the `SqlClient` in context. */
export const onSql = Layer.mergeAll(
  ClockStorage.layerSql({ clock: "effect" }),
  DeferredStorage.layerSql,
  RunStore.layerSql,
  JournalStorage.layerSql,
  DurableWriter.layer()
)

export const onFile = (filename: string) =>
  Layer.provideMerge(onSql, SqliteClient.layer({ filename, synchronous: "OFF" }))

/** A file name in a folder that goes with the scope. */
export const tempFile = Effect.map(tempFolder, (folder) => join(folder, "test.db"))

export const sqlite: Tier<Layer.Error<ReturnType<typeof onFile>>> = {
  layer: onFile(":memory:"),
  twoConnections: () =>
    Effect.flatMap(tempFile, (filename) =>
      Effect.map(
        Effect.all([Layer.build(onFile(filename)), Layer.build(Layer.fresh(onFile(filename)))]),
        ([one, two]) => [one, two] as const
      )
    )
}

export const postgres: Tier<Layer.Error<typeof onSql> | Layer.Error<typeof Postgres.layer>> = {
  layer: Layer.provide(onSql, Postgres.layer),
  twoConnections: () =>
    Effect.flatMap(Postgres.schema, (schema) => {
      const connect = Layer.build(Layer.fresh(Layer.provide(onSql, Postgres.layerSchema(schema))))
      return Effect.map(Effect.all([connect, connect]), ([one, two]) => [one, two] as const)
    })
}
