/** Servers that are away, full, closed to this client, of another kind, or hostile: C3, C6, C7 and contracts 44 and 45. */
import { assert, describe, it } from "@effect/vitest"
import type { CacheError } from "@strata/cache/CacheError"
import { outlook } from "@strata/cache/CacheError"
import { absent, miss } from "@strata/cache/Lookup"
import * as RedisCache from "@strata/cache/RedisCache"
import * as Redis from "@strata/cache/testing/redis"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { blobOf, entryOf } from "./support/http.ts"
import { admin, tierOf } from "./support/redis.ts"
import { reasonOf } from "./support/sharedTier.ts"
import * as RedisStub from "./support/redisStub.ts"

const isInstalled = await Effect.runPromise(Redis.isInstalled)

const content = Buffer.from("some content")
const blob = blobOf(content)
const entry = entryOf("a")

/** Long enough for a busy machine. */
const patient = { start: "20 seconds" } as const

const elapsed = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.timed(effect), ([duration]) => Duration.toMillis(duration))

describe.skipIf(!isInstalled)("RedisCache and its server", () => {
  it.live("is built without it, and uses it when it comes", () =>
    Effect.gen(function* () {
      const redis = yield* Redis.make()
      yield* redis.kill
      const { blobs, entries } = yield* tierOf({ url: redis.url })
      for (const call of [entries.get(entry.key), entries.put(entry), blobs.missing([blob])]) {
        const reason = yield* reasonOf(Effect.asVoid<unknown, CacheError, never>(call))
        assert.deepInclude(reason, { _tag: "Unreachable", detail: "ECONNREFUSED" })
      }
      yield* redis.restart
      assert.deepStrictEqual(yield* entries.put(entry), { _tag: "Inserted" })
      yield* blobs.put(blob, Stream.make(content))
      // Killed and back: the connection that it had is no hindrance.
      yield* redis.kill
      assert.strictEqual((yield* reasonOf(entries.get(entry.key)))._tag, "Unreachable")
      yield* redis.restart
      assert.deepStrictEqual(yield* entries.get(entry.key), absent)
      assert.deepStrictEqual(yield* blobs.missing([blob]), [blob])
    })
  )

  it.live("fails what is on its way when it is killed", () =>
    Effect.gen(function* () {
      const redis = yield* Redis.make()
      const { entries } = yield* tierOf({ url: redis.url, deadlines: patient })
      yield* redis.pause
      const calls = yield* Effect.forkChild(
        Effect.forEach(Array.from({ length: 10 }), () => reasonOf(entries.get(entry.key)), { concurrency: 10 })
      )
      yield* Effect.sleep("50 millis")
      yield* redis.kill
      for (const reason of yield* Fiber.join(calls)) assert.strictEqual(reason._tag, "Unreachable")
    })
  )

  it.live("is waited for within the deadlines when it hangs, and asked anew when it goes on", () =>
    Effect.gen(function* () {
      const redis = yield* Redis.make()
      const deadlines = { ...patient, connect: "200 millis", response: "200 millis", minBytesPerSecond: 1e6 } as const
      const { entries } = yield* tierOf({ url: redis.url, deadlines })
      yield* entries.put(entry)
      yield* redis.pause
      assert.deepInclude(yield* reasonOf(entries.get(entry.key)), { _tag: "TimedOut", phase: "response" })
      // The kernel still accepts, but the client tells the server its name before all else.
      assert.deepInclude(yield* reasonOf(entries.get(entry.key)), { _tag: "TimedOut", phase: "connect" })
      const interrupted = yield* Effect.forkChild(entries.get(entry.key))
      yield* Effect.sleep("20 millis")
      assert.isBelow(yield* elapsed(Fiber.interrupt(interrupted)), 150)
      yield* redis.resume
      assert.strictEqual((yield* entries.get(entry.key))._tag, "Hit")
    })
  )

  it.live("is given the time that its bytes take", () =>
    Effect.gen(function* () {
      const stub = yield* RedisStub.make(() => undefined)
      const deadlines = { response: "100 millis", minBytesPerSecond: 1_000_000, start: "1 millis" } as const
      const { blobs } = yield* tierOf({ url: stub.url, deadlines })
      const large = Buffer.alloc(500_000)
      stub.behave(([name]) => (name === "STRLEN" ? ":0\r\n" : undefined))
      const reason = yield* reasonOf(blobs.put(blobOf(large), Stream.make(large)))
      assert.isAbove(reason._tag === "TimedOut" ? reason.afterMs : 0, 600)
    })
  )

  it.live("does not know this client", () =>
    Effect.gen(function* () {
      const redis = yield* Redis.make({ settings: [["requirepass", "hunter2"]] })
      const credentials = { password: Redacted.make("wrong-hunter3") }
      for (const options of [{ url: redis.url }, { url: redis.url, credentials }]) {
        const { blobs, entries } = yield* tierOf({ ...options, deadlines: patient })
        const error = yield* Effect.flip(entries.get(entry.key))
        assert.strictEqual(error.reason._tag, "Forbidden")
        assert.notMatch(JSON.stringify(error) + error.message + String(error.stack), /hunter/)
        assert.strictEqual((yield* reasonOf(blobs.put(blob, Stream.make(content))))._tag, "Forbidden")
      }
      const known = yield* tierOf({ url: redis.url, credentials: { password: Redacted.make("hunter2") } })
      assert.strictEqual((yield* known.entries.put(entry))._tag, "Inserted")
    })
  )

  it.live("lets a user of its list do no more than is allowed", () =>
    Effect.gen(function* () {
      const redis = yield* Redis.make({
        settings: [["user", "reader", "on", ">s%cret/", "~*", "+@read", "+@connection"]]
      })
      const options = yield* RedisCache.fromUrl(Redacted.make(redis.url.replace("//", "//reader:s%25cret%2F@")))
      const [writer, reader] = [yield* tierOf({ url: redis.url }), yield* tierOf({ ...options, prefix: "p:" })]
      yield* (yield* tierOf({ url: redis.url, prefix: "p:" })).entries.put(entry)
      assert.strictEqual((yield* reader.entries.get(entry.key))._tag, "Hit")
      assert.strictEqual((yield* reasonOf(reader.entries.put(entry)))._tag, "Forbidden")
      assert.strictEqual((yield* reasonOf(reader.blobs.put(blob, Stream.make(content))))._tag, "Forbidden")
      assert.deepStrictEqual(yield* writer.entries.get(entry.key), absent)
    })
  )

  it.live("is a replica, which only reads", () =>
    Effect.gen(function* () {
      const primary = yield* Redis.make()
      const replica = yield* Redis.make({ settings: [["replicaof", "127.0.0.1", `${primary.port}`]] })
      const there = yield* tierOf({ url: primary.url, prefix: "p:" })
      yield* there.entries.put(entry)
      const { blobs, entries } = yield* tierOf({ url: replica.url, prefix: "p:" })
      yield* awaitTrue(
        Effect.map(
          Effect.result(entries.get(entry.key)),
          (found) => found._tag === "Success" && found.success._tag === "Hit"
        )
      )
      assert.strictEqual((yield* reasonOf(entries.put(entry)))._tag, "ReadOnly")
      assert.strictEqual((yield* reasonOf(blobs.put(blob, Stream.make(content))))._tag, "ReadOnly")
    })
  )

  it.live("is full, and evicts nothing", () =>
    Effect.gen(function* () {
      const redis = yield* Redis.make({ settings: [["maxmemory", "3mb"]] })
      const { blobs, entries } = yield* tierOf({ url: redis.url, deadlines: patient })
      yield* entries.put(entry)
      const contents = Array.from({ length: 6 }, (_, i) => Buffer.alloc(1_000_000, i))
      const error = yield* Effect.flip(
        Effect.forEach(contents, (large) => blobs.put(blobOf(large), Stream.make(large)), { discard: true })
      )
      assert.deepInclude(error.reason, { _tag: "Unexpected", detail: "its memory is full (OOM)" })
      assert.strictEqual(outlook(error), "later")
      assert.strictEqual((yield* entries.get(entry.key))._tag, "Hit")
    })
  )

  it.live("evicts a blob between its entry and its reader", () =>
    Effect.gen(function* () {
      const redis = yield* Redis.make({
        settings: [
          ["maxmemory", "8mb"],
          ["maxmemory-policy", "allkeys-lru"],
          ["maxmemory-samples", "64"]
        ]
      })
      const { blobs, entries, prefix } = yield* tierOf({ url: redis.url, deadlines: patient })
      const large = Buffer.alloc(1_000_000, "x")
      const named = entryOf("b", { artifacts: [{ name: "out", ...blobOf(large) }] })
      yield* blobs.put(blobOf(large), Stream.make(large))
      yield* entries.put(named)
      assert.strictEqual((yield* entries.get(named.key))._tag, "Hit")
      const tell = yield* admin(redis.url)
      // The clock by which it evicts is one of seconds.
      yield* Effect.sleep("1100 millis")
      for (let i = 0; Number(yield* tell("EXISTS", `${prefix}blob:${blobOf(large).digest}`)) === 1; i++) {
        assert.isBelow(i, 40)
        yield* tell("TOUCH", `${prefix}entry:${named.key}`)
        const other = Buffer.alloc(500_000, i)
        yield* blobs.put(blobOf(other), Stream.make(other))
      }
      assert.deepStrictEqual(
        yield* entries.get(named.key),
        miss({ _tag: "ArtifactMissing", digests: [blobOf(large).digest] })
      )
      // Room for it, or the entry might have to go now.
      yield* tell("CONFIG", "SET", "maxmemory", "0")
      yield* blobs.put(blobOf(large), Stream.make(large))
      assert.strictEqual((yield* entries.put(named))._tag, "ExistingSame")
      assert.strictEqual((yield* entries.get(named.key))._tag, "Hit")
    })
  )

  it.live("is a node of a cluster that has no slots", () =>
    Effect.gen(function* () {
      const redis = yield* Redis.make({ settings: [["cluster-enabled", "yes"]] })
      const { entries } = yield* tierOf({ url: redis.url, deadlines: patient })
      assert.deepInclude(yield* reasonOf(entries.get(entry.key)), { _tag: "Unreachable", detail: "CLUSTERDOWN" })
    })
  )
})

describe("RedisCache and servers of another kind", () => {
  it.live("tells at its start that a server cannot tell who was first", () =>
    Effect.gen(function* () {
      const older: RedisStub.Answers = () => "-ERR syntax error\r\n"
      const forgetful: RedisStub.Answers = () => "$-1\r\n"
      const last: RedisStub.Answers = ([, , value = ""]) => (value === "first" ? "$-1\r\n" : "$6\r\nsecond\r\n")
      for (const answers of [older, forgetful, last]) {
        const { url } = yield* RedisStub.make(answers)
        const error = yield* Effect.flip(RedisCache.stepCache({ url, name: "redis", deadlines: patient }))
        assert.strictEqual(error.reason._tag, "Unsupported")
        assert.match(error.message, /^redis cannot tell who was first: .* Redis 7 /)
      }
    })
  )

  it.live("finds out before its first put when the server was away at the start", () =>
    Effect.gen(function* () {
      const stub = yield* RedisStub.make(() => "-LOADING Redis is loading the dataset in memory\r\n")
      const { entries } = yield* tierOf({ url: stub.url, deadlines: patient })
      assert.deepInclude(yield* reasonOf(entries.put(entry)), { _tag: "Unreachable", detail: "LOADING" })
      stub.behave(() => "-ERR syntax error\r\n")
      const error = yield* Effect.flip(entries.put(entry))
      assert.strictEqual(error.reason._tag, "Unsupported")
      assert.strictEqual(outlook(error), "never")
      assert.isFalse(stub.seen.some(([, key = ""]) => key.includes("entry:")))
    })
  )

  it.live("is built soon, and ends soon, when the server accepts and says nothing", () =>
    Effect.gen(function* () {
      const { url } = yield* RedisStub.make(() => undefined)
      const scope = yield* Scope.make()
      // With a password and a database there is something to wait for before the connection stands.
      const options = { url: `${url}/1`, credentials: { password: Redacted.make("secret") } }
      const built = yield* Effect.timed(
        Scope.provide(tierOf({ ...options, deadlines: { start: "100 millis" } }), scope)
      )
      assert.isBelow(Duration.toMillis(built[0]), 2000)
      const { entries } = built[1]
      const waiting = yield* Effect.forkChild(Effect.flip(entries.get(entry.key)))
      yield* Effect.sleep("50 millis")
      assert.isBelow(yield* elapsed(Scope.close(scope, Exit.void)), 1000)
      assert.strictEqual((yield* Fiber.join(waiting)).reason._tag, "Unreachable")
      assert.strictEqual((yield* reasonOf(entries.get(entry.key)))._tag, "Unreachable")
    })
  )

  it.live("is waited for within the deadline while it connects", () =>
    Effect.gen(function* () {
      const { url } = yield* RedisStub.make(() => undefined)
      const deadlines = { start: "1 millis", connect: "150 millis" } as const
      const { entries } = yield* tierOf({ url: `${url}/1`, deadlines })
      const calls = Array.from({ length: 20 }, () => reasonOf(entries.get(entry.key)))
      const [duration, reasons] = yield* Effect.timed(Effect.all(calls, { concurrency: "unbounded" }))
      for (const reason of reasons) assert.deepInclude(reason, { _tag: "TimedOut", phase: "connect", afterMs: 150 })
      // One attempt is that of all of them.
      assert.isBelow(Duration.toMillis(duration), 1000)
    })
  )

  for (const [answer, reason] of [
    ["-MOVED 3999 127.0.0.1:6381\r\n", { _tag: "Unsupported", operation: "be used as one node of a cluster" }],
    ["-BUSY Redis is busy running a script\r\n", { _tag: "Unreachable", detail: "BUSY" }],
    ["-ERR unknown, with args beginning with: 'hunter2'\r\n", { _tag: "Unexpected", detail: "ERR to GETRANGE" }],
    ["-nonsense\r\n", { _tag: "Unexpected", detail: "an error to GETRANGE" }],
    [":1\r\n", { _tag: "Unexpected", detail: "an answer to GETRANGE that it does not have" }],
    ["*1\r\n$1\r\nx\r\n", { _tag: "Unexpected", detail: "an answer to GETRANGE that it does not have" }],
    ["HTTP/1.1 400 Bad Request\r\n\r\n", { _tag: "TimedOut", phase: "response" }]
  ] as const) {
    it.live(`understands ${JSON.stringify(answer)}`, () =>
      Effect.gen(function* () {
        const { url } = yield* RedisStub.make(() => answer)
        const deadlines = { response: "300 millis", minBytesPerSecond: 1e6 } as const
        const { entries } = yield* tierOf({ url, deadlines, readOnly: true })
        assert.deepInclude(yield* reasonOf(entries.get(entry.key)), reason)
      })
    )
  }
})

describe("the options of RedisCache", () => {
  for (const url of [
    "nonsense",
    "http://host/",
    "redis://user:hunter2@host/",
    "redis://host/?password=hunter2",
    "redis://host/name",
    "redis:///1",
    "redis://host/#1"
  ]) {
    it.effect(`refuse ${url}`, () =>
      Effect.gen(function* () {
        for (const make of [
          RedisCache.stepCache({ url, name: "redis" }),
          RedisCache.artifactStore({ url, name: "redis" })
        ]) {
          const error = yield* Effect.flip(Effect.asVoid<unknown, CacheError, Scope.Scope>(make))
          assert.strictEqual(error.reason._tag, "Invalid")
          assert.notInclude(JSON.stringify(error), "hunter2")
        }
      })
    )
  }

  it.effect("refuse a ttl that is none", () =>
    Effect.gen(function* () {
      for (const ttl of [0, -1, Infinity]) {
        const error = yield* Effect.flip(RedisCache.artifactStore({ url: "redis://host", ttl }))
        assert.strictEqual(error.reason._tag, "Invalid")
      }
    })
  )

  it.effect("name the tier by its address, database and prefix", () =>
    Effect.gen(function* () {
      const nameOf = (options: RedisCache.RedisCacheOptions) =>
        Effect.map(RedisCache.artifactStore(options), ({ name }) => name)
      assert.strictEqual(yield* nameOf({ url: "redis://host:1234/" }), "redis://host:1234")
      assert.strictEqual(yield* nameOf({ url: "rediss://[::1]/2" }), "rediss://[::1]/2")
      assert.strictEqual(yield* nameOf({ url: "redis://host", prefix: "a b:" }), "redis://host?prefix=a%20b%3A")
      assert.strictEqual(yield* nameOf({ url: "redis://host", name: "redis" }), "redis")
    })
  )

  it.effect("come from a URL, whose secrets are in it no more", () =>
    Effect.gen(function* () {
      const from = (url: string) => RedisCache.fromUrl(Redacted.make(url))
      const full = yield* from("rediss://us%40er:p%3Ass@host:1234/2?prefix=ci%3A")
      assert.deepInclude(full, { url: "rediss://host:1234/2", prefix: "ci:" })
      assert.strictEqual(full.credentials?.username, "us@er")
      assert.strictEqual(full.credentials && Redacted.value(full.credentials.password), "p:ss")
      assert.deepStrictEqual(yield* from("redis://host"), { url: "redis://host" })
      assert.strictEqual((yield* from("redis://:pass@host")).credentials?.username, undefined)
      for (const url of ["nonsense hunter2", "redis://host/?token=hunter2", "redis://:%E0%A4hunter2@host"]) {
        const error = yield* Effect.flip(from(url))
        assert.strictEqual(error.reason._tag, "Invalid")
        assert.notInclude(JSON.stringify(error), "hunter2")
      }
    })
  )
})

/** Looks again and again. */
const awaitTrue = Effect.fnUntraced(function* (condition: Effect.Effect<boolean>) {
  for (let i = 0; i < 500; i++) {
    if (yield* condition) return
    yield* Effect.sleep("20 millis")
  }
  return assert.fail("in vain")
})
