import { assert, describe, it } from "@effect/vitest"
import * as ActionEvents from "@strata/engine/ActionEvents"
import * as CacheEvents from "@strata/cache/CacheEvents"
import { StepCache } from "@strata/cache/StepCache"
import type { StepKey } from "@strata/cache/StepKey"
import { Journal } from "@strata/journal/Journal"
import * as Event from "@strata/journal/Event"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as SqlClient from "effect/sql/SqlClient"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import * as Tiers from "./tiers.ts"

const worker = fileURLToPath(new URL("fixtures/worker.ts", import.meta.url))

const kills = 5

describe("a process that is killed while it runs actions", () => {
  it.live("49: leaves both, the row and its journal entry, or neither", () =>
    Effect.gen(function* () {
      const folder = yield* Tiers.tempFolder
      let before = { recorded: 0, failed: 0 }
      for (let round = 0; round < kills; round++) {
        yield* killWhileItRuns(folder, round, yield* Random.nextIntBetween(0, 40))
        const now = yield* Effect.provide(compare, Tiers.inFolder(folder))
        assert.isAbove(now.recorded, before.recorded, "the worker has done nothing")
        before = now
      }
      assert.isAbove(before.failed, 0)
    }).pipe(Random.withSeed("crash"))
  )
})

const killWhileItRuns = (folder: string, round: number, afterMs: number) =>
  Effect.gen(function* () {
    const child = spawn(
      process.execPath,
      ["--conditions=@strata/source", "--no-warnings", worker, folder, String(round)],
      {
        stdio: ["ignore", "pipe", "inherit"]
      }
    )
    yield* Effect.promise(() => Promise.race([once(child.stdout, "data"), once(child, "exit")]))
    yield* Effect.sleep(afterMs)
    child.kill("SIGKILL")
    yield* Effect.promise(() => once(child, "exit"))
  })

/** Every row has its entry, every entry its row, and every failure that was told is journaled and not cached. */
const compare = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ readonly key: string }>`SELECT key FROM strata_cache`
  const journal = yield* Journal
  const decode = Event.decoder([CacheEvents.Recorded, ActionEvents.Failed])
  const recorded = new Set<StepKey>()
  const failed = new Set<string>()
  let page = yield* journal.readAll()
  while (page.length > 0) {
    for (const entry of page) {
      const typed = yield* decode(entry)
      if (Option.isNone(typed)) continue
      if (typed.value.type === "cache-recorded") recorded.add(typed.value.payload.key)
      else failed.add(typed.value.payload.key)
    }
    page = yield* journal.readAll({ after: page.at(-1) })
  }
  assert.deepStrictEqual(rows.map(({ key }) => key).toSorted(), [...recorded].toSorted())
  assert.deepStrictEqual(
    rows.filter(({ key }) => failed.has(key)),
    []
  )
  const cache = yield* StepCache
  for (const key of recorded) assert.strictEqual((yield* cache.get(key))._tag, "Hit")
  return { recorded: recorded.size, failed: failed.size }
})
