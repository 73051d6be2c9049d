import { describe } from "@effect/vitest"
import * as Cache from "@strata/cache/Cache"
import * as Changelog from "@strata/dirty-queue/Changelog"
import * as ChangeSignal from "@strata/dirty-queue/ChangeSignal"
import * as DirtyQueue from "@strata/dirty-queue/DirtyQueue"
import * as Postgres from "@strata/durable/testing/postgres"
import * as Journal from "@strata/journal/Journal"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { combinedSuite } from "./support/combinedSuite.ts"
import * as LiveWriter from "./support/liveWriter.ts"
import { publicationSuite } from "./support/publicationSuite.ts"

const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "strata-cache-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

const clock = "effect"

const postgres = (remote: Cache.Remote | undefined) =>
  Layer.unwrap(
    Effect.map(temporaryFolder, (directory) =>
      Cache.layerSql({ directory, remote, clock }).pipe(
        Layer.provideMerge(Layer.mergeAll(Changelog.layer({ clock }), DirtyQueue.layer({ clock }), Journal.layerSql())),
        Layer.provideMerge(Layer.mergeAll(LiveWriter.layer, ChangeSignal.layer)),
        Layer.provideMerge(Postgres.layer)
      )
    )
  )

describe.skipIf(!Postgres.isAvailable())("Postgres", () => {
  publicationSuite("Postgres", { layer: postgres, hours: 1 })
  combinedSuite("Postgres", postgres)
})
