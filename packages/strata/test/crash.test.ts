import { assert, describe, it } from "@effect/vitest"
import {
  Changelog,
  ContentReader,
  DirtyQueue,
  DurableWriter,
  Follower,
  FollowerScheduler,
  Path,
  Strata
} from "@strata/strata"
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const worker = fileURLToPath(new URL("fixtures/stuckWorker.ts", import.meta.url))

const scope = Path.Scope.make("main")

describe("a worker that is killed", () => {
  it.live("Q4: its batch is finished by another within one lease", () =>
    Effect.gen(function* () {
      const folder = yield* Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(join(tmpdir(), "strata-crash-"))),
        (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
      )
      const filename = join(folder, "test.db")
      yield* Effect.gen(function* () {
        const queue = yield* DirtyQueue.DirtyQueue
        const changelog = yield* Changelog.Changelog
        yield* queue.register({ follower: Path.FollowerName.make("test@1"), scope })
        yield* DurableWriter.write(
          changelog.record(
            Array.from({ length: 10 }, (_, i) => Changelog.put({ scope, path: Path.Path.make(`p${i}`) }))
          )
        )

        const child = spawn(process.execPath, ["--conditions=@strata/source", "--no-warnings", worker, filename], {
          stdio: ["ignore", "pipe", "inherit"]
        })
        yield* Effect.promise(() => once(child.stdout, "data"))
        child.kill("SIGKILL")
        yield* Effect.promise(() => once(child, "exit"))
        const killed = performance.now()
        assert.strictEqual((yield* queue.stats()).total.claimed, 10)

        const seen: Array<string> = []
        const follower = yield* Follower.make({
          name: "test",
          version: "1",
          queue,
          reader: ContentReader.fromLookup(({ path }) => Effect.succeedSome(`content of ${path}`)),
          writer: {
            mode: "idempotent",
            write: ({ upserts }) => Effect.sync(() => void seen.push(...upserts.map((upsert) => upsert.path)))
          }
        })
        yield* FollowerScheduler.FollowerScheduler.use((scheduler) => scheduler.run(follower))
        while (seen.length < 10 && performance.now() - killed < 10_000) yield* Effect.sleep("10 millis")
        // The lease of 2 seconds, and what the wake-up and the work take.
        assert.isBelow(performance.now() - killed, 3_500)
        assert.strictEqual(new Set(seen).size, 10)
        assert.deepStrictEqual(yield* queue.pending(), [])
      }).pipe(Effect.provide(Strata.layerSqlite({ filename })))
    })
  )
})
