/** The database of the run as a shared tier: each file has a schema of its own in it, and each tier a prefix. */
import * as PgClient from "@effect/sql-pg/PgClient"
import type { ArtifactStore } from "@strata/cache/ArtifactStore"
import type { Blob } from "@strata/cache/CacheEntry"
import type { Lookup } from "@strata/cache/Lookup"
import * as PostgresCache from "@strata/cache/PostgresCache"
import { sha256 } from "@strata/durable/Digest"
import * as Postgres from "@strata/durable/testing/postgres"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { Buffer } from "node:buffer"
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
export const tierOf = Effect.fnUntraced(function* (
  more: Omit<PostgresCache.PostgresCacheOptions, "name" | "schema" | "prefix"> = {}
) {
  const all = { ...(yield* options), ...more }
  return {
    options: all,
    entries: yield* PostgresCache.stepCache(all),
    blobs: yield* PostgresCache.artifactStore(all)
  }
})

/** A client that may do everything, in the schema of the file. */
export const administer = Effect.suspend(() => Layer.build(Postgres.layerSchema(schema, { maxConnections: 2 }))).pipe(
  Effect.map(Context.get(PgClient.PgClient))
)

export const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)

export const blobOf = (content: Uint8Array): Blob => ({ digest: sha256(content), size: content.length })

export const read = (store: ArtifactStore["Service"], blob: Blob) =>
  Effect.map(Stream.runCollect(store.get(blob)), (chunks) => Buffer.concat(chunks).toString())

export const missOf = (lookup: Lookup): string => (lookup._tag === "Hit" ? "Hit" : lookup.reason._tag)
