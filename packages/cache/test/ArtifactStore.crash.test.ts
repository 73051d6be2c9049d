import { assert, describe, it } from "@effect/vitest"
import { sha256 } from "@strata/durable/Digest"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as Stream from "effect/Stream"
import { spawn } from "node:child_process"
import { once } from "node:events"
import * as Fs from "node:fs"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import { fileURLToPath } from "node:url"
import * as ArtifactStore from "../src/ArtifactStore.ts"

const worker = fileURLToPath(new URL("fixtures/putBlobs.ts", import.meta.url))

const kills = 16

describe("processes that are killed while they put blobs", () => {
  it.live("leave whole blobs only, and nothing that is not taken away later", () =>
    Effect.gen(function* () {
      const directory = yield* Effect.acquireRelease(
        Effect.sync(() => Fs.mkdtempSync(join(tmpdir(), "strata-artifacts-"))),
        (directory) => Effect.sync(() => Fs.rmSync(directory, { recursive: true, force: true }))
      )
      let left = 0
      for (let round = 0; round < kills; round += 2) {
        // Two at a time, which put the same blobs.
        const pair = [killWhileItPuts(directory, `${round}`), killWhileItPuts(directory, `${round + 1}`)]
        yield* Effect.all(pair, { concurrency: "unbounded" })
        for (const path of filesIn(join(directory, "blobs"))) {
          assert.strictEqual(sha256(Fs.readFileSync(path)), basename(path))
        }
        left += Fs.readdirSync(join(directory, "incoming")).length
      }
      assert.isAbove(left, 0, "nothing was killed on its way")
      const store = yield* ArtifactStore.makeFileSystem({ directory, abandonedAfter: 0 })
      assert.deepStrictEqual(Fs.readdirSync(join(directory, "incoming")), [])
      const blobs = yield* Stream.runCollect(store.list)
      assert.isAbove(blobs.length, 10)
      yield* Effect.forEach(blobs, (blob) => Stream.runDrain(store.get(blob)))
    }).pipe(Random.withSeed("crash"))
  )
})

const killWhileItPuts = Effect.fnUntraced(function* (directory: string, seed: string) {
  const child = spawn(process.execPath, ["--conditions=@strata/source", "--no-warnings", worker, directory, seed], {
    stdio: ["ignore", "pipe", "inherit"]
  })
  yield* Effect.promise(() => Promise.race([once(child.stdout, "data"), once(child, "exit")]))
  yield* Effect.sleep(yield* Random.nextIntBetween(0, 60))
  child.kill("SIGKILL")
  yield* Effect.promise(() => once(child, "exit"))
})

const filesIn = (folder: string): ReadonlyArray<string> =>
  Fs.readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
