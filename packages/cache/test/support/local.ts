/** Local step caches for tests, in memory, on SQLite and on Postgres. */
import * as Changelog from "@strata/dirty-queue/Changelog"
import * as ChangeSignal from "@strata/dirty-queue/ChangeSignal"
import * as MemoryStore from "@strata/dirty-queue/MemoryStore"
import * as DurableWriter from "@strata/durable/DurableWriter"
import * as Postgres from "@strata/durable/testing/postgres"
import * as Journal from "@strata/journal/Journal"
import * as SqliteClient from "@strata/sqlite/SqliteClient"
import * as Layer from "effect/Layer"
import * as StepCacheStorage from "../../src/StepCacheStorage.ts"
import * as Blobs from "./blobs.ts"
import * as LiveWriter from "./liveWriter.ts"

export const memory = Layer.mergeAll(
  StepCacheStorage.layerMemory,
  Journal.layerMemory(),
  Changelog.layerMemory(),
  Blobs.layer
).pipe(
  Layer.provideMerge(Layer.mergeAll(MemoryStore.layer, ChangeSignal.layer)),
  Layer.provideMerge(DurableWriter.layerMemory())
)

const onSql = <E, R>(writer: Layer.Layer<DurableWriter.DurableWriter, E, R>) =>
  Layer.mergeAll(StepCacheStorage.layerSql, Journal.layerSql(), Changelog.layer(), Blobs.layer).pipe(
    Layer.provideMerge(Layer.mergeAll(ChangeSignal.layer, writer))
  )

export const sqlite = (filename = ":memory:") =>
  Layer.provideMerge(onSql(DurableWriter.layer()), SqliteClient.layer({ filename, synchronous: "OFF" }))

/** In a schema of its own. */
export const postgres = Layer.provideMerge(onSql(LiveWriter.layer), Postgres.layer)

/** In the schema of that name. */
export const postgresIn = (schema: string) => Layer.provideMerge(onSql(LiveWriter.layer), Postgres.layerSchema(schema))
