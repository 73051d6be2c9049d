import * as Cache from "@strata/cache/Cache"
import * as Changelog from "@strata/dirty-queue/Changelog"
import * as ChangeSignal from "@strata/dirty-queue/ChangeSignal"
import * as DirtyQueue from "@strata/dirty-queue/DirtyQueue"
import * as MemoryStore from "@strata/dirty-queue/MemoryStore"
import * as DurableWriter from "@strata/durable/DurableWriter"
import * as Journal from "@strata/journal/Journal"
import * as SqliteClient from "@strata/sqlite/SqliteClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

/** A folder that goes with the scope. */
export const tempFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "strata-engine-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

export const memory = Cache.layerMemory().pipe(
  Layer.provideMerge(Layer.mergeAll(Journal.layerMemory(), Changelog.layerMemory(), DirtyQueue.layerMemory())),
  Layer.provide(MemoryStore.layer),
  Layer.provideMerge(Layer.mergeAll(DurableWriter.layerMemory(), ChangeSignal.layer))
)

/** On the database `test.db` in a folder. */
export const inFolder = (folder: string) =>
  Cache.layerSql({ directory: join(folder, "artifacts") }).pipe(
    Layer.provideMerge(Layer.mergeAll(Journal.layerSql(), Changelog.layer())),
    Layer.provideMerge(Layer.mergeAll(DurableWriter.layer(), ChangeSignal.layer)),
    Layer.provideMerge(SqliteClient.layer({ filename: join(folder, "test.db") }))
  )

export const sqlite = Layer.unwrap(Effect.map(tempFolder, inFolder))
