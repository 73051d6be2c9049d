import { assert, layer } from "@effect/vitest"
import * as HttpCache from "@strata/cache/HttpCache"
import * as Nginx from "@strata/cache/testing/nginx"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { blobOf, entryOf } from "./support/http.ts"

class Server extends Context.Service<Server, Nginx.Nginx>()("test/Server") {
  static readonly layer = Layer.effect(Server, Nginx.make())
}

const isInstalled = await Effect.runPromise(Nginx.isInstalled)
if (!isInstalled) console.warn("nginx is not installed: its tests are skipped")

layer(Server.layer, { excludeTestServices: true })("HttpCache on nginx", (it) => {
  it.effect.runIf(isInstalled)("keeps entries with their blobs", () =>
    Effect.gen(function* () {
      const { url } = yield* Server
      const entries = yield* HttpCache.stepCache({ url })
      const blobs = yield* HttpCache.artifactStore({ url })
      const content = new TextEncoder().encode("content")
      const blob = blobOf(content)
      const empty = blobOf(new Uint8Array())
      const entry = entryOf("a", {
        artifacts: [
          { name: "ä/out", ...blob },
          { name: "ä/out.empty", ...empty }
        ]
      })

      assert.deepStrictEqual(yield* entries.get(entry.key), { _tag: "Miss", reason: { _tag: "Absent" } })
      assert.deepStrictEqual(yield* blobs.missing([blob, empty, blob]), [blob, empty])
      yield* blobs.put(blob, Stream.make(content))
      yield* blobs.put(empty, Stream.empty)
      assert.deepStrictEqual(yield* blobs.missing([blob, empty]), [])
      assert.deepStrictEqual(yield* entries.put(entry), { _tag: "Unarbitrated" })
      assert.deepStrictEqual(yield* entries.get(entry.key), { _tag: "Hit", entry, tier: "http" })
      assert.deepStrictEqual(yield* Stream.runCollect(blobs.get(empty)), [])
      assert.deepStrictEqual(Buffer.concat(yield* Stream.runCollect(blobs.get(blob))), Buffer.from(content))
    })
  )
})
