import { assert, describe, it } from "@effect/vitest"
import { sha256 } from "@strata/durable/Digest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { Buffer } from "node:buffer"
import * as Fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as ArtifactStore from "../src/ArtifactStore.ts"
import type { Blob } from "../src/CacheEntry.ts"
import type { CacheError } from "../src/CacheError.ts"
import { artifactStoreSuite } from "../src/testing.ts"

const temporary = Effect.acquireRelease(
  Effect.sync(() => Fs.mkdtempSync(join(tmpdir(), "strata-artifacts-"))),
  (directory) => Effect.sync(() => Fs.rmSync(directory, { recursive: true, force: true }))
)

artifactStoreSuite("memory", { layer: ArtifactStore.layerMemory(), collects: true })
artifactStoreSuite("file system", {
  layer: Layer.unwrap(Effect.map(temporary, (directory) => ArtifactStore.layerFileSystem({ directory }))),
  collects: true
})

const bytes = (content: string): Uint8Array => new TextEncoder().encode(content)

const fileOf = (directory: string, { digest }: Blob): string => join(directory, "blobs", digest.slice(0, 2), digest)

const incoming = (directory: string): ReadonlyArray<string> => Fs.readdirSync(join(directory, "incoming"))

const reasonOf = <A, R>(effect: Effect.Effect<A, CacheError, R>) =>
  Effect.match(effect, { onFailure: (error) => error.reason._tag, onSuccess: () => "none" })

describe("ArtifactStore on files", () => {
  it.effect("never ends with content of another digest, and takes it away", () =>
    Effect.gen(function* () {
      const directory = yield* temporary
      const store = yield* ArtifactStore.makeFileSystem({ directory })
      const blob = yield* store.add(Stream.make(bytes("the content")))
      const file = fileOf(directory, blob)
      const flipped = Fs.readFileSync(file)
      flipped[3]! ^= 1
      Fs.writeFileSync(file, flipped)
      const seen: Array<Uint8Array> = []
      const read = Stream.runForEach(store.get(blob), (chunk) => Effect.sync(() => seen.push(chunk)))
      assert.strictEqual(yield* reasonOf(read), "ArtifactCorrupt")
      assert.deepStrictEqual(seen, [])
      assert.deepStrictEqual(yield* store.missing([blob]), [blob])
      yield* store.put(blob, Stream.make(bytes("the content")))
      assert.strictEqual(Fs.readFileSync(file, "utf8"), "the content")
    })
  )

  it.effect("replaces a file that was cut off", () =>
    Effect.gen(function* () {
      const directory = yield* temporary
      const store = yield* ArtifactStore.makeFileSystem({ directory })
      const blob = yield* store.add(Stream.make(bytes("the content")))
      Fs.truncateSync(fileOf(directory, blob), 4)
      assert.deepStrictEqual(yield* store.missing([blob]), [blob])
      yield* store.add(Stream.make(bytes("the content")))
      assert.deepStrictEqual(yield* store.missing([blob]), [])
    })
  )

  it.effect("leaves nothing behind of what failed", () =>
    Effect.gen(function* () {
      const directory = yield* temporary
      const store = yield* ArtifactStore.makeFileSystem({ directory, maxBytes: 10 })
      const large = Stream.make(bytes("12345678"), bytes("12345678"))
      assert.strictEqual(yield* reasonOf(store.add(large)), "TooLarge")
      const announced = { digest: sha256("1234567812345678"), size: 16 }
      assert.strictEqual(yield* reasonOf(store.put(announced, Stream.die("asked for"))), "TooLarge")
      yield* Effect.exit(store.add(Stream.concat(Stream.make(bytes("1")), Stream.die("a bug"))))
      assert.deepStrictEqual(incoming(directory), [])
      assert.deepStrictEqual(yield* Stream.runCollect(store.list), [])
    })
  )

  it.effect("says so when the disk fails", () =>
    Effect.gen(function* () {
      const directory = yield* temporary
      const store = yield* ArtifactStore.makeFileSystem({ directory })
      Fs.rmSync(join(directory, "incoming"), { recursive: true })
      assert.strictEqual(yield* reasonOf(store.add(Stream.make(bytes("a")))), "StorageFailed")
      const file = join(directory, "file")
      Fs.writeFileSync(file, "")
      assert.strictEqual(yield* reasonOf(ArtifactStore.makeFileSystem({ directory: file })), "StorageFailed")
    })
  )

  it.effect("takes away what a killed process left, once it is old", () =>
    Effect.gen(function* () {
      const directory = yield* temporary
      yield* ArtifactStore.makeFileSystem({ directory })
      const left = join(directory, "incoming", "blob-left")
      Fs.mkdirSync(left)
      Fs.writeFileSync(join(left, "content"), "half")
      Fs.utimesSync(left, 0, 0)
      yield* TestClock.adjust("12 hours")
      yield* ArtifactStore.makeFileSystem({ directory })
      assert.deepStrictEqual(incoming(directory), ["blob-left"])
      yield* TestClock.adjust("13 hours")
      yield* ArtifactStore.makeFileSystem({ directory })
      assert.deepStrictEqual(incoming(directory), [])
    })
  )

  it.effect("is not confused by other files", () =>
    Effect.gen(function* () {
      const directory = yield* temporary
      const store = yield* ArtifactStore.makeFileSystem({ directory })
      const blob = yield* store.add(Stream.make(bytes("a")))
      Fs.writeFileSync(join(directory, "blobs", "README"), "")
      Fs.writeFileSync(join(directory, "blobs", blob.digest.slice(0, 2), ".DS_Store"), "")
      assert.deepStrictEqual(
        (yield* Stream.runCollect(store.list)).map(({ digest }) => digest),
        [blob.digest]
      )
    })
  )

  it.live("streams a large blob in little memory", () =>
    Effect.gen(function* () {
      const directory = yield* temporary
      const store = yield* ArtifactStore.makeFileSystem({ directory })
      const chunk = Buffer.alloc(1024 * 1024, 7)
      const before = process.memoryUsage().arrayBuffers
      let peak = 0
      const watch = Effect.sync(() => (peak = Math.max(peak, process.memoryUsage().arrayBuffers - before)))
      const blob = yield* store.add(Stream.tap(Stream.range(1, 200).pipe(Stream.map(() => chunk)), () => watch))
      assert.strictEqual(blob.size, 200 * chunk.length)
      yield* Stream.runForEach(store.get(blob), () => watch)
      assert.isBelow(peak, 100 * chunk.length)
    })
  )
})
