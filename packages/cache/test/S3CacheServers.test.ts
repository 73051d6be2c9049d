/** Servers that are away, closed to this client, of another kind, or hostile: C3, C6, C7, C12 and contracts 44 and 45. */
import { assert, describe, it } from "@effect/vitest"
import { type CacheError, outlook } from "@strata/cache/CacheError"
import { absent, miss } from "@strata/cache/Lookup"
import * as S3Cache from "@strata/cache/S3Cache"
import { StepCache } from "@strata/cache/StepCache"
import * as CacheServer from "@strata/cache/testing/cacheServer"
import * as Hostile from "@strata/cache/testing/hostile"
import { Journal } from "@strata/journal/Journal"
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import * as Redacted from "effect/Redacted"
import { MinimumLogLevel } from "effect/References"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as Tracer from "effect/Tracer"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { inspect } from "node:util"
import { vi } from "vitest"
import * as Signer from "../src/internal/s3/signer.ts"
import { blobOf, entryOf } from "./support/http.ts"
import { machine } from "./support/machine.ts"
import { reasonOf } from "./support/sharedTier.ts"
import * as S3Stub from "./support/s3Stub.ts"

const content = Buffer.from("some content")
const blob = blobOf(content)
const entry = entryOf("a")

const secret = "s3cr3t-k3y"
const credentials = { accessKeyId: "AKID", secretAccessKey: Redacted.make(secret) }
const deadlines: S3Cache.Deadlines = { connect: 300, response: 300, idle: 300, body: 600, start: "20 seconds" }

const open = Effect.fnUntraced(function* (
  server: { readonly url: string },
  options: Partial<S3Cache.S3CacheOptions> = {}
) {
  const all = {
    bucket: "bucket",
    prefix: "p",
    region: "us-east-1",
    endpoint: server.url,
    name: "s3",
    credentials,
    deadlines,
    ...options
  }
  return { entries: yield* S3Cache.stepCache(all), blobs: yield* S3Cache.artifactStore(all) }
})

/** A tier on a bucket of its own. */
const start = Effect.fnUntraced(function* (ways: S3Stub.Ways = {}, options: Partial<S3Cache.S3CacheOptions> = {}) {
  const bucket = S3Stub.make(ways)
  const server = yield* CacheServer.make(bucket.behaviour)
  return { bucket, server, ...(yield* open(server, options)) }
})

const collect = (stream: Stream.Stream<Uint8Array, CacheError>) => Effect.map(Stream.runCollect(stream), Buffer.concat)

const elapsed = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.timed(effect), ([duration]) => Duration.toMillis(duration))

describe("S3Cache and conditions", () => {
  it.live("refuses a server that does not heed them", () =>
    Effect.gen(function* () {
      for (const ignores of ["if-none-match", "if-match"] as const) {
        const error = yield* Effect.flip(start({ ignores }))
        assert.strictEqual(error.reason._tag, "Unsupported")
        assert.strictEqual(outlook(error), "never")
      }
    })
  )

  it.live("finds out before its first put when the server was away at the start", () =>
    Effect.gen(function* () {
      const server = yield* CacheServer.make(S3Stub.refuse(503, "SlowDown"))
      const { entries } = yield* open(server)
      assert.strictEqual((yield* reasonOf(entries.put(entry)))._tag, "Unreachable")
      const bucket = S3Stub.make({ ignores: "if-none-match" })
      server.behave(bucket.behaviour)
      assert.strictEqual((yield* reasonOf(entries.put(entry)))._tag, "Unsupported")
      assert.deepStrictEqual([...bucket.objects.keys()], ["/bucket/p/probe"])
    })
  )

  it.live("is built soon, and ends soon, when the server accepts and says nothing", () =>
    Effect.gen(function* () {
      const server = yield* CacheServer.make(Hostile.blackHole)
      const scope = yield* Scope.make()
      const patient = { ...deadlines, response: "20 seconds", start: "100 millis" } as const
      const built = yield* Effect.timed(Scope.provide(open(server, { deadlines: patient }), scope))
      assert.isBelow(Duration.toMillis(built[0]), 2000)
      const waiting = yield* Effect.forkChild(Effect.flip(built[1].entries.get(entry.key)))
      yield* Effect.sleep("50 millis")
      assert.isBelow(yield* elapsed(Scope.close(scope, Exit.void)), 1000)
      assert.strictEqual((yield* Fiber.join(waiting)).reason._tag, "Unreachable")
    })
  )

  it.live("asks what it has to know at its start, and one question for each put and lookup after that", () =>
    Effect.gen(function* () {
      const { entries, server } = yield* start()
      assert.strictEqual(server.seen.length, 4)
      server.seen.length = 0
      yield* entries.put(entry)
      yield* entries.get(entry.key)
      assert.deepStrictEqual(
        server.seen.map(({ method, path }) => [method, path]),
        ["PUT", "GET"].map((method) => [method, `/bucket/p/ac/${entry.key}`])
      )
    })
  )

  it.live("puts a tag of a condition in the form that the server takes", () =>
    Effect.gen(function* () {
      for (const wantsBareTags of [false, true]) {
        const { bucket, entries } = yield* start({ wantsBareTags })
        yield* entries.put(entry)
        assert.isTrue(yield* entries.evict(entry.key, { recording: entry.metadata.recording }))
        assert.isFalse(yield* entries.evict(entry.key))
        assert.deepStrictEqual(yield* entries.get(entry.key), absent)
        bucket.objects.set(`/bucket/p/ac/${entry.key}`, Buffer.from("corrupt"))
        assert.strictEqual((yield* entries.put(entry))._tag, "Inserted")
      }
    })
  )

  it.live("says so when the server takes no tag that it has given", () =>
    Effect.gen(function* () {
      const { bucket, entries, server } = yield* start()
      yield* entries.put(entry)
      server.behave((request, response, honest) =>
        request.headers["if-match"] === undefined
          ? bucket.behaviour(request, response, honest)
          : S3Stub.refuse(412, "PreconditionFailed")(request, response, honest)
      )
      assert.strictEqual((yield* reasonOf(entries.evict(entry.key)))._tag, "Unsupported")
      assert.strictEqual((yield* entries.get(entry.key))._tag, "Hit")
    })
  )

  it.live("asks again while the key is busy", () =>
    Effect.gen(function* () {
      const { bucket, entries, server } = yield* start()
      let left = 3
      server.behave((request, response, honest) =>
        left-- > 0
          ? S3Stub.refuse(409, "ConditionalRequestConflict")(request, response, honest)
          : bucket.behaviour(request, response, honest)
      )
      assert.deepStrictEqual(yield* entries.put(entry), { _tag: "Inserted" })
      assert.isBelow(left, 0)
    })
  )

  it.live("looks what became of a put when a server failed that may have been overtaken", () =>
    Effect.gen(function* () {
      const { bucket, entries, server } = yield* start()
      const failing = S3Stub.refuse(500, "UnknownError")
      server.behave((request, response, honest) => {
        if (request.method !== "PUT") return bucket.behaviour(request, response, honest)
        bucket.objects.set(request.url ?? "", overtaking)
        failing(request, response, honest)
      })
      const other = yield* start()
      yield* other.entries.put(entryOf("a", { result: "2" }))
      const overtaking = other.bucket.objects.get(`/bucket/p/ac/${entry.key}`) ?? assert.fail("no entry")
      assert.strictEqual((yield* entries.put(entry))._tag, "Conflict")
      bucket.objects.clear()
      server.seen.length = 0
      server.behave((request, response, honest) =>
        (request.method === "PUT" ? failing : bucket.behaviour)(request, response, honest)
      )
      const detail = "status 500 (UnknownError) to PUT"
      assert.deepInclude({ ...(yield* reasonOf(entries.put(entry))) }, { _tag: "Unexpected", detail })
      assert.strictEqual(server.seen.length, 5)
    })
  )

  it.live("knows its own entry when the answer to its put was lost", () =>
    Effect.gen(function* () {
      const { bucket, entries, server } = yield* start()
      let isLost = false
      // The connection is one that was kept, so that the request is sent again.
      server.behave((request, response, honest) => {
        if (request.method !== "PUT" || isLost) return bucket.behaviour(request, response, honest)
        isLost = true
        response.end = () => {
          request.socket.resetAndDestroy()
          return response
        }
        bucket.behaviour(request, response, honest)
      })
      assert.deepStrictEqual(yield* entries.put(entry), { _tag: "Inserted" })
      assert.isTrue(isLost)
      assert.strictEqual((yield* entries.put(entry))._tag, "ExistingSame")
      assert.strictEqual((yield* entries.put(entryOf("a", { result: "2" })))._tag, "Conflict")
    })
  )

  it.live("misses whatever byte of an entry is flipped, or serves the same result; a put writes over it", () =>
    Effect.gen(function* () {
      const { bucket, entries } = yield* start()
      yield* entries.put(entry)
      const path = `/bucket/p/ac/${entry.key}`
      const value = bucket.objects.get(path) ?? assert.fail("no entry")
      assert.isAbove(value.length, 200)
      for (let at = 0; at < value.length; at += 3) {
        const flipped = Buffer.from(value)
        flipped[at] = (flipped[at] ?? 0) ^ 1
        bucket.objects.set(path, flipped)
        const found = yield* entries.get(entry.key)
        if (found._tag === "Hit") assert.deepInclude(found.entry, { key: entry.key, result: entry.result })
        const outcome = yield* entries.put(entry)
        assert.strictEqual(outcome._tag, found._tag === "Hit" ? "ExistingSame" : "Inserted", `byte ${at}`)
      }
    })
  )

  it.live("writes over nothing that it cannot look at as a whole", () =>
    Effect.gen(function* () {
      const { entries, server } = yield* start()
      const large = entryOf("a", { result: JSON.stringify("x".repeat(2000)) })
      yield* entries.put(large)
      const small = yield* open(server, { maxEntryBytes: 1000 })
      const reason = { _tag: "Undecodable", detail: "it is larger than 1000 bytes" } as const
      assert.deepStrictEqual(yield* small.entries.get(large.key), miss(reason))
      assert.strictEqual((yield* reasonOf(small.entries.put(entry)))._tag, "TooLarge")
      assert.strictEqual((yield* entries.get(large.key))._tag, "Hit")
    })
  )
})

describe("S3Cache and what a server says", () => {
  for (const [status, code, reason] of [
    [301, "PermanentRedirect", { _tag: "Redirected", status: 301 }],
    [307, "TemporaryRedirect", { _tag: "Redirected", status: 307 }],
    [400, "AuthorizationHeaderMalformed", { _tag: "Invalid" }],
    [400, "ExpiredToken", { _tag: "Forbidden" }],
    [400, "EntityTooLarge", { _tag: "TooLarge" }],
    [400, "RequestTimeout", { _tag: "Unreachable" }],
    [400, "XAmzContentSHA256Mismatch", { _tag: "Unexpected" }],
    [400, undefined, { _tag: "Unexpected", status: 400 }],
    [401, undefined, { _tag: "Forbidden" }],
    [403, "AccessDenied", { _tag: "Forbidden", status: 403 }],
    [403, "SignatureDoesNotMatch", { _tag: "Forbidden" }],
    [403, undefined, { _tag: "Forbidden" }],
    [403, "QuotaExceeded", { _tag: "Unexpected" }],
    [403, "InvalidObjectState", { _tag: "Unexpected" }],
    [404, "NoSuchBucket", { _tag: "Invalid" }],
    [405, "MethodNotAllowed", { _tag: "ReadOnly" }],
    [413, undefined, { _tag: "TooLarge" }],
    [429, undefined, { _tag: "Unreachable" }],
    [501, "NotImplemented", { _tag: "Unsupported" }],
    [502, undefined, { _tag: "Unreachable" }],
    [503, "SlowDown", { _tag: "Unreachable", status: 503 }],
    [507, "you said hunter2", { _tag: "Unexpected", detail: "status 507 to PUT" }]
  ] as const) {
    it.live(`${status} ${code ?? "without a code"} to a put is ${reason._tag}`, () =>
      Effect.gen(function* () {
        const { entries, server } = yield* start()
        server.behave(S3Stub.refuse(status, code, status === 301 ? { location: "http://x.invalid" } : {}))
        assert.deepInclude({ ...(yield* reasonOf(entries.put(entry))) }, reason)
        assert.strictEqual(server.seen.length, 5)
      })
    )
  }

  it.live("404 to a lookup is a miss, and a lookup is refused by what refuses it", () =>
    Effect.gen(function* () {
      const { blobs, entries, server } = yield* start()
      assert.deepStrictEqual(yield* entries.get(entry.key), absent)
      assert.deepStrictEqual(yield* blobs.missing([blob]), [blob])
      for (const [status, code, tag] of [
        [403, "AccessDenied", "Forbidden"],
        [404, "NoSuchBucket", "Invalid"],
        [405, "MethodNotAllowed", "Unexpected"],
        [503, "SlowDown", "Unreachable"]
      ] as const) {
        server.behave(S3Stub.refuse(status, code))
        assert.strictEqual((yield* reasonOf(entries.get(entry.key)))._tag, tag)
        assert.strictEqual((yield* reasonOf(collect(blobs.get(blob))))._tag, tag)
      }
      // An answer to HEAD has no code.
      server.behave(S3Stub.refuse(403, "AccessDenied"))
      assert.strictEqual((yield* reasonOf(blobs.missing([blob])))._tag, "Forbidden")
    })
  )

  it.live("signs by the time of a server whose clock is another one, and asks once more for that", () =>
    Effect.gen(function* () {
      const { bucket, entries, server } = yield* start()
      const ahead = 3_600_000
      server.behave((request, response, honest) => {
        const signedAt = String(request.headers["x-amz-date"]).replace(/^(....)(..)(..T..)(..)/, "$1-$2-$3:$4:")
        const now = Date.now() + ahead
        return Math.abs(Date.parse(signedAt) - now) < 900_000
          ? bucket.behaviour(request, response, honest)
          : S3Stub.refuse(403, "RequestTimeTooSkewed", { date: new Date(now).toUTCString() })(request, response, honest)
      })
      server.seen.length = 0
      assert.deepStrictEqual(yield* entries.put(entry), { _tag: "Inserted" })
      assert.strictEqual(server.seen.length, 2)
      yield* entries.get(entry.key)
      assert.strictEqual(server.seen.length, 3)
      server.behave(S3Stub.refuse(403, "RequestTimeTooSkewed"))
      assert.strictEqual((yield* reasonOf(entries.get(entry.key)))._tag, "Forbidden")
    })
  )

  for (const [name, behaviour, tag] of [
    ["says nothing", Hostile.blackHole, "TimedOut"],
    ["stalls before the body (C3)", Hostile.stallAtBody, "TimedOut"],
    ["stalls in the body", Hostile.stallInBody, "TimedOut"],
    ["drips", Hostile.drip(50), "TimedOut"],
    ["resets", Hostile.reset, "Unreachable"],
    ["breaks off", Hostile.truncate, "Unreachable"]
  ] as const) {
    it.live(`a server that ${name} costs no more than the deadline`, () =>
      Effect.gen(function* () {
        const { blobs, server } = yield* start()
        server.behave(behaviour)
        const [duration, reason] = yield* Effect.timed(reasonOf(collect(blobs.get({ ...blob, size: 1e6 }))))
        assert.strictEqual(reason._tag, tag)
        assert.isBelow(Duration.toMillis(duration), 2500)
      })
    )
  }

  it.live("takes no more of a body than was asked for, and never ends with wrong content", () =>
    Effect.gen(function* () {
      const { blobs, server } = yield* start()
      for (const behaviour of [Hostile.endless, Hostile.bytes(Buffer.from("SOME CONTENT"), { etag: '"x"' })]) {
        server.behave(behaviour)
        assert.strictEqual((yield* reasonOf(collect(blobs.get(blob))))._tag, "ArtifactCorrupt")
      }
      const bucket = S3Stub.make()
      bucket.objects.set(`/bucket/p/cas/${blob.digest}`, Buffer.from("SOME CONTENT"))
      server.behave(bucket.behaviour)
      // It is there in its size, and is sent all the same by whoever has seen what it is.
      yield* blobs.put(blob, Stream.make(content))
      assert.deepStrictEqual(yield* collect(blobs.get(blob)), content)
    })
  )
})

describe("S3Cache and blobs in parts", () => {
  const large = Buffer.alloc(17 * 1024 ** 2, "abcdefg")
  const patient = { multipartBytes: 5 * 1024 ** 2, deadlines: { start: "20 seconds" } } as const

  it.live("are sent one after the other, and are there when all of them are", () =>
    Effect.gen(function* () {
      const { blobs, bucket, server } = yield* start({}, patient)
      yield* blobs.put(blobOf(large), Stream.make(large.subarray(0, 3), large.subarray(3)))
      assert.isTrue((yield* collect(blobs.get(blobOf(large)))).equals(large))
      assert.strictEqual(bucket.uploads.size, 0)
      assert.strictEqual(server.seen.filter(({ path }) => path.includes("partNumber=")).length, 3)
    })
  )

  it.live("are taken away when content or server fail, and when nobody waits any more", () =>
    Effect.gen(function* () {
      const { blobs, bucket, server } = yield* start({}, patient)
      const wrong = Buffer.alloc(large.length)
      assert.strictEqual((yield* reasonOf(blobs.put(blobOf(large), Stream.make(wrong))))._tag, "ArtifactCorrupt")
      const broken = Stream.concat(Stream.make(large.subarray(0, 9 * 1024 ** 2)), Stream.fail("broken"))
      assert.strictEqual(yield* Effect.flip(blobs.put(blobOf(large), broken)), "broken")
      const silent = Stream.concat(Stream.make(large.subarray(0, 9 * 1024 ** 2), Buffer.from("b")), Stream.never)
      const waiting = yield* Effect.forkChild(blobs.put(blobOf(large), silent))
      while (![...bucket.uploads.values()].some(({ size }) => size > 0)) yield* Effect.sleep("10 millis")
      yield* Fiber.interrupt(waiting)
      // The answer to the end of an upload begins before it is known what becomes of it.
      server.behave((request, response, honest) =>
        request.method === "POST" && request.url?.includes("uploadId=") === true
          ? S3Stub.refuse(200, "SlowDown")(request, response, honest)
          : bucket.behaviour(request, response, honest)
      )
      assert.strictEqual((yield* reasonOf(blobs.put(blobOf(large), Stream.make(large))))._tag, "Unreachable")
      assert.strictEqual(bucket.uploads.size, 0)
      assert.deepStrictEqual([...bucket.objects.keys()], ["/bucket/p/probe"])
    })
  )
})

/** Everything that is said in the course of a call: its exit, what is logged, and its spans. */
const overheard = <A>(call: Effect.Effect<A, CacheError>) =>
  Effect.gen(function* () {
    const said: Array<unknown> = []
    const span: Tracer.Tracer["span"] = (options) => {
      const span = new Tracer.NativeSpan(options)
      said.push(span)
      return span
    }
    const exit = yield* Effect.exit(call).pipe(
      Effect.provideService(Tracer.Tracer, Tracer.make({ span })),
      Effect.provide(Logger.layer([Logger.make((entry) => void said.push(entry.message))])),
      Effect.provideService(MinimumLogLevel, "All")
    )
    if (Exit.isFailure(exit)) said.push(Cause.pretty(exit.cause), JSON.stringify(exit))
    return said.map((thing) => inspect(thing, { depth: 9 })).join("\n")
  })

describe("S3Cache and credentials", () => {
  it.effect("signs as the documentation of S3 has it", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(Date.UTC(2013, 4, 24))
      const url = new URL("https://examplebucket.s3.amazonaws.com/test.txt")
      const signer = yield* Signer.make(
        { tier: "s3", region: "us-east-1", base: url },
        {
          accessKeyId: "AKIAIOSFODNN7EXAMPLE",
          secretAccessKey: Redacted.make("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
        },
        1000
      )
      const payload = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
      const signed = yield* signer.sign({ method: "GET", url, query: {}, headers: { range: "bytes=0-9" }, payload })
      assert.strictEqual(
        signed["authorization"] && Redacted.value(signed["authorization"]),
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, " +
          "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, " +
          "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
      )
    })
  )

  it.live("keeps them out of errors, logs and spans", () =>
    Effect.gen(function* () {
      const sessionToken = Redacted.make("t0k3n-of-a-session")
      const { blobs, bucket, entries, server } = yield* start({}, { credentials: { ...credentials, sessionToken } })
      for (const behaviour of [
        bucket.behaviour,
        S3Stub.refuse(403, "SignatureDoesNotMatch"),
        Hostile.blackHole,
        Hostile.reset,
        Hostile.redirect("http://x.invalid")
      ]) {
        server.behave(behaviour)
        for (const call of [
          entries.get(entry.key),
          entries.put(entry),
          blobs.put(blob, Stream.make(content)),
          collect(blobs.get(blob))
        ]) {
          const said = yield* overheard(call)
          assert.include(said, "S3Cache.")
          assert.notMatch(said, /s3cr3t|t0k3n|AWS4-HMAC|Signature=/)
        }
      }
      assert.isTrue(server.seen.every(({ headers }) => headers["x-amz-security-token"] === "t0k3n-of-a-session"))
    })
  )

  it.live("keeps them out of the journal of a machine whose publication is refused (C4, C7)", () =>
    Effect.gen(function* () {
      const folder = yield* Effect.acquireRelease(
        Effect.promise(() => mkdtemp(join(tmpdir(), "strata-s3-"))),
        (folder) => Effect.promise(() => rm(folder, { recursive: true, force: true }))
      )
      const server = yield* CacheServer.make(S3Stub.refuse(403, "SignatureDoesNotMatch"))
      const options = { bucket: "bucket", endpoint: server.url, credentials, deadlines }
      const journal = yield* Effect.gen(function* () {
        yield* (yield* StepCache).put(entry)
        const { readAll } = yield* Journal
        for (let i = 0; i < 1000; i++) {
          const text = JSON.stringify(yield* readAll())
          if (text.includes("cache-publication-refused")) return text
          yield* Effect.sleep("10 millis")
        }
        return assert.fail("nothing was refused")
      }).pipe(
        Effect.provide(
          machine({ steps: S3Cache.stepCache(options), artifacts: S3Cache.artifactStore(options) }, folder)
        )
      )
      assert.include(journal, "refuses access")
      assert.notMatch(journal, /s3cr3t|AKID|AWS4-HMAC|Signature=/)
      assert.isAtMost(server.seen.length, 8)
    })
  )

  it.live.each([301, 302, 307, 308])("sends nothing to the other origin of a %i (C12)", (status) =>
    Effect.gen(function* () {
      const other = yield* CacheServer.make()
      const { blobs, entries, server } = yield* start()
      server.behave(Hostile.redirect(other.url, status))
      for (const call of [
        entries.get(entry.key),
        entries.put(entry),
        blobs.missing([blob]),
        collect(blobs.get(blob))
      ]) {
        assert.deepInclude({ ...(yield* reasonOf<unknown>(call)) }, { _tag: "Redirected", status })
      }
      assert.strictEqual(other.connections(), 0)
    })
  )

  it.live("come from where the tools of AWS look for them, or are waited for", () =>
    Effect.gen(function* () {
      yield* Effect.acquireRelease(
        Effect.sync(() => {
          vi.stubEnv("AWS_ACCESS_KEY_ID", "AKIDENV")
          vi.stubEnv("AWS_SECRET_ACCESS_KEY", secret)
          for (const name of ["AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"]) vi.stubEnv(name, "/nonexistent")
          vi.stubEnv("AWS_EC2_METADATA_DISABLED", "true")
        }),
        () => Effect.sync(() => vi.unstubAllEnvs())
      )
      const { entries, server } = yield* start({}, { credentials: undefined })
      yield* entries.put(entry)
      assert.match(String(server.seen.at(-1)?.headers["authorization"]), /Credential=AKIDENV\//)
      vi.stubEnv("AWS_ACCESS_KEY_ID", undefined)
      const without = yield* open(server, { credentials: undefined, deadlines: { ...deadlines, connect: "5 seconds" } })
      const reason = yield* reasonOf(without.entries.get(entry.key))
      assert.deepInclude(reason, { _tag: "Unreachable", detail: "no credentials: CredentialsProviderError" })
    })
  )

  it.live("are refused when no header can have them", () =>
    Effect.gen(function* () {
      const server = yield* CacheServer.make()
      const { entries } = yield* open(server, { credentials: { ...credentials, accessKeyId: "a\r\nb: c" } })
      assert.strictEqual((yield* reasonOf(entries.get(entry.key)))._tag, "Invalid")
      assert.strictEqual(server.connections(), 0)
    })
  )
})

describe("the options of S3Cache", () => {
  const usable = { bucket: "bucket", name: "s3", credentials }

  for (const options of [
    { bucket: "" },
    { bucket: "a/b" },
    { bucket: "a..b" },
    { region: "eu west" },
    { region: "x/../y" },
    { endpoint: "no url" },
    { endpoint: "ftp://host" },
    { endpoint: "http://host/path" },
    { endpoint: "http://host/?a=hunter2" },
    { endpoint: "http://user:hunter2@host" },
    { prefix: "a/../b" },
    { prefix: "\ud800" },
    { prefix: "x".repeat(901) },
    { multipartBytes: 1000 }
  ]) {
    it.effect(`refuse ${JSON.stringify(options).slice(0, 60)}`, () =>
      Effect.gen(function* () {
        for (const make of [S3Cache.stepCache, S3Cache.artifactStore]) {
          const made: Effect.Effect<unknown, CacheError, Scope.Scope> = make({ ...usable, ...options })
          const error = yield* Effect.flip(made)
          assert.strictEqual(error.reason._tag, "Invalid")
          assert.notInclude(JSON.stringify(error), "hunter2")
        }
      })
    )
  }

  it.effect("name the tier by bucket, prefix and endpoint", () =>
    Effect.gen(function* () {
      const nameOf = (options: Partial<S3Cache.S3CacheOptions>) =>
        Effect.map(S3Cache.artifactStore({ bucket: "bucket", credentials, ...options }), ({ name }) => name)
      assert.strictEqual(yield* nameOf({}), "s3://bucket")
      assert.strictEqual(yield* nameOf({ prefix: "/a/b/" }), "s3://bucket/a/b")
      assert.strictEqual(
        yield* nameOf({ prefix: "a", endpoint: "http://127.0.0.1:9000/" }),
        "s3://bucket/a?endpoint=http://127.0.0.1:9000"
      )
      assert.strictEqual(yield* nameOf({ name: "s3" }), "s3")
    })
  )

  it.effect("come from a URL, whose secrets are in it no more", () =>
    Effect.gen(function* () {
      const from = (url: string) => S3Cache.fromUrl(Redacted.make(url))
      const full = yield* from(
        "s3://AK%2FID:p%3Ass@bucket/a%20b/c/?region=eu-west-1&endpoint=http://127.0.0.1:9000&pathStyle=false"
      )
      const { credentials, ...rest } = full
      assert.deepStrictEqual(rest, {
        bucket: "bucket",
        prefix: "a b/c",
        region: "eu-west-1",
        endpoint: "http://127.0.0.1:9000",
        pathStyle: false
      })
      assert.strictEqual(credentials?.accessKeyId, "AK/ID")
      assert.strictEqual(credentials && Redacted.value(credentials.secretAccessKey), "p:ss")
      assert.deepStrictEqual(yield* from("s3://my.bucket-1"), { bucket: "my.bucket-1" })
      for (const url of [
        "nonsense hunter2",
        "https://bucket/hunter2",
        "s3:///hunter2",
        "s3://:hunter2@bucket",
        "s3://hunter2@bucket",
        "s3://bucket/?token=hunter2",
        "s3://bucket/?pathStyle=hunter2",
        "s3://a:%E0%A4hunter2@bucket",
        "s3://bucket/#hunter2"
      ]) {
        const error = yield* Effect.flip(from(url))
        assert.strictEqual(error.reason._tag, "Invalid")
        assert.notInclude(JSON.stringify(error), "hunter2")
      }
    })
  )

  it.effect("place the bucket in the host, or in the path", () =>
    Effect.gen(function* () {
      const Target = yield* Effect.promise(() => import("../src/internal/s3/target.ts"))
      const hrefOf = (place: Partial<Parameters<typeof Target.make>[1]>) =>
        Effect.map(
          Target.make("s3", {
            bucket: "bucket",
            prefix: "",
            region: "eu-west-1",
            endpoint: undefined,
            pathStyle: undefined,
            ...place
          }),
          ({ base }) => base.href
        )
      assert.strictEqual(yield* hrefOf({}), "https://bucket.s3.eu-west-1.amazonaws.com/")
      assert.strictEqual(yield* hrefOf({ region: "cn-north-1" }), "https://bucket.s3.cn-north-1.amazonaws.com.cn/")
      assert.strictEqual(yield* hrefOf({ bucket: "a.b" }), "https://s3.eu-west-1.amazonaws.com/a.b/")
      assert.strictEqual(
        yield* hrefOf({ endpoint: "http://h:1", prefix: "ä b/(c)" }),
        "http://h:1/bucket/%C3%A4%20b/%28c%29/"
      )
      assert.strictEqual(yield* hrefOf({ endpoint: "https://h", pathStyle: false }), "https://bucket.h/")
    })
  )
})
