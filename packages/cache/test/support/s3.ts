/** One S3 server for the tests of a file; each tier has a prefix of its own in it. */
import * as S3Cache from "@strata/cache/S3Cache"
import * as S3 from "@strata/cache/testing/s3"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { randomUUID } from "node:crypto"
import { afterAll } from "vitest"
import * as Answer from "../../src/internal/http/answer.ts"
import * as Exchange from "../../src/internal/http/exchange.ts"
import * as Client from "../../src/internal/s3/client.ts"
import * as Target from "../../src/internal/s3/target.ts"
import { blobOf } from "./http.ts"

/** Its options; nothing where none can be had. Called at the top level of a file. */
export const serve = async (): Promise<S3Cache.S3CacheOptions | undefined> => {
  const isThere = process.env["STRATA_TEST_S3_URL"] !== undefined || (await Effect.runPromise(S3.isInstalled))
  if (!isThere) return undefined
  const scope = Scope.makeUnsafe()
  afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  return Effect.runPromise(Scope.provide(S3.options, scope))
}

export const somePrefix = (): string => `test/${randomUUID()}`

/** Both services of a tier. */
export const tierOf = Effect.fnUntraced(function* (options: S3Cache.S3CacheOptions) {
  const all = { prefix: somePrefix(), name: "s3", ...options }
  return {
    prefix: all.prefix,
    entries: yield* S3Cache.stepCache(all),
    blobs: yield* S3Cache.artifactStore(all)
  }
})

/** Looks at the objects of a bucket, and harms them. Keys are without the prefix. */
export const admin = Effect.fnUntraced(function* (options: S3Cache.S3CacheOptions) {
  const { bucket, credentials, endpoint, pathStyle, prefix = "", region = "us-east-1" } = options
  const target = yield* Target.make("admin", { bucket, prefix, region, endpoint, pathStyle })
  const client = yield* Client.make(target, credentials, Exchange.toMillis({ response: "1 minute" }))
  const ask = (request: Client.Request<never, never>) =>
    Effect.scoped(
      Effect.flatMap(client.request(request), (outcome) =>
        outcome._tag === "Done" && request.method === "GET"
          ? Effect.map(Answer.readAll("admin", outcome.answer, 1024 ** 3), Buffer.from)
          : Effect.undefined
      )
    )
  return {
    get: (key: string) => ask({ method: "GET", key }),
    put: (key: string, content: Uint8Array) =>
      ask({ method: "PUT", key, upload: { ...blobOf(content), content: Stream.make(content) } }),
    remove: (key: string) => ask({ method: "DELETE", key })
  }
})
