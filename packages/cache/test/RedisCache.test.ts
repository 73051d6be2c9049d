import { assert, describe, it } from "@effect/vitest"
import type { CacheEntry } from "@strata/cache/CacheEntry"
import { absent, miss } from "@strata/cache/Lookup"
import type { RedisCacheOptions } from "@strata/cache/RedisCache"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { blobOf, entryOf } from "./support/http.ts"
import { admin, serve, tierOf } from "./support/redis.ts"
import * as SharedTier from "./support/sharedTier.ts"

const url = (await serve()) ?? "redis://no-server.invalid"

const { blob, collect, content, reasonOf } = SharedTier

const start = Effect.fnUntraced(function* (options: Partial<RedisCacheOptions> = {}) {
  const tier = yield* tierOf({ url, ...options })
  return {
    ...tier,
    redis: yield* admin(url),
    entryKey: (entry: CacheEntry) => `${tier.prefix}entry:${entry.key}`,
    blobKey: `${tier.prefix}blob:${blob.digest}`
  }
})

describe.skipIf(url.endsWith(".invalid"))("RedisCache", () => {
  it.live("keeps entries with their blobs, signed ones too", () =>
    Effect.gen(function* () {
      const { blobs, entries } = yield* start()
      const signature = { keyId: "a", value: "c2lnbmF0dXJl" }
      const entry = { ...entryOf("a", { artifacts: [{ name: "out/ä", ...blob }] }), signature }
      yield* blobs.put(blob, Stream.make(content))
      assert.deepStrictEqual(yield* entries.put(entry), { _tag: "Inserted" })
      assert.deepStrictEqual(yield* entries.get(entry.key), { _tag: "Hit", entry, tier: "redis" })
      assert.deepStrictEqual(yield* collect(blobs.get(blob)), content)
    })
  )

  it.live("keeps prefixes apart, and databases", () =>
    Effect.gen(function* () {
      const { entries, prefix } = yield* start()
      const entry = entryOf("a")
      yield* entries.put(entry)
      const others = [yield* start({ prefix: `${prefix}other:` }), yield* start({ prefix, url: `${url}/3` })]
      for (const other of others) assert.deepStrictEqual(yield* other.entries.get(entry.key), absent)
    })
  )

  it.live("misses an entry whose blob is gone, and lets another result in then", () =>
    Effect.gen(function* () {
      const { blobKey, blobs, entries, redis } = yield* start()
      const artifacts = [{ name: "out", ...blob }]
      const [first, second] = [entryOf("a", { artifacts }), entryOf("a", { result: "2" })]
      yield* blobs.put(blob, Stream.make(content))
      yield* entries.put(first)
      assert.strictEqual((yield* entries.put(second))._tag, "Conflict")
      yield* redis("DEL", blobKey)
      assert.deepStrictEqual(yield* entries.get(first.key), miss({ _tag: "ArtifactMissing", digests: [blob.digest] }))
      assert.strictEqual((yield* entries.put(second))._tag, "Inserted")
      assert.deepStrictEqual(yield* entries.get(first.key), { _tag: "Hit", entry: second, tier: "redis" })
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

  it.live("misses whatever byte of an entry is flipped, or serves the same result; a put writes over it", () =>
    Effect.gen(function* () {
      const { entries, entryKey, redis } = yield* start()
      const entry = entryOf("a")
      yield* entries.put(entry)
      const value = Buffer.from(yield* redis("GET", entryKey(entry)).pipe(Effect.map(String)), "utf8")
      assert.isAbove(value.length, 200)
      for (let at = 0; at < value.length; at++) {
        const flipped = Buffer.from(value)
        flipped[at] = (flipped[at] ?? 0) ^ 1
        yield* redis("SET", entryKey(entry), flipped)
        const found = yield* entries.get(entry.key)
        if (found._tag === "Hit") assert.deepInclude(found.entry, { key: entry.key, result: entry.result })
        const outcome = yield* entries.put(entry)
        assert.strictEqual(outcome._tag, found._tag === "Hit" ? "ExistingSame" : "Inserted", `byte ${at}`)
        assert.strictEqual((yield* entries.get(entry.key))._tag, "Hit")
      }
    })
  )

  it.live("misses what is no entry, and what is one of another key", () =>
    Effect.gen(function* () {
      const { entries, entryKey, redis } = yield* start()
      const [one, other] = [entryOf("a"), entryOf("b")]
      yield* entries.put(one)
      yield* redis("COPY", entryKey(one), entryKey(other))
      assert.deepStrictEqual(yield* entries.get(other.key), miss({ _tag: "WrongKey" }))
      for (const value of ["", "x", "x".repeat(40)]) {
        yield* redis("SET", entryKey(one), value)
        assert.include(["Absent", "Undecodable"], missOf(yield* entries.get(one.key)))
        assert.deepStrictEqual(yield* entries.put(one), { _tag: "Inserted" })
      }
      yield* redis("DEL", entryKey(one))
      yield* redis("LPUSH", entryKey(one), "x")
      assert.strictEqual(missOf(yield* entries.get(one.key)), "Undecodable")
      assert.strictEqual((yield* reasonOf(entries.put(one)))._tag, "Invalid")
    })
  )

  it.live("lets one of many in where a corrupt entry was", () =>
    Effect.gen(function* () {
      const { entries, entryKey, redis } = yield* start()
      const results = Array.from({ length: 12 }, (_, i) => entryOf("a", { result: `${i}` }))
      for (let round = 0; round < 20; round++) {
        yield* redis("SET", entryKey(results[0]!), `corrupt ${round}`)
        const outcomes = yield* Effect.forEach(results, (entry) => entries.put(entry), { concurrency: "unbounded" })
        assert.deepStrictEqual(outcomes.map(({ _tag }) => _tag).toSorted(), [
          ...Array.from({ length: 11 }, () => "Conflict"),
          "Inserted"
        ])
      }
    })
  )

  it.live("rejects a blob that was flipped, takes it out, and is sent it again", () =>
    Effect.gen(function* () {
      const { blobKey, blobs, redis } = yield* start()
      for (const at of [0, 5, content.length - 1]) {
        yield* blobs.put(blob, Stream.make(content))
        yield* redis("SETRANGE", blobKey, `${at}`, "#")
        assert.deepStrictEqual(yield* blobs.missing([blob]), [])
        assert.strictEqual((yield* reasonOf(collect(blobs.get(blob))))._tag, "ArtifactCorrupt")
        assert.deepStrictEqual(yield* blobs.missing([blob]), [blob])
      }
      yield* blobs.put(blob, Stream.make(content))
      assert.deepStrictEqual(yield* collect(blobs.get(blob)), content)
    })
  )

  it.live("heals a corrupt blob by adding it, and one of another size or kind by putting it", () =>
    Effect.gen(function* () {
      const { blobKey, blobs, redis } = yield* start()
      yield* redis("SET", blobKey, "THE SAME SIZE".slice(0, content.length))
      assert.deepStrictEqual(yield* blobs.add(Stream.make(content)), blob)
      assert.deepStrictEqual(yield* collect(blobs.get(blob)), content)
      const others = [
        ["SET", blobKey, "another size"],
        ["SET", blobKey, ""],
        ["LPUSH", blobKey, "x"]
      ]
      for (const other of others) {
        yield* redis("DEL", blobKey)
        yield* redis(...other)
        assert.include(
          ["ArtifactCorrupt", "ArtifactMissing", "Invalid"],
          (yield* reasonOf(collect(blobs.get(blob))))._tag
        )
        yield* blobs.put(blob, Stream.make(content))
        assert.deepStrictEqual(yield* collect(blobs.get(blob)), content)
      }
    })
  )

  it.live("keeps a whole blob, whatever size it is asked for with", () =>
    Effect.gen(function* () {
      const { blobs } = yield* start()
      yield* blobs.put(blob, Stream.make(content))
      for (const size of [0, 1, content.length - 1, content.length + 1, 1000]) {
        const reason = yield* reasonOf(collect(blobs.get({ ...blob, size })))
        assert.include(["ArtifactCorrupt", "ArtifactMissing"], reason._tag)
      }
      assert.deepStrictEqual(yield* collect(blobs.get(blob)), content)
    })
  )

  it.live("gives blobs of several pieces, and such as end with one", () =>
    Effect.gen(function* () {
      const { blobs } = yield* start()
      for (const size of [1024 ** 2 - 1, 1024 ** 2, 1024 ** 2 + 1, 3 * 1024 ** 2]) {
        const large = Buffer.alloc(size, "abcdefg")
        yield* blobs.put(blobOf(large), Stream.make(large))
        assert.isTrue((yield* collect(blobs.get(blobOf(large)))).equals(large))
      }
    })
  )

  it.live("sends nothing that is too large, and takes nothing", () =>
    Effect.gen(function* () {
      const { entryKey, redis, ...tier } = yield* start({ maxEntryBytes: 1000, maxBlobBytes: 10 })
      const large = yield* SharedTier.refusesWhatIsTooLarge(tier)
      yield* redis("SET", entryKey(large), "x".repeat(1001))
      assert.deepStrictEqual(
        yield* tier.entries.get(large.key),
        miss({ _tag: "Undecodable", detail: "it is larger than 1000 bytes" })
      )
    })
  )

  it.live("evicts by the recording, in one step", () =>
    Effect.flatMap(start(), (tier) => SharedTier.evictsByRecording(tier, 50))
  )

  it.live("only reads when it is read-only, and leaves no trace", () =>
    Effect.gen(function* () {
      const writer = yield* start()
      const { prefix } = writer
      yield* writer.entries.put(entryOf("a"))
      const { redis, ...reader } = yield* start({ prefix, readOnly: true })
      // Redis gives keys in any order.
      const keys = Effect.map(redis("KEYS", `${prefix}*`), (reply) => (Array.isArray(reply) ? reply.toSorted() : reply))
      const before = yield* keys
      yield* SharedTier.onlyReads(writer, reader)
      assert.deepStrictEqual(yield* keys, before)
    })
  )

  it.live("keeps what it is told for as long as it is told, and lookups change nothing about it", () =>
    Effect.gen(function* () {
      const { blobKey, blobs, entries, entryKey, redis } = yield* start({ ttl: "1 hour" })
      const left = (key: string) => redis("PTTL", key).pipe(Effect.map(Number))
      const entry = entryOf("a", { artifacts: [{ name: "out", ...blob }] })
      yield* blobs.put(blob, Stream.make(content))
      assert.closeTo(yield* left(blobKey), 3_600_000, 10_000)
      yield* redis("PEXPIRE", blobKey, "60000")
      yield* entries.put(entry)
      assert.closeTo(yield* left(entryKey(entry)), 3_600_000, 10_000)
      assert.closeTo(yield* left(blobKey), 3_600_000, 10_000)
      for (const key of [entryKey(entry), blobKey]) yield* redis("PEXPIRE", key, "60000")
      yield* entries.get(entry.key)
      yield* collect(blobs.get(blob))
      yield* blobs.missing([blob])
      for (const key of [entryKey(entry), blobKey]) assert.isAtMost(yield* left(key), 60_000)
      yield* blobs.put(blob, Stream.die("asked for"))
      assert.closeTo(yield* left(blobKey), 3_600_000, 10_000)
      yield* redis("SET", entryKey(entry), "corrupt")
      yield* entries.put(entry)
      assert.closeTo(yield* left(entryKey(entry)), 3_600_000, 10_000)
    })
  )

  it.live("forgets after that time, and without one never", () =>
    Effect.gen(function* () {
      const { entries, prefix } = yield* start({ ttl: "100 millis" })
      const entry = entryOf("a")
      yield* entries.put(entry)
      yield* Effect.sleep("150 millis")
      assert.deepStrictEqual(yield* entries.get(entry.key), absent)
      const lasting = yield* start({ prefix })
      yield* lasting.entries.put(entry)
      yield* lasting.blobs.put(blob, Stream.make(content))
      for (const key of [lasting.entryKey(entry), lasting.blobKey]) {
        assert.strictEqual(Number(yield* lasting.redis("PTTL", key)), -1)
      }
    })
  )

  it.live("needs one connection for all who come at once, and ends it with its scope", () =>
    Effect.gen(function* () {
      const redis = yield* admin(url)
      const connections = Effect.map(redis("CLIENT", "LIST"), (list) => String(list).trim().split("\n").length)
      const before = yield* connections
      yield* Effect.scoped(
        Effect.gen(function* () {
          const { blobs } = yield* tierOf({ url, readOnly: true })
          yield* Effect.forEach(Array.from({ length: 50 }), () => blobs.missing([blob]), { concurrency: "unbounded" })
          assert.strictEqual(yield* connections, before + 1)
        })
      )
      for (let i = 0; i < 100 && (yield* connections) > before; i++) yield* Effect.sleep("10 millis")
      assert.strictEqual(yield* connections, before)
    })
  )

  it.live("serves a blob to the accessors of the tag", () => Effect.flatMap(start(), SharedTier.servesAccessors))
})

const missOf = (lookup: { readonly _tag: string; readonly reason?: { readonly _tag: string } }): string | undefined =>
  lookup.reason?._tag
