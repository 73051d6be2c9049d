import { type Blob, type CacheEntry, Recording } from "@strata/cache/CacheEntry"
import { CacheError, Forbidden, ReadOnly, Unexpected, Unreachable } from "@strata/cache/CacheError"
import type * as ArtifactStore from "@strata/cache/ArtifactStore"
import * as RedisCache from "@strata/cache/RedisCache"
import * as S3Cache from "@strata/cache/S3Cache"
import type { StepCache } from "@strata/cache/StepCache"
import { StepKey } from "@strata/cache/StepKey"
import { sha256 } from "@strata/durable/Digest"
import * as PostgresClient from "@strata/strata/PostgresClient"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import * as RemoteTier from "../../RemoteTier.ts"
import type { SharedTier } from "../../SharedTier.ts"
import * as Checks from "./checks.ts"

/**
 * Asks a shared tier what a cache in it needs, in the way that a command would use it. What is put is taken out again;
 * only over HTTP, where nothing can be, a blob of no bytes stays.
 */
export const examine = Effect.fnUntraced(function* (checks: Checks.Checks, tier: SharedTier) {
  const remote = yield* RemoteTier.make(tier)
  const store = yield* remote.artifacts
  const { blob, content } = yield* randomBlob
  const look = store.missing([blob])
  const first = yield* checks.ask("connect", Effect.as(look, true), () => "it answers")
  if (first === undefined) return store.name
  yield* aboutServer(checks, tier)
  yield* checks.ask("latency", Checks.median(look), Checks.tellMillis)
  const steps = yield* checks.ask(
    "read",
    Effect.flatMap(remote.steps, (steps) => Effect.as(steps.get(StepKey.make(blob.digest)), steps)),
    () => "entries and blobs can be looked up"
  )
  if (steps === undefined) return store.name
  if (tier.readOnly) {
    for (const check of ["write", "delete", "arbitration"]) checks.unknown(check, "not asked, as it is only read")
    return store.name
  }
  const isWritable = yield* tryOut(checks, tier, steps, store, blob, content)
  if (!isWritable) checks.unknown("arbitration", "not asked, as nothing can be put")
  else if (steps.arbitration === "exact") checks.works("arbitration", "exact: the first result of a step stays")
  else checks.works("arbitration", "none: the last result of a step stays")
  return store.name
}, Effect.scoped)

// ---------------------------------------------------------------------------------------------------------------------
// rights
// ---------------------------------------------------------------------------------------------------------------------

const randomBlob = Effect.gen(function* () {
  const numbers = yield* Effect.forEach([1, 2, 3, 4], () => Random.nextInt)
  const content = new TextEncoder().encode(`strata doctor ${numbers.join(" ")}`)
  const blob: Blob = { digest: sha256(content), size: content.length }
  return { blob, content }
})

/** Puts something and takes it out again: what the tier takes out without leaving a trace. Tells whether it was put. */
const tryOut = Effect.fnUntraced(function* (
  checks: Checks.Checks,
  tier: SharedTier,
  steps: StepCache["Service"],
  store: ArtifactStore.ArtifactStore["Service"],
  blob: Blob,
  content: Uint8Array
) {
  if (tier.protocol === "http") {
    const put = yield* checks.ask("write", putNothing(tier, store.name), () => "a blob can be put")
    checks.unknown("delete", "the protocol has none: how long something stays is the server's business")
    return put !== undefined
  }
  const probe: Probe =
    tier.protocol === "s3" ? ofBlob(store, blob, content) : ofEntry(steps, blob, yield* Clock.currentTimeMillis)
  const put = yield* checks.ask(
    "write",
    Effect.as(probe.put, true),
    () => `${probe.what} can be put, and is there then`
  )
  if (put === undefined) {
    // It may be there although nobody answered.
    yield* Effect.ignore(Effect.timeout(probe.takeOut, "1 second"))
    checks.unknown("delete", "not asked, as nothing can be put")
    return false
  }
  yield* checks.ask("delete", probe.takeOut, () => `${probe.what} can be taken out`)
  return true
})

interface Probe {
  readonly what: string
  readonly put: Effect.Effect<void, CacheError>
  readonly takeOut: Effect.Effect<boolean, CacheError>
}

const ofBlob = (store: ArtifactStore.ArtifactStore["Service"], blob: Blob, content: Uint8Array): Probe => ({
  what: "a blob",
  put: Effect.andThen(store.put(blob, Stream.succeed(content)), Stream.runDrain(store.get(blob))),
  takeOut: store.remove(blob.digest)
})

const ofEntry = (steps: StepCache["Service"], { digest }: Blob, now: number): Probe => {
  const key = StepKey.make(digest)
  const entry = (result: string): CacheEntry => ({
    key,
    result,
    digest: sha256(result),
    artifacts: [],
    metadata: {
      recording: Recording.make(sha256(`${key} ${result}`).slice(0, 32)),
      recordedBy: "strata doctor",
      recordedAt: now,
      action: "strata-doctor",
      version: "1",
      durationMs: 0
    }
  })
  const unexpected = (detail: string) =>
    Effect.fail(new CacheError({ reason: new Unexpected({ tier: steps.name, detail }) }))
  return {
    what: "an entry",
    put: Effect.gen(function* () {
      const first = yield* steps.put(entry("1"))
      const second = yield* steps.put(entry("2"))
      if (first._tag !== "Inserted" || second._tag !== "Conflict") {
        return yield* unexpected(`${first._tag} to the first result of a step, and ${second._tag} to another one`)
      }
      const found = yield* steps.get(key)
      if (found._tag === "Miss") return yield* unexpected(`${found.reason._tag} to a lookup of what was put`)
    }),
    takeOut: steps.evict(key)
  }
}

/** The only blob that every cache may have, and whose content is no secret. */
const putNothing = (tier: SharedTier, name: string): Effect.Effect<true, CacheError> =>
  Effect.flatMap(request(tier, name, `${httpBase(tier)}/cas/${sha256("")}`, "PUT"), ({ status }) => {
    if (status === 200 || status === 201 || status === 204) return Effect.succeed(true as const)
    if (status === 401 || status === 403)
      return Effect.fail(new CacheError({ reason: new Forbidden({ tier: name, status }) }))
    if (status === 405) return Effect.fail(new CacheError({ reason: new ReadOnly({ tier: name }) }))
    return Effect.fail(
      new CacheError({ reason: new Unexpected({ tier: name, status, detail: `status ${status} to a PUT` }) })
    )
  })

// ---------------------------------------------------------------------------------------------------------------------
// the server
// ---------------------------------------------------------------------------------------------------------------------

/** Version and clock, as far as a server tells them. That it does not is no failure. */
const aboutServer = Effect.fnUntraced(function* (checks: Checks.Checks, tier: SharedTier) {
  const told = yield* Effect.option(Effect.timeout(Checks.timed(serverOf(tier)), "3 seconds"))
  const [ms, server] = told._tag === "Some" ? told.value : [0, undefined]
  if (server?.software === undefined) checks.unknown("version", "the server does not tell it")
  else checks.works("version", server.software)
  if (server?.now === undefined) return checks.unknown("clock", "the server does not tell its time")
  const ahead = yield* Checks.ahead(Effect.succeed(server.now))
  Checks.tellClock(checks, ahead + ms / 2, Math.max(server.precision, ms / 2))
})

interface Server {
  readonly software: string | undefined
  readonly now: number | undefined
  /** Of `now`, in milliseconds. */
  readonly precision: number
}

const serverOf = (tier: SharedTier): Effect.Effect<Server, Checks.CheckError> => {
  switch (tier.protocol) {
    case "http":
      return headers(tier, httpBase(tier))
    case "redis":
      return Effect.flatMap(RedisCache.fromUrl(tier.url), (address) =>
        Effect.map(RedisCache.server({ ...address, deadlines: RemoteTier.deadlines }), (server) => ({
          ...server,
          precision: 50
        }))
      )
    case "postgres":
      return Effect.scoped(postgresServer(tier.url))
    case "s3":
      return Effect.flatMap(S3Cache.fromUrl(tier.url), ({ bucket, endpoint, region = "us-east-1" }) =>
        headers(tier, String(endpoint ?? `https://${bucket}.s3.${region}.amazonaws.com/`))
      )
  }
}

const postgresServer = Effect.fnUntraced(function* (url: Redacted.Redacted) {
  const sql = yield* PostgresClient.make({ url, readonly: true, maxConnections: 1, connectTimeout: "1500 millis" })
  const [row] =
    yield* sql`SELECT current_setting('server_version'), (extract(epoch FROM clock_timestamp()) * 1000)::FLOAT8`.values
  return { software: `Postgres ${String(row?.[0])}`, now: Number(row?.[1]), precision: 50 } satisfies Server
})

/** What stands in the head of any answer. Its date has whole seconds, and may be as old as that. */
const headers = (tier: SharedTier, url: string): Effect.Effect<Server, CacheError> =>
  Effect.map(request(tier, "the server", url, "HEAD"), ({ headers }) => {
    const now = Date.parse(headers.get("date") ?? "")
    return {
      software: headers.get("server") ?? undefined,
      now: Number.isNaN(now) ? undefined : now + 500,
      precision: 1000
    }
  })

const httpBase = ({ url }: SharedTier): string => Redacted.value(url).replace(/\/+$/, "")

/** The token goes to the tier over HTTP only, and is sent nowhere that it redirects to. */
const request = ({ protocol, token }: SharedTier, tier: string, url: string, method: "HEAD" | "PUT") =>
  Effect.tryPromise({
    try: async (signal) => {
      const authorization = protocol === "http" && token !== undefined ? `Bearer ${Redacted.value(token)}` : undefined
      const answer = await fetch(url, {
        method,
        signal,
        redirect: "manual",
        ...(authorization === undefined ? {} : { headers: { authorization } }),
        ...(method === "PUT" ? { body: new Uint8Array() } : {})
      })
      await answer.body?.cancel()
      return answer
    },
    catch: () => new CacheError({ reason: new Unreachable({ tier, detail: "the connection failed" }) })
  })
