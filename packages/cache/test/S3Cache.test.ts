import { assert, describe, it } from "@effect/vitest"
import { absent, miss } from "@strata/cache/Lookup"
import type { S3CacheOptions } from "@strata/cache/S3Cache"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import { blobOf, entryOf } from "./support/http.ts"
import { admin, serve, tierOf } from "./support/s3.ts"
import * as SharedTier from "./support/sharedTier.ts"

const served = await serve()
const server = { ...(served ?? { bucket: "none" }), deadlines: { start: "20 seconds" } } as const

const { blob, collect, content, reasonOf } = SharedTier

const start = Effect.fnUntraced(function* (options: Partial<S3CacheOptions> = {}) {
  const tier = yield* tierOf({ ...server, ...options })
  return { ...tier, s3: yield* admin({ ...server, prefix: tier.prefix }) }
})

describe.skipIf(served === undefined)("S3Cache", () => {
  it.live("keeps entries with their blobs, signed ones too, under any prefix", () =>
    Effect.gen(function* () {
      const { blobs, entries, prefix } = yield* tierOf(server)
      const odd = yield* start({ prefix: `${prefix}/ä b+c/(d)'*!~&=%/😀` })
      const signature = { keyId: "a", value: "c2lnbmF0dXJl" }
      const entry = { ...entryOf("a", { artifacts: [{ name: "out/ä", ...blob }] }), signature }
      yield* odd.blobs.put(blob, Stream.make(content))
      assert.deepStrictEqual(yield* odd.entries.put(entry), { _tag: "Inserted" })
      assert.deepStrictEqual(yield* odd.entries.get(entry.key), { _tag: "Hit", entry, tier: "s3" })
      assert.deepStrictEqual(yield* collect(odd.blobs.get(blob)), content)
      assert.deepStrictEqual(yield* entries.get(entry.key), absent)
      assert.deepStrictEqual(yield* blobs.missing([blob]), [blob])
    })
  )

  it.live("misses an entry whose blob is gone, and lets another result in then", () =>
    Effect.gen(function* () {
      const { blobs, entries, s3 } = yield* start()
      const [first, second] = [entryOf("a", { artifacts: [{ name: "out", ...blob }] }), entryOf("a", { result: "2" })]
      yield* blobs.put(blob, Stream.make(content))
      yield* entries.put(first)
      assert.strictEqual((yield* entries.put(second))._tag, "Conflict")
      yield* s3.remove(`cas/${blob.digest}`)
      assert.deepStrictEqual(yield* entries.get(first.key), miss({ _tag: "ArtifactMissing", digests: [blob.digest] }))
      assert.strictEqual((yield* entries.put(second))._tag, "Inserted")
      assert.deepStrictEqual(yield* entries.get(first.key), { _tag: "Hit", entry: second, tier: "s3" })
    })
  )

  it.live("asks nothing about artifacts when it trusts", () =>
    Effect.gen(function* () {
      const { entries } = yield* start({ artifacts: "trust" })
      const entry = entryOf("a", { artifacts: [{ name: "out", ...blob }] })
      assert.strictEqual((yield* entries.put(entry))._tag, "Inserted")
      assert.strictEqual((yield* entries.get(entry.key))._tag, "Hit")
    })
  )

  it.live("misses what is no entry, and what is one of another key", () =>
    Effect.gen(function* () {
      const { entries, s3 } = yield* start()
      const [one, other] = [entryOf("a"), entryOf("b")]
      yield* entries.put(one)
      yield* s3.put(`ac/${other.key}`, (yield* s3.get(`ac/${one.key}`)) ?? assert.fail("no object"))
      assert.deepStrictEqual(yield* entries.get(other.key), miss({ _tag: "WrongKey" }))
      for (const value of ["", "x", "x".repeat(40)]) {
        yield* s3.put(`ac/${one.key}`, Buffer.from(value))
        const found = yield* entries.get(one.key)
        assert.strictEqual(found._tag === "Miss" && found.reason._tag, value === "" ? "Absent" : "Undecodable")
        assert.deepStrictEqual(yield* entries.put(one), { _tag: "Inserted" })
      }
    })
  )

  it.live("lets one of many in where a corrupt entry was", () =>
    Effect.gen(function* () {
      const { entries, s3 } = yield* start()
      const results = Array.from({ length: 8 }, (_, i) => entryOf("a", { result: `${i}` }))
      for (let round = 0; round < 5; round++) {
        yield* s3.put(`ac/${entryOf("a").key}`, Buffer.from(`corrupt ${round}`))
        const outcomes = yield* Effect.forEach(results, (entry) => entries.put(entry), { concurrency: "unbounded" })
        assert.deepStrictEqual(outcomes.map(({ _tag }) => _tag).toSorted(), [
          ...Array.from({ length: 7 }, () => "Conflict"),
          "Inserted"
        ])
      }
    })
  )

  it.live("evicts by the recording, and never a fresher one", () =>
    Effect.flatMap(start(), (tier) => SharedTier.evictsByRecording(tier, 8))
  )

  it.live("rejects a blob that was flipped, and sends it again", () =>
    Effect.gen(function* () {
      const { blobs, s3 } = yield* start()
      yield* blobs.put(blob, Stream.make(content))
      yield* s3.put(`cas/${blob.digest}`, Buffer.from("SOME CONTENT"))
      assert.deepStrictEqual(yield* blobs.missing([blob]), [])
      assert.strictEqual((yield* reasonOf(collect(blobs.get(blob))))._tag, "ArtifactCorrupt")
      assert.deepStrictEqual(yield* blobs.missing([blob]), [blob])
      assert.deepStrictEqual(yield* blobs.add(Stream.make(content)), blob)
      assert.deepStrictEqual(yield* collect(blobs.get(blob)), content)
      assert.isTrue(yield* blobs.remove(blob.digest))
      assert.isFalse(yield* blobs.remove(blob.digest))
    })
  )

  it.live("keeps a large blob in parts, and nothing of one that is wrong", () =>
    Effect.gen(function* () {
      const { blobs } = yield* start({ multipartBytes: 5 * 1024 ** 2 })
      const large = Buffer.alloc(9 * 1024 ** 2, "abcdefg")
      const wrong = Stream.make(large.subarray(1), Buffer.from("x"))
      assert.strictEqual((yield* reasonOf(blobs.put(blobOf(large), wrong)))._tag, "ArtifactCorrupt")
      assert.deepStrictEqual(yield* blobs.missing([blobOf(large)]), [blobOf(large)])
      yield* blobs.put(blobOf(large), Stream.make(large))
      assert.deepStrictEqual(yield* blobs.missing([blobOf(large)]), [])
      assert.isTrue((yield* collect(blobs.get(blobOf(large)))).equals(large))
    })
  )

  it.live("sends nothing that is too large, and takes nothing", () =>
    Effect.flatMap(start({ maxEntryBytes: 1000, maxBlobBytes: 10 }), SharedTier.refusesWhatIsTooLarge)
  )

  it.live("only reads when it is read-only, and leaves no trace", () =>
    Effect.gen(function* () {
      const writer = yield* start()
      yield* SharedTier.onlyReads(writer, yield* start({ prefix: writer.prefix, readOnly: true }))
      const fresh = yield* start({ readOnly: true })
      assert.isUndefined(yield* fresh.s3.get("probe"))
    })
  )

  it.live("says that there is no bucket", () =>
    Effect.gen(function* () {
      const { blobs, entries } = yield* start({ bucket: "no-such-bucket-of-strata" })
      const entry = entryOf("a")
      const detail = "there is no such bucket"
      for (const call of [entries.get(entry.key), entries.put(entry), collect(blobs.get(blob))]) {
        assert.deepInclude({ ...(yield* reasonOf<unknown>(call)) }, { _tag: "Invalid", detail })
      }
    })
  )

  it.live("serves a blob to the accessors of the tag", () => Effect.flatMap(start(), SharedTier.servesAccessors))

  // The server that is started here checks no signature.
  const checks = process.env["STRATA_TEST_S3_URL"] !== undefined
  if (!checks) return

  it.live("is refused with a wrong secret, or an unknown name", () =>
    Effect.gen(function* () {
      const accessKeyId = server.credentials?.accessKeyId ?? ""
      for (const credentials of [
        { accessKeyId, secretAccessKey: Redacted.make("hunter2") },
        { accessKeyId: "nobody", secretAccessKey: Redacted.make("hunter2") }
      ]) {
        const { blobs, entries } = yield* tierOf({ ...server, credentials })
        const error = yield* Effect.flip(entries.get(entryOf("a").key))
        assert.strictEqual(error.reason._tag, "Forbidden")
        assert.notMatch(JSON.stringify(error) + error.message + String(error.stack), /hunter/)
        assert.strictEqual((yield* reasonOf(entries.put(entryOf("a"))))._tag, "Forbidden")
        assert.strictEqual((yield* reasonOf(blobs.put(blob, Stream.make(content))))._tag, "Forbidden")
      }
    })
  )

  it.live("signs by the clock of the server when that of this machine is an hour off", () =>
    Effect.gen(function* () {
      const clock = yield* Clock.Clock
      for (const offMs of [3_600_000, -3_600_000]) {
        const { entries } = yield* start().pipe(
          Effect.provideService(Clock.Clock, {
            sleep: (duration) => clock.sleep(duration),
            currentTimeNanosUnsafe: () => clock.currentTimeNanosUnsafe(),
            currentTimeNanos: clock.currentTimeNanos,
            monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe(),
            monotonicTimeNanos: clock.monotonicTimeNanos,
            currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() + offMs,
            currentTimeMillis: Effect.map(clock.currentTimeMillis, (now) => now + offMs)
          })
        )
        assert.strictEqual((yield* entries.put(entryOf("a")))._tag, "Inserted")
      }
    })
  )
})
