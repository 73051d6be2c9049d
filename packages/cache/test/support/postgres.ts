/** The database of the run as a shared tier: each file has a schema of its own in it, and each tier a prefix. */
import type { CacheError } from "@strata/cache/CacheError"
import * as PostgresCache from "@strata/cache/PostgresCache"
import * as Postgres from "@strata/durable/testing/postgres"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import { randomUUID } from "node:crypto"
import { afterAll } from "vitest"

/** With the right to do everything. */
export const url = (): Redacted.Redacted<string> => Redacted.make(process.env["STRATA_TEST_POSTGRES"] ?? "")

const makeSchema = async (): Promise<string> => {
  const scope = Scope.makeUnsafe()
  afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  return Effect.runPromise(Scope.provide(Postgres.schema, scope))
}

export const schema = Postgres.isAvailable() ? await makeSchema() : ""

export const somePrefix = (): string => `t${randomUUID().replaceAll("-", "").slice(0, 20)}`

/** Options of an empty tier. */
export const options = Effect.map(
  Effect.suspend(() => PostgresCache.fromUrl(url())),
  (options) => ({ ...options, schema, prefix: somePrefix(), name: "postgres" })
)

/** Both services of an empty tier, and its options. */
export const tierOf = Effect.fnUntraced(function* (more: PostgresCache.PostgresCacheOptions = {}) {
  const all = { ...(yield* options), ...more }
  return {
    options: all,
    entries: yield* PostgresCache.stepCache(all),
    blobs: yield* PostgresCache.artifactStore(all)
  }
})

export const reasonOf = <A>(effect: Effect.Effect<A, CacheError>) =>
  Effect.map(Effect.flip(effect), (error) => error.reason)
