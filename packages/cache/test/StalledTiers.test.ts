/** Servers behind a line that stops in the middle of an answer, or drips: contract 44. */
import { assert, describe, it } from "@effect/vitest"
import type { CacheEntry } from "@strata/cache/CacheEntry"
import type { CacheError } from "@strata/cache/CacheError"
import * as HttpCache from "@strata/cache/HttpCache"
import * as PostgresCache from "@strata/cache/PostgresCache"
import * as RedisCache from "@strata/cache/RedisCache"
import * as S3Cache from "@strata/cache/S3Cache"
import type { StepCache } from "@strata/cache/StepCache"
import * as TierGuard from "@strata/cache/TierGuard"
import * as Nginx from "@strata/cache/testing/nginx"
import * as Postgres from "@strata/durable/testing/postgres"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { entryOf } from "./support/http.ts"
import * as PostgresSupport from "./support/postgres.ts"
import * as Proxy from "./support/proxy.ts"
import * as RedisSupport from "./support/redis.ts"
import * as S3Support from "./support/s3.ts"
import { reasonOf } from "./support/sharedTier.ts"

const redisUrl = await RedisSupport.serve()
const s3 = await S3Support.serve()

type Steps = StepCache["Service"]
type Tier = (deadlines: HttpCache.Deadlines) => Effect.Effect<Steps, CacheError, Scope.Scope>

/** A proxy before the server of an address, and the address of the proxy. */
const before = Effect.fnUntraced(function* (address: string | URL, usualPort: number) {
  const url = new URL(address)
  const proxy = yield* Proxy.make({ host: url.hostname, port: url.port === "" ? usualPort : Number(url.port) })
  url.host = `127.0.0.1:${proxy.port}`
  return { proxy, url }
})

/** Each with a tier by way of a proxy, which can be made several times. */
const tiers = [
  {
    name: "HTTP",
    isAvailable: Effect.runSync(Nginx.isInstalled),
    make: Effect.gen(function* () {
      const { proxy, url } = yield* before((yield* Nginx.make()).url, 80)
      const tier: Tier = (deadlines) => HttpCache.stepCache({ url, deadlines })
      return { proxy, tier }
    })
  },
  {
    name: "Redis",
    isAvailable: redisUrl !== undefined,
    make: Effect.gen(function* () {
      const { proxy, url } = yield* before(redisUrl ?? "", 6379)
      const prefix = RedisSupport.somePrefix()
      const tier: Tier = (deadlines) => RedisCache.stepCache({ url, prefix, deadlines })
      return { proxy, tier }
    })
  },
  {
    name: "Postgres",
    isAvailable: Postgres.isAvailable(),
    make: Effect.gen(function* () {
      const options = yield* PostgresSupport.options
      const { proxy, url } = yield* before(options.url ?? "", 5432)
      const tier: Tier = (deadlines) => PostgresCache.stepCache({ ...options, url, deadlines })
      return { proxy, tier }
    })
  },
  {
    name: "S3",
    isAvailable: s3 !== undefined,
    make: Effect.gen(function* () {
      const { proxy, url } = yield* before(s3?.endpoint ?? "", 80)
      const prefix = S3Support.somePrefix()
      const tier: Tier = (deadlines) => S3Cache.stepCache({ bucket: "", ...s3, prefix, endpoint: url, deadlines })
      return { proxy, tier }
    })
  }
]

/** What a lookup may take, and time enough for all else. */
const lookupMs = 400
const deadlines: HttpCache.Deadlines = { connect: 5000, response: 5000, idle: 5000, lookup: lookupMs }

/** Answers of this size are in the way; those by which a connection is made are smaller. */
const above = 4000

/** Of 640 KiB, of which no part comes along with the first answer of a tier that gives parts. */
const large = entryOf("large", { result: JSON.stringify({ text: "ä word ".repeat(81_920) }) })
const small = entryOf("small", { result: JSON.stringify({ text: "word ".repeat(4000) }) })

for (const { isAvailable, make, name } of tiers) {
  describe.skipIf(!isAvailable)(`a lookup on ${name}`, { timeout: 60_000 }, () => {
    /** A tier that has both entries. */
    const start = Effect.gen(function* () {
      const { proxy, tier } = yield* make
      const writer = yield* tier({})
      yield* writer.put(small)
      yield* writer.put(large)
      return { proxy, tier }
    })

    for (const [fault, answers] of [
      ["stops", Proxy.stall(above)],
      ["drips", Proxy.slow(above, 1, 10)]
    ] as const) {
      it.live(`has one deadline, however many there are, when the answer ${fault}`, () =>
        Effect.gen(function* () {
          const { proxy, tier } = yield* start
          const entries = yield* tier(deadlines)
          yield* entries.get(small.key)
          proxy.answers = answers
          const calls = Array.from({ length: 32 }, () => reasonOf(entries.get(large.key)))
          const [duration, reasons] = yield* Effect.timed(Effect.all(calls, { concurrency: "unbounded" }))
          for (const reason of reasons) {
            assert.deepInclude(reason, { _tag: "TimedOut", phase: "total" })
            assert.isAtLeast(reason._tag === "TimedOut" ? reason.afterMs : 0, lookupMs)
          }
          const ms = Duration.toMillis(duration)
          assert.isAtLeast(ms, lookupMs)
          assert.isBelow(ms, lookupMs + 2000)
        })
      )
    }

    it.live("comes over another connection than the one whose answer stopped", () =>
      Effect.gen(function* () {
        const { proxy, tier } = yield* start
        const entries = yield* tier(deadlines)
        yield* entries.get(small.key)
        proxy.answers = Proxy.stall(above)
        assert.strictEqual((yield* reasonOf(entries.get(small.key)))._tag, "TimedOut")
        const opened = proxy.opened()
        proxy.answers = Proxy.whole
        const found = yield* entries.get(small.key)
        assert.deepStrictEqual(found._tag === "Hit" && found.entry.result, small.result)
        assert.isAbove(proxy.opened(), opened)
      })
    )

    it.live("leaves no connection behind", () =>
      Effect.gen(function* () {
        const { proxy, tier } = yield* start
        const others = proxy.open()
        const scope = yield* Scope.make()
        const entries = yield* Scope.provide(tier(deadlines), scope)
        yield* entries.get(small.key)
        proxy.answers = Proxy.stall(above)
        assert.strictEqual((yield* reasonOf(entries.get(small.key)))._tag, "TimedOut")
        const [closing] = yield* Effect.timed(Scope.close(scope, Exit.void))
        assert.isBelow(Duration.toMillis(closing), 2000)
        yield* awaitTrue(Effect.sync(() => proxy.open() <= others))
      })
    )

    it.live("takes its time when what comes is slow but no drip", () =>
      Effect.gen(function* () {
        const { proxy, tier } = yield* start
        const entries = yield* tier({ ...deadlines, idle: 1000 })
        yield* entries.get(small.key)
        // 800 KiB a second.
        proxy.answers = Proxy.slow(above, 16_384, 20)
        const [duration, found] = yield* Effect.timed(entries.get(large.key))
        assert.deepStrictEqual(found._tag === "Hit" && found.entry.digest, large.digest)
        assert.isAbove(Duration.toMillis(duration), lookupMs)
      })
    )

    it.live("costs nothing any more when some have failed, and is there again when the line is", () =>
      Effect.gen(function* () {
        const { proxy, tier } = yield* start
        const entries = yield* tier(deadlines)
        const call = entries.get(large.key)
        yield* call
        const guard = yield* TierGuard.make(name, call, { failures: 3, openBase: "200 millis", openCap: "200 millis" })
        proxy.answers = Proxy.stall(above)
        yield* Effect.all(
          Array.from({ length: 3 }, () => reasonOf(guard.run(call))),
          { concurrency: 3 }
        )
        const [duration, reasons] = yield* Effect.timed(Effect.replicateEffect(reasonOf(guard.run(call)), 100))
        for (const reason of reasons) assert.strictEqual(reason._tag, "BreakerOpen")
        assert.isBelow(Duration.toMillis(duration), lookupMs)
        proxy.answers = Proxy.whole
        yield* awaitTrue(Effect.map(guard.state, ({ _tag }) => _tag === "Closed"))
        assert.strictEqual((yield* guard.run(call))._tag, "Hit")
      })
    )
  })
}

describe.skipIf(redisUrl === undefined)("a connection to Redis", () => {
  const start = Effect.gen(function* () {
    const { proxy, url } = yield* before(redisUrl ?? "", 6379)
    const prefix = RedisSupport.somePrefix()
    yield* (yield* RedisCache.stepCache({ url, prefix })).put(large)
    const limits = { response: lookupMs, lookup: "1 minute", minBytesPerSecond: 1e9 } as const
    const entries = yield* RedisCache.stepCache({ url, prefix, deadlines: limits })
    yield* entries.get(large.key)
    return { proxy, entries }
  })

  it.live("that is silent fails at once for all who wait", () =>
    Effect.gen(function* () {
      const { entries, proxy } = yield* start
      proxy.answers = Proxy.stall(above)
      const calls = Array.from({ length: 32 }, () => reasonOf(entries.get(large.key)))
      const [duration, reasons] = yield* Effect.timed(Effect.all(calls, { concurrency: "unbounded" }))
      for (const reason of reasons) assert.deepInclude(reason, { _tag: "TimedOut", phase: "response", afterMs: 401 })
      assert.isBelow(Duration.toMillis(duration), 6 * lookupMs)
    })
  )

  it.live("has all who wait for as long as answers come", () =>
    Effect.gen(function* () {
      const { entries, proxy } = yield* start
      // Each piece has its time, and all of them together more than that.
      proxy.answers = Proxy.slow(above, 65_536, 25)
      const calls = Array.from({ length: 4 }, () => entries.get(large.key))
      const [duration, found] = yield* Effect.timed(Effect.all(calls, { concurrency: "unbounded" }))
      assert.deepStrictEqual(
        found.map(({ _tag }) => _tag),
        ["Hit", "Hit", "Hit", "Hit"]
      )
      assert.isAbove(Duration.toMillis(duration), 2 * lookupMs)
    })
  )

  it.live("that owes an answer to one who left is for nobody else", () =>
    Effect.gen(function* () {
      const { entries, proxy } = yield* start
      proxy.answers = Proxy.stall(above)
      const waiting = yield* Effect.forkChild(entries.get(large.key))
      yield* Effect.sleep("50 millis")
      const opened = proxy.opened()
      const open = proxy.open()
      yield* Fiber.interrupt(waiting)
      proxy.answers = Proxy.whole
      assert.strictEqual((yield* entries.get(large.key))._tag, "Hit")
      assert.strictEqual(proxy.opened(), opened + 1)
      yield* awaitTrue(Effect.sync(() => proxy.open() === open))
    })
  )
})

describe.skipIf(!Postgres.isAvailable())("what comes in parts from Postgres", () => {
  it.live("is whole, also when it is in the way of a put", () =>
    Effect.gen(function* () {
      const { blobs, entries } = yield* PostgresSupport.tierOf({ artifacts: "trust" })
      const bytes = new Uint8Array(300_000).map((_, i) => (i * 7919) % 251)
      const artifacts = Array.from({ length: 1500 }, (_, i) => ({
        name: `ö${1000 + i}`,
        ...PostgresSupport.blobOf(bytes)
      }))
      const entry = entryOf("parts", { artifacts, result: large.result })
      assert.strictEqual((yield* entries.put(entry))._tag, "Inserted")
      const found = yield* entries.get(entry.key)
      assert.deepStrictEqual(found._tag === "Hit" && [found.entry.result, found.entry.artifacts], [
        large.result,
        artifacts
      ])
      assert.strictEqual((yield* entries.put(entry))._tag, "ExistingSame")
      assert.strictEqual((yield* entries.put({ ...entry, ...other(entry) }))._tag, "Conflict")
      for (const content of [bytes, bytes.subarray(0, 131_072), bytes.subarray(0, 131_073), bytes.subarray(0, 0)]) {
        const blob = yield* blobs.add(Stream.make(content))
        assert.deepStrictEqual(Buffer.concat(yield* Stream.runCollect(blobs.get(blob))), Buffer.from(content))
      }
    })
  )

  /** Another result for the same key. */
  const other = ({ metadata }: CacheEntry) => {
    const { digest, result } = entryOf("x")
    return { digest, result, metadata }
  }
})

/** Looks again and again. */
const awaitTrue = Effect.fnUntraced(function* (condition: Effect.Effect<boolean>) {
  for (let i = 0; i < 1000; i++) {
    if (yield* condition) return
    yield* Effect.sleep("10 millis")
  }
  return assert.fail("in vain")
})
