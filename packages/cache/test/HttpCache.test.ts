import { afterAll, assert, describe, it } from "@effect/vitest"
import { type CacheError, outlook } from "@strata/cache/CacheError"
import { miss, type MissReason } from "@strata/cache/Lookup"
import * as HttpCache from "@strata/cache/HttpCache"
import * as CacheServer from "@strata/cache/testing/cacheServer"
import * as Hostile from "@strata/cache/testing/hostile"
import * as TierGuard from "@strata/cache/TierGuard"
import { sha256 } from "@strata/durable/Digest"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import { MinimumLogLevel } from "effect/References"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Tracer from "effect/Tracer"
import { Buffer } from "node:buffer"
import { createServer, type Server, type Socket } from "node:net"
import { inspect } from "node:util"
import { blobOf, entryOf } from "./support/http.ts"

const deadlines: HttpCache.Deadlines = { connect: 300, response: 300, idle: 300, body: 600 }

const open = Effect.fnUntraced(function* (
  server: { readonly url: string },
  options: Partial<HttpCache.HttpCacheOptions> = {}
) {
  const all = { url: server.url, name: "http", deadlines, ...options }
  return { entries: yield* HttpCache.stepCache(all), blobs: yield* HttpCache.artifactStore(all) }
})

const content = Buffer.from("some content")
const blob = blobOf(content)

const collect = (stream: Stream.Stream<Uint8Array, CacheError>) => Effect.map(Stream.runCollect(stream), Buffer.concat)

/** The tag of the reason by which an effect fails. */
const reasonOf = <A>(effect: Effect.Effect<A, CacheError>) => Effect.map(Effect.flip(effect), (error) => error.reason)

const elapsed = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const before = yield* Clock.currentTimeMillis
    yield* effect
    return (yield* Clock.currentTimeMillis) - before
  })

/** A port where something else than a server of HTTP listens. */
const listen = (onConnection: (socket: Socket) => void): Effect.Effect<number, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback<{ readonly server: Server; readonly sockets: Array<Socket>; readonly port: number }>((resume) => {
      const sockets: Array<Socket> = []
      const server = createServer((socket) => {
        sockets.push(socket.on("error", () => {}))
        onConnection(socket)
      })
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        if (typeof address !== "object" || address === null) return assert.fail("it listens on a port")
        resume(Effect.succeed({ server, sockets, port: address.port }))
      })
    }),
    ({ server, sockets }) =>
      Effect.callback((resume) => {
        server.close(() => resume(Effect.void))
        for (const socket of sockets) socket.destroy()
      })
  ).pipe(Effect.map(({ port }) => port))

const warnings: Array<Error> = []

process.on("warning", (warning) => warnings.push(warning))

afterAll(() => assert.deepStrictEqual(warnings, [], "Node warns of what is left behind"))

describe("HttpCache on a strict server", () => {
  it.live("publishes an entry with its blobs, and finds it again", () =>
    Effect.gen(function* () {
      const server = yield* CacheServer.make()
      const { blobs, entries } = yield* open(server)
      const entry = entryOf("a", { artifacts: [{ name: "out", ...blob }] })
      assert.deepStrictEqual(yield* entries.get(entry.key), miss({ _tag: "Absent" }))
      yield* blobs.put(blob, Stream.make(content))
      assert.deepStrictEqual(yield* entries.put(entry), { _tag: "Unarbitrated" })
      assert.deepStrictEqual(yield* entries.get(entry.key), { _tag: "Hit", entry, tier: "http" })
      assert.deepStrictEqual(yield* collect(blobs.get(blob)), content)
      server.stored.delete(`/cas/${blob.digest}`)
      // The server itself checks that an entry is complete.
      assert.deepStrictEqual(yield* entries.get(entry.key), miss({ _tag: "Absent" }))
    })
  )

  it.live("keeps a path prefix, a signature and large results", () =>
    Effect.gen(function* () {
      const server = yield* CacheServer.make()
      const { entries } = yield* open(server, { url: `${server.url}/team/cache` })
      const entry = {
        ...entryOf("a", { result: JSON.stringify("x".repeat(100_000)) }),
        signature: { keyId: "k1", value: "c2ln" }
      }
      yield* entries.put(entry)
      assert.deepStrictEqual(
        [...server.stored.keys()],
        [`/team/cache/cas/${entry.digest}`, `/team/cache/ac/${entry.key}`]
      )
      assert.deepStrictEqual(yield* entries.get(entry.key), { _tag: "Hit", entry, tier: "http" })
    })
  )

  it.live("asks nothing for a small result but the entry, and keeps its connection", () =>
    Effect.gen(function* () {
      const server = yield* CacheServer.make()
      const { entries } = yield* open(server)
      const entry = entryOf("a")
      yield* entries.put(entry)
      server.seen.length = 0
      yield* entries.get(entry.key)
      yield* entries.get(entryOf("b").key)
      yield* entries.get(entry.key)
      assert.deepStrictEqual(
        server.seen.map(({ method, path }) => `${method} ${path.slice(0, 3)}`),
        ["GET /ac", "GET /ac", "GET /ac"]
      )
      assert.strictEqual(server.connections(), 1)
    })
  )

  it.live("does not ask for content that is there already", () =>
    Effect.gen(function* () {
      const server = yield* CacheServer.make()
      const { blobs } = yield* open(server)
      assert.deepStrictEqual(yield* blobs.add(Stream.make(content)), blob)
      let asked = false
      yield* blobs.put(
        blob,
        Stream.suspend(() => {
          asked = true
          return Stream.make(content)
        })
      )
      assert.isFalse(asked)
    })
  )

  it.live("sends no content that is not the blob's as a whole", () =>
    Effect.gen(function* () {
      const server = yield* CacheServer.make()
      const { blobs } = yield* open(server)
      const big = blobOf(Buffer.alloc(3 * 1024 ** 2, 1))
      for (const [wanted, sent] of [
        [blob, Stream.make(Buffer.from("some CONTENT"))],
        [blob, Stream.make(Buffer.from("some"))],
        [blob, Stream.make(content, content)],
        [blob, Stream.empty],
        [big, Stream.make(Buffer.alloc(2 * 1024 ** 2, 1), Buffer.alloc(1024 ** 2, 2))]
      ] as const) {
        assert.strictEqual((yield* reasonOf(blobs.put(wanted, sent)))._tag, "ArtifactCorrupt")
      }
      assert.deepStrictEqual([...server.stored.keys()], [])
    })
  )

  it.live("fails a put by the error of its content", () =>
    Effect.gen(function* () {
      const server = yield* CacheServer.make()
      const { blobs } = yield* open(server)
      const sent = Stream.concat(Stream.make(content.subarray(0, 4)), Stream.fail("the disk is gone"))
      assert.strictEqual(yield* Effect.flip(blobs.put(blob, sent)), "the disk is gone")
      assert.deepStrictEqual([...server.stored.keys()], [])
    })
  )

  it.live("repeats a request over a connection that was closed while it was kept", () =>
    Effect.gen(function* () {
      const server = yield* CacheServer.make()
      const { blobs } = yield* open(server)
      yield* blobs.missing([blob])
      // The next request on a kept connection is cut, as if it had crossed the end of the connection.
      const first = server.seen.length
      server.behave((request, response, honest) =>
        server.seen.length === first + 1 ? Hostile.reset(request, response, honest) : honest()
      )
      assert.deepStrictEqual(yield* blobs.missing([blob]), [blob])
      assert.strictEqual(server.connections(), 2)
    })
  )

  it.live("takes no entry that contradicts itself", () =>
    Effect.gen(function* () {
      const server = yield* CacheServer.make()
      const { entries } = yield* open(server)
      const entry = entryOf("a")
      const spaced = '{ "a": 1 }'
      for (const wrong of [
        { ...entry, digest: sha256("other") },
        { ...entry, metadata: { ...entry.metadata, recordedAt: 1.5 } },
        { ...entry, result: spaced, digest: sha256(spaced) },
        {
          ...entry,
          artifacts: [
            { name: "b", ...blob },
            { name: "a", ...blob }
          ]
        },
        {
          ...entry,
          artifacts: [
            { name: "a", ...blob },
            { name: "a", ...blob }
          ]
        },
        { ...entry, artifacts: [{ name: "\ud800", ...blob }] }
      ]) {
        assert.strictEqual((yield* reasonOf(entries.put(wrong)))._tag, "Invalid")
      }
      assert.strictEqual(server.seen.length, 0)
    })
  )

  it.live("writes nothing when it is read-only", () =>
    Effect.gen(function* () {
      const server = yield* CacheServer.make()
      const { blobs, entries } = yield* open(server, { readOnly: true })
      assert.strictEqual((yield* reasonOf(entries.put(entryOf("a"))))._tag, "ReadOnly")
      assert.strictEqual((yield* reasonOf(blobs.put(blob, Stream.make(content))))._tag, "ReadOnly")
      assert.strictEqual((yield* reasonOf(blobs.add(Stream.make(content))))._tag, "ReadOnly")
      assert.strictEqual(server.seen.length, 0)
      assert.deepStrictEqual(yield* blobs.missing([blob]), [blob])
    })
  )

  it.live("has no operations that a server of the protocol has not", () =>
    Effect.gen(function* () {
      const server = yield* CacheServer.make()
      const { blobs, entries } = yield* open(server)
      const { key, metadata } = entryOf("a")
      const quarantine = entries.quarantine(key, { recording: metadata.recording, reason: { _tag: "DigestMismatch" } })
      for (const call of [entries.evict(key), quarantine, blobs.remove(blob.digest), Stream.runDrain(blobs.list)]) {
        assert.strictEqual((yield* reasonOf<unknown>(call))._tag, "Unsupported")
      }
    })
  )

  it.live("misses another recording than the one that was asked for", () =>
    Effect.gen(function* () {
      const server = yield* CacheServer.make()
      const { entries } = yield* open(server)
      const entry = entryOf("a")
      yield* entries.put(entry)
      const get = (recording: typeof entry.metadata.recording) => entries.get(entry.key, { recording })
      assert.strictEqual((yield* get(entry.metadata.recording))._tag, "Hit")
      assert.deepStrictEqual(yield* get(entryOf("b").metadata.recording), miss({ _tag: "Fenced" }))
    })
  )
})

describe("HttpCache on a silent server", () => {
  for (const [name, behaviour, phase, afterMs, more] of [
    ["accepts and never answers", Hostile.blackHole, "response", 300, {}],
    ["stalls at byte 0 of the body", Hostile.stallAtBody, "body", 300, {}],
    ["stalls in the body", Hostile.stallInBody, "body", 300, {}],
    ["drips", Hostile.drip(20), "body", 300, { body: 60_000 }],
    ["is slower than a body may be", Hostile.drip(20), "total", 600, { idle: 5000, minBytesPerSecond: 1e6 }]
  ] as const) {
    it.live(`a server that ${name} costs no more than the deadline`, () =>
      Effect.gen(function* () {
        const server = yield* CacheServer.make(behaviour)
        const { blobs, entries } = yield* open(server, { deadlines: { ...deadlines, ...more } })
        const large = { digest: blob.digest, size: 1000 }
        for (const call of [entries.get(entryOf("a").key), collect(blobs.get(large))]) {
          const ms = yield* elapsed(
            Effect.tap(reasonOf<unknown>(call), (reason) =>
              Effect.sync(() => {
                assert.strictEqual(reason._tag, "TimedOut")
                assert.deepInclude({ ...reason }, { phase })
              })
            )
          )
          assert.isAtLeast(ms, afterMs - 5)
          // Far below the defaults, and above what a busy machine adds.
          assert.isAtMost(ms, afterMs + 3000)
        }
      })
    )
  }

  it.live("a server that takes nothing of a body costs no more than the deadline", () =>
    Effect.gen(function* () {
      const server = yield* CacheServer.make((request, response, honest) =>
        request.method === "PUT" ? Hostile.stallUpload(request, response, honest) : honest()
      )
      const { blobs } = yield* open(server)
      const big = Buffer.alloc(64 * 1024 ** 2)
      const chunks = Array.from({ length: 64 }, (_, index) => big.subarray(index * 1024 ** 2, (index + 1) * 1024 ** 2))
      const reason = yield* reasonOf(blobs.put(blobOf(big), Stream.fromIterable(chunks)))
      assert.deepInclude({ ...reason }, { phase: "body" })
    })
  )

  it.live("a server that takes a byte at a time costs no more than the deadline", () =>
    Effect.gen(function* () {
      const server = yield* CacheServer.make((request, response, honest) => {
        if (request.method !== "PUT") return honest()
        if (request.headers.expect !== undefined) response.writeContinue()
        const timer = setInterval(() => request.read(1), 10)
        request.on("error", () => {}).on("close", () => clearInterval(timer))
      })
      const { blobs, entries } = yield* open(server, { deadlines: { ...deadlines, body: 60_000 } })
      const big = Buffer.alloc(64 * 1024 ** 2)
      const begin = yield* Clock.currentTimeMillis
      assert.deepInclude({ ...(yield* reasonOf(blobs.put(blobOf(big), Stream.make(big)))) }, { phase: "body" })
      // What is small has left at once, and waits for its answer.
      assert.deepInclude({ ...(yield* reasonOf(entries.put(entryOf("a")))) }, { phase: "response" })
      assert.isAtMost((yield* Clock.currentTimeMillis) - begin, 5000)
    })
  )

  it.live("a server that drips is left alone", () =>
    Effect.gen(function* () {
      const server = yield* CacheServer.make(Hostile.drip(20))
      const { entries } = yield* open(server, { deadlines: { ...deadlines, body: 60_000 } })
      const lookup = entries.get(entryOf("a").key)
      const guard = yield* TierGuard.make("http", lookup, { failures: 2, openBase: "1 minute" })
      const tags: Array<string> = []
      for (let i = 0; i < 3; i++) tags.push((yield* reasonOf(guard.run(lookup)))._tag)
      assert.deepStrictEqual(tags, ["TimedOut", "TimedOut", "BreakerOpen"])
    })
  )

  it.live("what came fast does not pay for a drip", () =>
    Effect.gen(function* () {
      const server = yield* CacheServer.make((request, response, honest) => {
        Hostile.drip(20)(request, response, honest)
        response.write(Buffer.alloc(1024 ** 2))
      })
      const { blobs } = yield* open(server, { deadlines: { ...deadlines, body: 60_000 } })
      const ms = yield* elapsed(
        Effect.tap(reasonOf(collect(blobs.get({ digest: blob.digest, size: 2 * 1024 ** 2 }))), (reason) =>
          Effect.sync(() => assert.deepInclude({ ...reason }, { phase: "body" }))
        )
      )
      assert.isAtMost(ms, 3300)
    })
  )

  it.live("an address that does not answer costs no more than the deadline", () =>
    Effect.gen(function* () {
      // TEST-NET-1, RFC 5737: nothing is there; a machine without a route says so at once.
      const entries = yield* HttpCache.stepCache({ url: "http://192.0.2.1:81", deadlines })
      const ms = yield* elapsed(
        Effect.tap(reasonOf(entries.get(entryOf("a").key)), (reason) =>
          Effect.sync(() => assert.include(["TimedOut", "Unreachable"], reason._tag))
        )
      )
      assert.isAtMost(ms, 3300)
    })
  )

  it.live("a server that never agrees on TLS costs no more than the deadline", () =>
    Effect.gen(function* () {
      const port = yield* listen(() => {})
      const entries = yield* HttpCache.stepCache({ url: `https://127.0.0.1:${port}`, deadlines })
      const reason = yield* reasonOf(entries.get(entryOf("a").key))
      assert.deepInclude({ ...reason }, { phase: "connect", afterMs: 300 })
    })
  )

  it.live("an interrupted request leaves no connection behind", () =>
    Effect.gen(function* () {
      const arrived = yield* Deferred.make<void>()
      const closed = yield* Deferred.make<void>()
      const server = yield* CacheServer.make((request) => {
        Deferred.doneUnsafe(arrived, Effect.void)
        request.socket.on("close", () => Deferred.doneUnsafe(closed, Effect.void))
      })
      const { entries } = yield* open(server, { deadlines: { ...deadlines, response: 60_000 } })
      const fiber = yield* Effect.forkChild(entries.get(entryOf("a").key))
      yield* Deferred.await(arrived)
      yield* Fiber.interrupt(fiber)
      yield* Deferred.await(closed)
    })
  )
})

describe("HttpCache on a slow server", () => {
  const patient = { ...deadlines, idle: 1000, body: 60_000 }

  it.live("takes all that comes, when it is slow but no drip", () =>
    Effect.gen(function* () {
      const slow = Buffer.alloc(8000, "slow")
      const server = yield* CacheServer.make((_request, response) => {
        response.writeHead(200, { "content-length": slow.length })
        let sent = 0
        const timer = setInterval(() => {
          response.write(slow.subarray(sent, (sent += 100)))
          if (sent >= slow.length) clearInterval(timer)
        }, 20)
        response.on("close", () => clearInterval(timer))
      })
      const { blobs } = yield* open(server, { deadlines: patient })
      let read = Buffer.alloc(0)
      const ms = yield* elapsed(Effect.map(collect(blobs.get(blobOf(slow))), (bytes) => (read = bytes)))
      assert.isAbove(ms, patient.idle)
      assert.deepStrictEqual(read, slow)
    })
  )

  it.live("sends all of a large chunk, when it is slow but no drip", () =>
    Effect.gen(function* () {
      const server = yield* CacheServer.make((request, response, honest) => {
        if (request.method !== "PUT") return honest()
        if (request.headers.expect !== undefined) response.writeContinue()
        request.on("data", (chunk: Uint8Array) => {
          request.pause()
          setTimeout(() => request.resume(), chunk.length / 8192)
        })
        request.on("error", () => {}).on("end", () => response.writeHead(200, { "content-length": 0 }).end())
      })
      const { blobs } = yield* open(server, { deadlines: { ...patient, response: 5000 } })
      const large = Buffer.alloc(24 * 1024 ** 2)
      const sent = yield* elapsed(blobs.put(blobOf(large), Stream.make(large)))
      assert.isAbove(sent, 2 * patient.idle)
    })
  )

  it.live("does not blame the server for the time that its content is used", () =>
    Effect.gen(function* () {
      const chunks = Array.from({ length: 4 }, (_, index) => Buffer.alloc(50, String(index)))
      const all = Buffer.concat(chunks)
      const server = yield* CacheServer.make((_request, response) => {
        response.writeHead(200, { "content-length": all.length })
        const rest = [...chunks]
        const timer = setInterval(() => (rest.length === 0 ? clearInterval(timer) : response.write(rest.shift())), 100)
        response.on("close", () => clearInterval(timer))
      })
      const { blobs } = yield* open(server, { deadlines: patient })
      const used = yield* Stream.runFold(
        Stream.mapEffect(blobs.get(blobOf(all)), (chunk) => Effect.as(Effect.sleep(600), chunk.length)),
        () => 0,
        (sum, size) => sum + size
      )
      assert.strictEqual(used, all.length)
    })
  )
})

describe("HttpCache on a server that fails", () => {
  for (const [name, behaviour] of [
    ["resets", Hostile.reset],
    ["closes in the middle of a body", Hostile.truncate]
  ] as const) {
    it.live(`cannot reach a server that ${name}`, () =>
      Effect.gen(function* () {
        const server = yield* CacheServer.make(behaviour)
        const { blobs, entries } = yield* open(server)
        const large = { digest: blob.digest, size: 1000 }
        for (const call of [entries.get(entryOf("a").key), collect(blobs.get(large))]) {
          assert.strictEqual((yield* reasonOf<unknown>(call))._tag, "Unreachable")
        }
      })
    )
  }

  it.live("cannot reach a port where nobody listens", () =>
    Effect.gen(function* () {
      const server = yield* Effect.scoped(CacheServer.make())
      const { entries } = yield* open(server)
      const reason = yield* reasonOf(entries.get(entryOf("a").key))
      assert.deepInclude({ ...reason }, { detail: "ECONNREFUSED" })
    })
  )

  it.live("does not take something else than HTTP for a tier that is away", () =>
    Effect.gen(function* () {
      const port = yield* listen((socket) => socket.end("220 mail.example.org ready\r\n"))
      const { entries } = yield* open({ url: `http://127.0.0.1:${port}` })
      assert.strictEqual((yield* reasonOf(entries.get(entryOf("a").key)))._tag, "Unexpected")
    })
  )

  it.live("sends without asking what a server does not want to be asked about", () =>
    Effect.gen(function* () {
      const server = yield* CacheServer.make((request, response, honest) =>
        request.headers.expect === undefined ? honest() : Hostile.status(417)(request, response, honest)
      )
      const { blobs } = yield* open(server)
      const big = Buffer.alloc(2 * 1024 ** 2, 7)
      yield* blobs.put(blobOf(big), Stream.make(big))
      assert.deepStrictEqual(yield* collect(blobs.get(blobOf(big))), big)
    })
  )

  it.live.each([
    [401, "Forbidden", "never"],
    [403, "Forbidden", "never"],
    [405, "ReadOnly", "never"],
    [409, "Unexpected", "later"],
    [412, "Unexpected", "later"],
    [429, "Unexpected", "later"],
    [500, "Unexpected", "later"],
    [502, "Unreachable", "away"],
    [503, "Unreachable", "away"],
    [504, "Unreachable", "away"],
    [507, "Unexpected", "later"]
  ] as const)("reads %i to a put as %s", ([status, tag, expected]) =>
    Effect.gen(function* () {
      const server = yield* CacheServer.make(Hostile.status(status, { method: "PUT" }))
      const { blobs, entries } = yield* open(server)
      for (const call of [entries.put(entryOf("a")), blobs.put(blob, Stream.make(content))]) {
        const error = yield* Effect.flip<unknown, CacheError, never>(call)
        assert.strictEqual(error.reason._tag, tag)
        assert.strictEqual(outlook(error), expected)
      }
      // One attempt each, and no entry without its result.
      assert.deepStrictEqual(
        server.seen.map(({ method, path }) => `${method} ${path.slice(0, 4)}`),
        ["PUT /cas", "HEAD /cas", "PUT /cas"]
      )
    })
  )

  it.live.each([200, 201, 204])("takes %i for a put that is done", (status) =>
    Effect.gen(function* () {
      const server = yield* CacheServer.make(Hostile.status(status, { method: "PUT", body: "" }))
      const { blobs, entries } = yield* open(server)
      assert.deepStrictEqual(yield* entries.put(entryOf("a")), { _tag: "Unarbitrated" })
      yield* blobs.put(blob, Stream.make(content))
    })
  )

  it.live.each([
    [413, 1000],
    [413, 4 * 1024 ** 2],
    [400, 1000],
    [400, 4 * 1024 ** 2]
  ] as const)("reads %i to %i bytes as too large, once", ([status, size]) =>
    Effect.gen(function* () {
      const server = yield* CacheServer.make(Hostile.refuseLarger(999, status))
      const { blobs } = yield* open(server)
      const big = Buffer.alloc(size, 7)
      const error = yield* Effect.flip(blobs.put(blobOf(big), Stream.make(big)))
      assert.deepInclude({ ...error.reason }, { size })
      assert.strictEqual(error.reason._tag, "TooLarge")
      assert.strictEqual(outlook(error), "never")
      assert.strictEqual(server.seen.filter(({ method }) => method === "PUT").length, 1)
    })
  )

  it.live("sends nothing that is above its own limits, and names them", () =>
    Effect.gen(function* () {
      const server = yield* CacheServer.make()
      const { blobs, entries } = yield* open(server, { maxBlobBytes: 5, maxEntryBytes: 500 })
      const large = entryOf("a", { result: JSON.stringify("x".repeat(600)) })
      for (const [call, size, limit] of [
        [blobs.put(blob, Stream.make(content)), blob.size, 5],
        [collect(blobs.get(blob)), blob.size, 5],
        [blobs.add(Stream.make(content)), blob.size, 5],
        [entries.put({ ...large }), undefined, 500]
      ] as const) {
        const reason = yield* reasonOf<unknown>(call)
        assert.strictEqual(reason._tag, "TooLarge")
        assert.deepInclude({ ...reason }, size === undefined ? { limit } : { size, limit })
      }
      assert.strictEqual(server.seen.length, 0)
    })
  )
})

describe("HttpCache on a server that lies", () => {
  const asEntry = (name: string, behaviour: CacheServer.Behaviour, reason: { readonly _tag: MissReason["_tag"] }) =>
    it.live(`serves no entry when the server gives ${name}`, () =>
      Effect.gen(function* () {
        const server = yield* CacheServer.make(behaviour)
        const { entries } = yield* open(server, { maxEntryBytes: 2000 })
        const found = yield* entries.get(entryOf("a").key)
        assert.strictEqual(found._tag, "Miss")
        if (found._tag === "Miss") assert.deepInclude(found.reason, reason)
      })
    )
  const undecodable = { _tag: "Undecodable" } as const
  asEntry("something else", Hostile.bytes(Buffer.from("<html>welcome</html>")), undecodable)
  asEntry("nothing", Hostile.bytes(Buffer.alloc(0)), undecodable)
  asEntry("too much", Hostile.bytes(Buffer.alloc(2001)), undecodable)
  asEntry("a body without an end", Hostile.endless, undecodable)
  asEntry("an encoding that was not asked for", Hostile.bytes(content, { "content-encoding": "gzip" }), undecodable)

  it.live("serves no entry of another key, nor one with another result", () =>
    Effect.gen(function* () {
      const server = yield* CacheServer.make()
      const { entries } = yield* open(server, { inlineBytes: 0 })
      const [a, b] = [entryOf("a"), entryOf("b")]
      yield* entries.put(a)
      yield* entries.put(b)
      const message = server.stored.get(`/ac/${a.key}`) ?? assert.fail("it was put")
      server.stored.set(`/ac/${b.key}`, message)
      assert.deepStrictEqual(yield* entries.get(b.key), miss({ _tag: "WrongKey" }))
      server.stored.set(`/cas/${a.digest}`, Buffer.from(a.result.replace("a", "c")))
      assert.deepStrictEqual(yield* entries.get(a.key), miss({ _tag: "DigestMismatch" }))
      server.stored.delete(`/cas/${a.digest}`)
      assert.strictEqual((yield* entries.get(a.key))._tag, "Miss")
    })
  )

  it.live("never gives wrong content as a whole", () =>
    Effect.gen(function* () {
      const server = yield* CacheServer.make()
      const { blobs } = yield* open(server)
      const big = Buffer.alloc(300_000, 1)
      for (const wrong of [
        Buffer.concat([big.subarray(1), Buffer.from([2])]),
        big.subarray(1),
        Buffer.concat([big, Buffer.from([1])]),
        Buffer.alloc(0)
      ]) {
        server.behave(Hostile.bytes(wrong))
        let received = 0
        const reading = blobs
          .get(blobOf(big))
          .pipe(Stream.runForEach((chunk) => Effect.sync(() => (received += chunk.length))))
        assert.strictEqual((yield* reasonOf(reading))._tag, "ArtifactCorrupt")
        assert.isBelow(received, big.length)
      }
      server.behave(Hostile.endless)
      assert.strictEqual((yield* reasonOf(collect(blobs.get(blobOf(big)))))._tag, "ArtifactCorrupt")
      server.behave(Hostile.bytes(big, { "content-encoding": "br" }))
      assert.strictEqual((yield* reasonOf(collect(blobs.get(blobOf(big)))))._tag, "Invalid")
    })
  )

  it.live("heals a blob whose bytes were flipped by the next put", () =>
    Effect.gen(function* () {
      const server = yield* CacheServer.make()
      const { blobs } = yield* open(server)
      yield* blobs.put(blob, Stream.make(content))
      server.stored.set(`/cas/${blob.digest}`, Buffer.from("some c0ntent"))
      assert.strictEqual((yield* reasonOf(collect(blobs.get(blob))))._tag, "ArtifactCorrupt")
      assert.deepStrictEqual(yield* blobs.missing([blob]), [blob])
      yield* blobs.put(blob, Stream.make(content))
      assert.deepStrictEqual(yield* blobs.missing([blob]), [])
      assert.deepStrictEqual(yield* collect(blobs.get(blob)), content)
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

describe("HttpCache and credentials", () => {
  const secret = "s3cr3t-t0ken"
  const headers = { "X-Api-Key": Redacted.make(`${secret}-header`) }
  const credentials = { _tag: "Bearer", token: Redacted.make(secret) } as const

  it.live("sends them to its server", () =>
    Effect.gen(function* () {
      const server = yield* CacheServer.make()
      const bearer = yield* open(server, { headers, credentials })
      yield* bearer.entries.get(entryOf("a").key)
      const basic = yield* open(server, {
        credentials: { _tag: "Basic", username: "u", password: Redacted.make("p:w") }
      })
      yield* basic.entries.get(entryOf("a").key)
      assert.deepStrictEqual(
        server.seen.map(({ headers }) => [headers["authorization"], headers["x-api-key"], headers["accept-encoding"]]),
        [
          [`Bearer ${secret}`, `${secret}-header`, "identity"],
          [`Basic ${Buffer.from("u:p:w").toString("base64")}`, undefined, "identity"]
        ]
      )
    })
  )

  it.live.each([301, 302, 303, 307, 308])("sends nothing to the other origin of a %i", (status) =>
    Effect.gen(function* () {
      const other = yield* CacheServer.make()
      const server = yield* CacheServer.make(Hostile.redirect(other.url, status))
      const { blobs, entries } = yield* open(server, { headers, credentials })
      for (const call of [entries.get(entryOf("a").key), blobs.missing([blob]), collect(blobs.get(blob))]) {
        assert.deepInclude({ ...(yield* reasonOf<unknown>(call)) }, { status })
      }
      const put = yield* reasonOf(entries.put(entryOf("a")))
      assert.strictEqual(put._tag, status === 307 || status === 308 ? "Redirected" : "Unexpected")
      assert.strictEqual(other.connections(), 0)
    })
  )

  it.live("follows its own server, but not without an end", () =>
    Effect.gen(function* () {
      const server = yield* CacheServer.make((request, response, honest) =>
        request.url?.startsWith("/there") === true ? honest() : Hostile.redirect("/there")(request, response, honest)
      )
      const { entries } = yield* open(server, { headers })
      const entry = entryOf("a")
      yield* entries.put(entry)
      assert.strictEqual((yield* entries.get(entry.key))._tag, "Hit")
      assert.isTrue(server.seen.every(({ headers }) => headers["x-api-key"] === `${secret}-header`))
      server.behave(Hostile.redirect("/round"))
      server.seen.length = 0
      assert.strictEqual((yield* reasonOf(entries.get(entry.key)))._tag, "Unexpected")
      assert.isAtMost(server.seen.length, 6)
    })
  )

  it.live("keeps them out of errors, logs and spans", () =>
    Effect.gen(function* () {
      const server = yield* CacheServer.make()
      const { blobs, entries } = yield* open(server, { headers, credentials })
      for (const behaviour of [
        CacheServer.honest,
        Hostile.status(403),
        Hostile.blackHole,
        Hostile.reset,
        Hostile.redirect("http://x.invalid")
      ]) {
        server.behave(behaviour)
        for (const call of [
          entries.get(entryOf("a").key),
          entries.put(entryOf("a")),
          blobs.put(blob, Stream.make(content)),
          collect(blobs.get(blob))
        ]) {
          const said = yield* overheard(call)
          assert.include(said, "HttpCache.")
          assert.notInclude(said, secret)
        }
      }
      assert.isTrue(server.seen.every(({ headers }) => headers["authorization"] === `Bearer ${secret}`))
    })
  )

  it.live.each([
    { url: "ftp://example.org" },
    { url: "no url" },
    { url: `http://user:${secret}@example.org` },
    { url: `http://example.org/?token=${secret}` },
    { url: "http://example.org", headers: { "transfer-encoding": Redacted.make("chunked") } },
    { url: "http://example.org", headers: { "x-a": Redacted.make(`${secret}\r\nx-b: c`) } },
    { url: "http://example.org", headers: { authorization: Redacted.make("x") }, credentials },
    { url: "http://example.org", credentials: { _tag: "Basic", username: "a:b", password: Redacted.make(secret) } }
  ] as const)("refuses options that cannot be used: %o", (options) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(HttpCache.stepCache(options))
      assert.strictEqual(error.reason._tag, "Invalid")
      assert.notInclude(JSON.stringify(error), secret)
    })
  )
})
