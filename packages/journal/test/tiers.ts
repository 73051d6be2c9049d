import * as DurableWriter from "@strata/durable/DurableWriter"
import * as JournalStorage from "@strata/journal/JournalStorage"
import type { Tier } from "@strata/journal/testing/harness"
import * as SqliteClient from "@strata/sqlite/SqliteClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

export const memory: Tier<never> = {
  layer: JournalStorage.layerMemory.pipe(Layer.provideMerge(DurableWriter.layerMemory()))
}

const onFile = (filename: string) =>
  Layer.mergeAll(JournalStorage.layerSql, DurableWriter.layer()).pipe(
    Layer.provide(SqliteClient.layer({ filename, synchronous: "OFF" }))
  )

/** A file name in a folder that goes with the scope. */
export const tempFile = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "strata-journal-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  ),
  (folder) => join(folder, "test.db")
)

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
