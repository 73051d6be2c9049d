/** A machine of the tests: a cache on SQLite and the file system, which shares through a tier. */
import * as Changelog from "@strata/dirty-queue/Changelog"
import * as ChangeSignal from "@strata/dirty-queue/ChangeSignal"
import * as DurableWriter from "@strata/durable/DurableWriter"
import * as Journal from "@strata/journal/Journal"
import * as SqliteClient from "@strata/sqlite/SqliteClient"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import { join } from "node:path"
import * as Cache from "../../src/Cache.ts"

/** Keeps its state in a folder, so that it can be started again. Its pauses are short, and it says nothing of them. */
export const machine = (remote: Cache.Remote, folder: string) =>
  Cache.layerSql({
    directory: join(folder, "blobs"),
    remote,
    sharing: { guard: { openBase: "100 millis", openCap: "200 millis" } },
    publication: { pauseBase: "50 millis", pauseCap: "200 millis" }
  }).pipe(
    Layer.provideMerge(Layer.mergeAll(Changelog.layer(), Journal.layerSql())),
    Layer.provideMerge(Layer.mergeAll(DurableWriter.layer(), ChangeSignal.layer)),
    Layer.provideMerge(SqliteClient.layer({ filename: join(folder, "cache.db") })),
    Layer.provide(Logger.layer([]))
  )
