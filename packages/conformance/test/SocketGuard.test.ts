import { afterAll, assert, describe, it } from "@effect/vitest"
import * as CacheSync from "@strata/cache/CacheSync"
import * as HttpCache from "@strata/cache/HttpCache"
import * as Lookup from "@strata/cache/Lookup"
import { StepKey } from "@strata/cache/StepKey"
import * as CacheServer from "@strata/cache/testing/cacheServer"
import * as SocketGuard from "@strata/conformance/SocketGuard"
import { sha256 } from "@strata/durable/Digest"
import * as DurableWriter from "@strata/durable/DurableWriter"
import * as Journal from "@strata/journal/Journal"
import * as SqliteClient from "@strata/sqlite/SqliteClient"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { createSocket } from "node:dgram"
import * as Http from "node:http"
import * as Net from "node:net"
import { setTimeout } from "node:timers/promises"

/** The tests take what the guard finds: none of it is a failure of theirs. */
afterAll(() => void SocketGuard.take())

const writers: Record<string, Layer.Layer<DurableWriter.DurableWriter, SqlError>> = {
  memory: DurableWriter.layerMemory(),
  sqlite: DurableWriter.layer().pipe(Layer.provide(SqliteClient.layer({ filename: ":memory:" })))
}

/** A server that answers, as an address. */
const server = Effect.acquireRelease(
  Effect.callback<Http.Server>((resume) => {
    const server = Http.createServer((_, response) => response.end("ok"))
    server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
  }),
  (server) =>
    Effect.sync(() => {
      server.closeAllConnections()
      server.close()
    })
).pipe(
  Effect.map((server) => {
    const address = server.address()
    if (address === null || typeof address === "string") throw new TypeError("No port")
    return { port: address.port, url: `http://127.0.0.1:${address.port}/` }
  })
)

const connect = (port: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const socket = Net.connect(port, "127.0.0.1", () => {
      socket.destroy()
      resolve()
    })
    socket.on("error", reject)
  })

const request = (url: string, agent?: Http.Agent): Promise<void> =>
  new Promise((resolve, reject) => {
    const sent = Http.get(url, agent === undefined ? {} : { agent }, (response) => {
      response.resume().on("end", resolve)
    })
    sent.on("error", reject)
  })

const datagram = (port: number): Promise<void> =>
  new Promise((resolve) => {
    const socket = createSocket("udp4")
    socket.send("x", port, "127.0.0.1", () => socket.close(resolve))
  })

interface Way {
  readonly use: (server: { readonly port: number; readonly url: string }) => Promise<unknown>
  readonly access: SocketGuard.Access
}

const ways: Record<string, Way> = {
  "a socket": { use: ({ port }) => connect(port), access: "connect" },
  "a socket behind a promise": { use: ({ port }) => Promise.resolve().then(() => connect(port)), access: "connect" },
  "a socket behind a timer": { use: ({ port }) => setTimeout(5).then(() => connect(port)), access: "connect" },
  "an HTTP request": { use: ({ url }) => request(url), access: "request" },
  fetch: { use: ({ url }) => fetch(url).then((response) => response.text()), access: "request" },
  "a datagram": { use: ({ port }) => datagram(port), access: "send" }
}

const taken = Effect.sync(() => SocketGuard.take().map(({ access }) => access))

for (const [tier, layer] of Object.entries(writers)) {
  describe(`SocketGuard (${tier})`, () => {
    for (const [name, { access, use }] of Object.entries(ways)) {
      it.live(`finds ${name} inside of a write, and not outside`, () =>
        Effect.gen(function* () {
          const there = yield* server
          yield* Effect.promise(() => use(there))
          yield* DurableWriter.write(Effect.void)
          yield* Effect.promise(() => use(there))
          assert.deepStrictEqual(yield* taken, [])
          yield* DurableWriter.write(Effect.promise(() => use(there)))
          assert.include(yield* taken, access)
          yield* Effect.promise(() => use(there))
          assert.deepStrictEqual(yield* taken, [])
        }).pipe(Effect.provide(layer))
      )
    }

    it.live("finds a request on a connection that was there before", () =>
      Effect.gen(function* () {
        const { url } = yield* server
        const agent = new Http.Agent({ keepAlive: true, maxSockets: 1 })
        yield* Effect.promise(() => request(url, agent))
        yield* DurableWriter.write(Effect.promise(() => request(url, agent)))
        assert.deepStrictEqual(yield* taken, ["request"])
        agent.destroy()
      }).pipe(Effect.provide(layer))
    )

    it.live("finds what a fiber of the write does, and what recovers from it", () =>
      Effect.gen(function* () {
        const { port } = yield* server
        const swallowed = Effect.exit(Effect.die("x").pipe(Effect.ensuring(Effect.promise(() => connect(port)))))
        yield* DurableWriter.write(Effect.flatMap(Effect.forkChild(swallowed), Fiber.join))
        assert.deepStrictEqual(yield* taken, ["connect"])
      }).pipe(Effect.provide(layer))
    )

    it.live("finds a lookup in a shared tier, which the tier's guard does not let through", () =>
      Effect.gen(function* () {
        const { url } = yield* CacheServer.make()
        const tier = HttpCache.stepCache({ url })
        const sync = yield* CacheSync.make(tier).pipe(Effect.provide(Journal.layerMemory()))
        const unguarded = (yield* tier).get(StepKey.make(sha256("a")))
        assert.deepStrictEqual(yield* unguarded, Lookup.absent)
        assert.deepStrictEqual(yield* taken, [])
        assert.deepStrictEqual(yield* DurableWriter.write(unguarded), Lookup.absent)
        assert.include(yield* taken, "request")
        const refused = Lookup.miss({ _tag: "Unavailable", error: "InsideWrite" })
        assert.deepStrictEqual(yield* DurableWriter.write(sync.lookup(StepKey.make(sha256("a")))), refused)
        assert.deepStrictEqual(yield* taken, [])
      }).pipe(Effect.provide(layer))
    )

    it.live("leaves a fiber alone that has outlived the write in which it was forked", () =>
      Effect.gen(function* () {
        const { port } = yield* server
        const ended = yield* Deferred.make<void>()
        const late = Effect.andThen(
          Deferred.await(ended),
          Effect.promise(() => connect(port))
        )
        const forked = yield* DurableWriter.write(Effect.forkDetach(late))
        yield* Deferred.succeed(ended, undefined)
        yield* Fiber.join(forked)
        assert.deepStrictEqual(yield* taken, [])
      }).pipe(Effect.provide(layer))
    )

    it.live("names the span", () =>
      Effect.gen(function* () {
        const { port } = yield* server
        yield* DurableWriter.write(Effect.promise(() => connect(port)).pipe(Effect.withSpan("Cache.lookup")))
        assert.deepStrictEqual(
          SocketGuard.take().map(({ span }) => span),
          ["Cache.lookup"]
        )
      }).pipe(Effect.provide(layer))
    )

    it.live("lets what waits for the commit use the network", () =>
      Effect.gen(function* () {
        const { port } = yield* server
        yield* DurableWriter.write(DurableWriter.afterCommit(Effect.promise(() => connect(port))))
        assert.deepStrictEqual(yield* taken, [])
      }).pipe(Effect.provide(layer))
    )
  })
}

describe("SocketGuard", () => {
  it.live("finds a socket in a transaction that is no write", () =>
    Effect.gen(function* () {
      const { port } = yield* server
      const sql = yield* SqlClient.SqlClient
      yield* sql.withTransaction(Effect.promise(() => connect(port)))
      assert.deepStrictEqual(yield* taken, ["connect"])
    }).pipe(Effect.provide(SqliteClient.layer({ filename: ":memory:" })))
  )

  it.live.fails("makes a test fail that uses the network inside of a write", () =>
    Effect.gen(function* () {
      const { port } = yield* server
      yield* DurableWriter.write(Effect.promise(() => connect(port)))
    }).pipe(Effect.provide(DurableWriter.layerMemory()))
  )
})
