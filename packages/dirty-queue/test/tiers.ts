import * as Changelog from "@strata/dirty-queue/Changelog"
import * as ChangeSignal from "@strata/dirty-queue/ChangeSignal"
import * as DirtyQueue from "@strata/dirty-queue/DirtyQueue"
import * as MemoryStore from "@strata/dirty-queue/MemoryStore"
import * as DurableWriter from "@strata/durable/DurableWriter"
import * as SqliteClient from "@strata/sqlite/SqliteClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

export const memory = (options?: DirtyQueue.DirtyQueueOptions) =>
  Layer.mergeAll(DirtyQueue.layerMemory(options), Changelog.layerMemory(options)).pipe(
    Layer.provide(MemoryStore.layer),
    Layer.provideMerge(Layer.mergeAll(DurableWriter.layerMemory(), ChangeSignal.layer))
  )

export const sqlite = (
  options?: DirtyQueue.DirtyQueueOptions,
  filename = ":memory:",
  client?: Omit<SqliteClient.SqliteClientOptions, "filename">
) =>
  Layer.mergeAll(DirtyQueue.layer(options), Changelog.layer(options)).pipe(
    Layer.provideMerge(Layer.mergeAll(DurableWriter.layer(), ChangeSignal.layer)),
    Layer.provideMerge(SqliteClient.layer({ ...client, filename }))
  )

/** A file name in a folder that goes with the scope. */
export const tempFile = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "strata-dirty-queue-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  ),
  (folder) => join(folder, "test.db")
)
