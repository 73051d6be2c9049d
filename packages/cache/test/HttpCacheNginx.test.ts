import { assert, describe, it } from "@effect/vitest"
import type { CacheError } from "@strata/cache/CacheError"
import * as HttpCache from "@strata/cache/HttpCache"
import { absent, miss } from "@strata/cache/Lookup"
import * as Nginx from "@strata/cache/testing/nginx"
import { Digest } from "@strata/durable/Digest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import { Buffer } from "node:buffer"
import { createHash } from "node:crypto"
import { readdir, readFile, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { blobOf, entryOf } from "./support/http.ts"

const isInstalled = await Effect.runPromise(Nginx.isInstalled)
if (!isInstalled) console.warn("nginx is not installed: the tests that need it are skipped")

const content = Buffer.from("some content")
const blob = blobOf(content)

const start = Effect.fnUntraced(function* (
  server: Nginx.NginxOptions = {},
  options: Partial<HttpCache.HttpCacheOptions> = {}
) {
  const nginx = yield* Nginx.make(server)
  const all = { url: nginx.url, name: "http", ...options }
  return { nginx, entries: yield* HttpCache.stepCache(all), blobs: yield* HttpCache.artifactStore(all) }
})

const collect = (stream: Stream.Stream<Uint8Array, CacheError>) => Effect.map(Stream.runCollect(stream), Buffer.concat)

const reasonOf = <A>(effect: Effect.Effect<A, CacheError>) => Effect.map(Effect.flip(effect), (error) => error.reason)

describe.skipIf(!isInstalled)("HttpCache on nginx", () => {
  it.live("keeps entries with their blobs, the empty one too", () =>
    Effect.gen(function* () {
      const { blobs, entries } = yield* start()
      const empty = blobOf(new Uint8Array())
      const artifacts = [
        { name: "a/ä", ...blob },
        { name: "empty", ...empty }
      ]
      const entry = entryOf("a", { artifacts })
      assert.deepStrictEqual(yield* entries.get(entry.key), absent)
      assert.deepStrictEqual(yield* blobs.missing([blob, empty, blob]), [blob, empty])
      yield* blobs.put(blob, Stream.make(content))
      yield* blobs.put(empty, Stream.empty)
      assert.deepStrictEqual(yield* blobs.missing([blob, empty]), [])
      assert.deepStrictEqual(yield* entries.put(entry), { _tag: "Unarbitrated" })
      assert.deepStrictEqual(yield* entries.get(entry.key), { _tag: "Hit", entry, tier: "http" })
      assert.deepStrictEqual(yield* collect(blobs.get(empty)), Buffer.alloc(0))
      assert.deepStrictEqual(yield* collect(blobs.get(blob)), content)
    })
  )

  it.live("never says what was there before a put", () =>
    Effect.gen(function* () {
      const { entries } = yield* start()
      const [one, other] = [entryOf("a"), entryOf("a", { result: "2" })]
      for (const entry of [one, one, other]) {
        assert.deepStrictEqual(yield* entries.put(entry), { _tag: "Unarbitrated" })
      }
      assert.deepStrictEqual(yield* entries.get(one.key), { _tag: "Hit", entry: other, tier: "http" })
    })
  )

  it.live("misses an entry whose blob or result is gone", () =>
    Effect.gen(function* () {
      const { blobs, entries, nginx } = yield* start({}, { inlineBytes: 0 })
      const entry = entryOf("a", { artifacts: [{ name: "out", ...blob }] })
      yield* blobs.put(blob, Stream.make(content))
      yield* entries.put(entry)
      yield* Effect.promise(() => rm(join(nginx.root, "cas", blob.digest)))
      assert.deepStrictEqual(yield* entries.get(entry.key), miss({ _tag: "ArtifactMissing", digests: [blob.digest] }))
      yield* Effect.promise(() => rm(join(nginx.root, "cas", entry.digest)))
      assert.deepStrictEqual(yield* entries.get(entry.key), miss({ _tag: "ArtifactMissing", digests: [entry.digest] }))
    })
  )

  it.live("rejects what was flipped on the disk, and heals it", () =>
    Effect.gen(function* () {
      const { blobs, entries, nginx } = yield* start({}, { inlineBytes: 0 })
      const entry = entryOf("a")
      yield* blobs.put(blob, Stream.make(content))
      yield* entries.put(entry)
      yield* flip(join(nginx.root, "cas", blob.digest), 3)
      yield* flip(join(nginx.root, "cas", entry.digest), 3)
      assert.strictEqual((yield* reasonOf(collect(blobs.get(blob))))._tag, "ArtifactCorrupt")
      assert.deepStrictEqual(yield* entries.get(entry.key), miss({ _tag: "DigestMismatch" }))
      yield* blobs.put(blob, Stream.make(content))
      yield* entries.put(entry)
      assert.deepStrictEqual(yield* collect(blobs.get(blob)), content)
      assert.strictEqual((yield* entries.get(entry.key))._tag, "Hit")
    })
  )

  it.live("misses whatever byte of an entry is flipped, or serves the same result", () =>
    Effect.gen(function* () {
      const { blobs, entries, nginx } = yield* start()
      yield* blobs.put(blob, Stream.make(content))
      const entry = entryOf("a", { artifacts: [{ name: "out", ...blob }] })
      yield* entries.put(entry)
      const path = join(nginx.root, "ac", entry.key)
      const { length } = yield* Effect.promise(() => readFile(path))
      for (let at = 0; at < length; at += 7) {
        yield* flip(path, at)
        const found = yield* entries.get(entry.key)
        if (found._tag === "Hit") {
          assert.deepStrictEqual(
            [found.entry.result, found.entry.digest, found.entry.key],
            [entry.result, entry.digest, entry.key]
          )
        }
        yield* flip(path, at)
      }
      assert.strictEqual((yield* entries.get(entry.key))._tag, "Hit")
    })
  )

  it.live.each([2000, 5 * 1024 ** 2])("hears that %i bytes are too many", (size) =>
    Effect.gen(function* () {
      const { blobs } = yield* start({ maxBodySize: 1000 })
      const big = Buffer.alloc(size, 7)
      const reason = yield* reasonOf(blobs.put(blobOf(big), Stream.make(big)))
      assert.strictEqual(reason._tag, "TooLarge")
      assert.deepInclude({ ...reason }, { size })
      // The connection it was refused on does no harm to the next request.
      yield* blobs.put(blob, Stream.make(content))
    })
  )

  it.live("is refused without its credentials", () =>
    Effect.gen(function* () {
      const { blobs, entries, nginx } = yield* start({ authorization: "Bearer right" })
      assert.strictEqual((yield* reasonOf(entries.get(entryOf("a").key)))._tag, "Forbidden")
      assert.strictEqual((yield* reasonOf(blobs.missing([blob])))._tag, "Forbidden")
      const credentials = { _tag: "Bearer", token: Redacted.make("right") } as const
      const known = yield* HttpCache.stepCache({ url: nginx.url, credentials })
      yield* known.put(entryOf("a"))
      assert.strictEqual((yield* known.get(entryOf("a").key))._tag, "Hit")
    })
  )

  it.live("is left without a trace of what was wrong or broken off", () =>
    Effect.gen(function* () {
      const { blobs, nginx } = yield* start()
      const big = Buffer.alloc(3 * 1024 ** 2, 1)
      const wrong = Stream.make(big.subarray(0, 2 * 1024 ** 2), Buffer.alloc(1024 ** 2, 2))
      assert.strictEqual((yield* reasonOf(blobs.put(blobOf(big), wrong)))._tag, "ArtifactCorrupt")
      const stalled = Stream.concat(Stream.make(big.subarray(0, 2 * 1024 ** 2)), Stream.never)
      yield* Effect.timeoutOption(blobs.put(blobOf(big), stalled), 200)
      assert.deepStrictEqual(yield* blobs.missing([blobOf(big)]), [blobOf(big)])
      assert.deepStrictEqual(yield* Effect.promise(() => readdir(nginx.root)), [])
    })
  )

  it.live("works again when the server is back", () =>
    Effect.gen(function* () {
      const server = yield* Effect.scoped(Nginx.make())
      const entries = yield* HttpCache.stepCache({ url: server.url })
      assert.strictEqual((yield* reasonOf(entries.put(entryOf("a"))))._tag, "Unreachable")
      yield* Nginx.make({ port: server.port })
      yield* entries.put(entryOf("a"))
      assert.strictEqual((yield* entries.get(entryOf("a").key))._tag, "Hit")
    })
  )

  it.live("streams 200 MB both ways in bounded memory", () =>
    Effect.gen(function* () {
      const { blobs } = yield* start()
      const peak = peakOf()
      const large = yield* blobs.add(peak.watch(largeContent))
      assert.deepStrictEqual(large, largeBlob())
      assert.isBelow(peak.bytes(), boundedBytes)
      let received = 0
      yield* Stream.runForEach(peak.watch(blobs.get(large)), (chunk) =>
        Effect.sync(() => {
          received += chunk.length
        })
      )
      assert.strictEqual(received, large.size)
      assert.isBelow(peak.bytes(), boundedBytes)
    })
  )
})

/** One bit of a file, which stays as long as it is. */
const flip = (path: string, at: number) =>
  Effect.promise(async () => {
    const bytes = await readFile(path)
    bytes[at] = (bytes[at] ?? 0) ^ 1
    await writeFile(path, bytes)
  })

const chunks = 3200

/** Garbage is given back in the background, so that some of it is still counted. */
const boundedBytes = 64 * 1024 ** 2

const chunkOf = (index: number) => Buffer.alloc(65_536, index % 251)

/** One at a time: a range comes in arrays, which would all be filled at once. */
const largeContent = Stream.range(0, chunks - 1).pipe(Stream.rechunk(1), Stream.map(chunkOf))

const largeBlob = () => {
  const hash = createHash("sha256")
  for (let index = 0; index < chunks; index++) hash.update(chunkOf(index))
  return { digest: Digest.make(hash.digest("hex")), size: chunks * 65_536 }
}

/** The most memory that is held for buffers, above what there was at first; looked at now and then, without garbage. */
const peakOf = () => {
  setFlagsFromString("--expose-gc")
  const collectGarbage: () => void = runInNewContext("gc")
  const held = () => {
    collectGarbage()
    return process.memoryUsage().arrayBuffers
  }
  const first = held()
  let most = 0
  let seen = 0
  return {
    bytes: () => most,
    watch: <E>(stream: Stream.Stream<Uint8Array, E>) =>
      Stream.tap(stream, () =>
        Effect.sync(() => {
          seen += 1
          if (seen % 400 === 0) most = Math.max(most, held() - first)
        })
      )
  }
}
