/** One S3 server for the tests of a file; each tier has a prefix of its own in it. */
import type { CacheError } from "@strata/cache/CacheError"
import * as S3Cache from "@strata/cache/S3Cache"
import * as S3 from "@strata/cache/testing/s3"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { randomUUID } from "node:crypto"
import { afterAll } from "vitest"

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

export const reasonOf = <A>(effect: Effect.Effect<A, CacheError>) =>
  Effect.map(Effect.flip(effect), (error) => error.reason)
