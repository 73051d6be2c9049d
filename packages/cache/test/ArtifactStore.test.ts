import { assert, describe, it } from "@effect/vitest"
import { sha256 } from "@strata/durable/Digest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { Buffer } from "node:buffer"
import { spawnSync } from "node:child_process"
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

/** Only a privileged user of a machine that lets it can have a small disk. */
const canMount = ((): boolean => {
  const directory = Fs.mkdtempSync(join(tmpdir(), "strata-mount-"))
  const can = spawnSync("mount", ["-t", "tmpfs", "-o", "size=64k", "tmpfs", directory]).status === 0
  if (can) spawnSync("umount", [directory])
  Fs.rmSync(directory, { recursive: true, force: true })
  return can
})()

/** A folder with 1 MiB of room. */
const smallDisk = Effect.tap(temporary, (directory) =>
  Effect.acquireRelease(
    Effect.sync(() => spawnSync("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", directory])),
    () => Effect.sync(() => spawnSync("umount", [directory]))
  )
)

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

  it.effect("replaces corrupt content of the right size with what is added", () =>
    Effect.gen(function* () {
      const directory = yield* temporary
      const store = yield* ArtifactStore.makeFileSystem({ directory })
      const blob = yield* store.add(Stream.make(bytes("the content")))
      Fs.writeFileSync(fileOf(directory, blob), "THE CONTENT")
      yield* store.add(Stream.make(bytes("the content")))
      assert.strictEqual(Fs.readFileSync(fileOf(directory, blob), "utf8"), "the content")
    })
  )

  it.effect("keeps content that is right when a wrong size is asked for", () =>
    Effect.gen(function* () {
      const directory = yield* temporary
      const store = yield* ArtifactStore.makeFileSystem({ directory })
      const blob = yield* store.add(Stream.make(bytes("the content")))
      for (const size of [0, 5, 20]) {
        assert.strictEqual(yield* reasonOf(Stream.runDrain(store.get({ ...blob, size }))), "ArtifactCorrupt")
      }
      assert.deepStrictEqual(yield* store.missing([blob]), [])
    })
  )

  it.effect("makes no path of what is no digest", () =>
    Effect.gen(function* () {
      const directory = yield* temporary
      const store = yield* ArtifactStore.makeFileSystem({ directory: join(directory, "store") })
      const outside = join(directory, "outside")
      Fs.writeFileSync(outside, "x")
      // As a caller would have it that has not looked at what it was sent.
      const blob = JSON.parse('{ "digest": "../../../outside", "size": 1 }')
      const calls = [
        store.remove(blob.digest),
        store.put(blob, Stream.make(bytes("y"))),
        store.missing([blob]),
        Stream.runDrain(store.get(blob))
      ]
      for (const call of calls) assert.isTrue(Exit.hasDies(yield* Effect.exit(call)))
      assert.strictEqual(Fs.readFileSync(outside, "utf8"), "x")
    })
  )

  it.live.runIf(canMount)("says so when the disk is full, keeps nothing of it, and works when there is room", () =>
    Effect.gen(function* () {
      const directory = yield* smallDisk
      const store = yield* ArtifactStore.makeFileSystem({ directory })
      const first = yield* store.add(Stream.make(new Uint8Array(600_000)))
      const large = Stream.map(Stream.range(1, 20), (i) => new Uint8Array(50_000).fill(i))
      assert.strictEqual(yield* reasonOf(store.add(large)), "StorageFailed")
      assert.deepStrictEqual(incoming(directory), [])
      assert.deepStrictEqual(
        (yield* Stream.runCollect(store.list)).map(({ digest }) => digest),
        [first.digest]
      )
      yield* store.remove(first.digest)
      yield* Stream.runDrain(store.get(yield* store.add(Stream.take(large, 10))))
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
      const left = join(directory, "incoming", "left")
      Fs.writeFileSync(left, "half")
      Fs.utimesSync(left, 0, 0)
      yield* TestClock.adjust("12 hours")
      yield* ArtifactStore.makeFileSystem({ directory })
      assert.deepStrictEqual(incoming(directory), ["left"])
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
