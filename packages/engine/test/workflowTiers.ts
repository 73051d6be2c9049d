import * as ChangeSignal from "@strata/dirty-queue/ChangeSignal"
import * as DurableWriter from "@strata/durable/DurableWriter"
import * as Postgres from "@strata/durable/testing/postgres"
import * as ClockStore from "@strata/engine/ClockStore"
import * as DeferredStore from "@strata/engine/DeferredStore"
import * as RunStore from "@strata/engine/RunStore"
import type { WorkflowTier } from "@strata/engine/testing"
import * as Journal from "@strata/journal/Journal"
import * as SqliteClient from "@strata/sqlite/SqliteClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { join } from "node:path"
import { tempFolder } from "./tiers.ts"

const inMemory = Layer.mergeAll(RunStore.layerMemory, ClockStore.layerMemory).pipe(
  Layer.provideMerge(DeferredStore.layerMemory),
  Layer.provideMerge(Journal.layerMemory()),
  Layer.provideMerge(Layer.mergeAll(DurableWriter.layerMemory(), ChangeSignal.layer))
)

/** Two processes in one memory. */
export const memory: WorkflowTier<never> = {
  database: Effect.map(Layer.build(Layer.fresh(inMemory)), (context) => Layer.succeedContext(context))
}

/** On the `SqlClient` in context. */
export const onSql = Layer.mergeAll(RunStore.layerSql, ClockStore.layerSql({ clock: "effect" })).pipe(
  Layer.provideMerge(DeferredStore.layerSql),
  Layer.provideMerge(Journal.layerSql()),
  Layer.provideMerge(Layer.mergeAll(DurableWriter.layer(), ChangeSignal.layer))
)

export const onFile = (filename: string) =>
  Layer.provideMerge(onSql, SqliteClient.layer({ filename, synchronous: "OFF" }))

export const sqlite: WorkflowTier<Layer.Error<ReturnType<typeof onFile>>> = {
  database: Effect.map(tempFolder, (folder) => onFile(join(folder, "test.db")))
}

export const postgres: WorkflowTier<Layer.Error<typeof onSql> | Layer.Error<typeof Postgres.layer>> = {
  database: Effect.map(Postgres.schema, (schema) => Layer.provide(onSql, Postgres.layerSchema(schema)))
}
