/** One Redis for the tests of a file; each tier has a prefix of its own in it. */
import * as RedisCache from "@strata/cache/RedisCache"
import * as Redis from "@strata/cache/testing/redis"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { randomUUID } from "node:crypto"
import { createClient } from "redis"
import { afterAll } from "vitest"

/** Its URL; nothing where none can be had. Called at the top level of a file. */
export const serve = async (): Promise<string | undefined> => {
  const isThere = process.env["STRATA_TEST_REDIS_URL"] !== undefined || (await Effect.runPromise(Redis.isInstalled))
  if (!isThere) return undefined
  const scope = Scope.makeUnsafe()
  afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  return Effect.runPromise(Scope.provide(Redis.url, scope))
}

export const somePrefix = (): string => `test:${randomUUID()}:`

/** A client that does what it is told, to look at a server and to harm it. */
export const admin = (url: string) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(() => createClient({ url, RESP: 2 }).connect()),
      (client) => Effect.sync(() => client.destroy())
    ),
    (client) =>
      (...command: ReadonlyArray<string | Buffer>) =>
        Effect.promise(() => client.sendCommand(command))
  )

/** Both services of a tier. */
export const tierOf = Effect.fnUntraced(function* (options: RedisCache.RedisCacheOptions) {
  const all = { prefix: somePrefix(), name: "redis", ...options }
  return {
    prefix: all.prefix,
    entries: yield* RedisCache.stepCache(all),
    blobs: yield* RedisCache.artifactStore(all)
  }
})
