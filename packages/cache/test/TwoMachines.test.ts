import * as HttpCache from "@strata/cache/HttpCache"
import * as PostgresCache from "@strata/cache/PostgresCache"
import * as RedisCache from "@strata/cache/RedisCache"
import * as S3Cache from "@strata/cache/S3Cache"
import { twoMachinesSuite } from "@strata/cache/testing"
import * as Nginx from "@strata/cache/testing/nginx"
import * as Redis from "@strata/cache/testing/redis"
import * as S3 from "@strata/cache/testing/s3"
import * as Postgres from "@strata/durable/testing/postgres"
import * as Effect from "effect/Effect"
import { describe } from "vitest"
import { machine } from "./support/machine.ts"

describe.skipIf(!(await Effect.runPromise(Nginx.isInstalled)))("nginx", () => {
  twoMachinesSuite("HTTP, nginx", {
    machine,
    keeps: true,
    serve: Effect.map(Nginx.make(), ({ kill, restart, url }) => ({
      connect: { steps: HttpCache.stepCache({ url }), artifacts: HttpCache.artifactStore({ url }) },
      kill,
      restart
    }))
  })
})

describe.skipIf(!(await Effect.runPromise(Redis.isInstalled)))("Redis", () => {
  twoMachinesSuite("Redis", {
    machine,
    keeps: true,
    serve: Effect.map(Redis.make({ durable: true }), ({ kill, restart, url }) => ({
      connect: { steps: RedisCache.stepCache({ url }), artifacts: RedisCache.artifactStore({ url }) },
      kill,
      restart
    }))
  })
})

describe.skipIf(!(await Effect.runPromise(S3.isInstalled)))("S3", () => {
  twoMachinesSuite("S3", {
    machine,
    keeps: false,
    serve: Effect.map(S3.make, ({ kill, options, restart }) => ({
      connect: { steps: S3Cache.stepCache(options), artifacts: S3Cache.artifactStore(options) },
      kill,
      restart
    }))
  })
})

describe.skipIf(!Postgres.isAvailable())("Postgres", () => {
  twoMachinesSuite("Postgres", {
    machine,
    keeps: true,
    serve: Effect.gen(function* () {
      const { kill, restart, url } = yield* Postgres.make({ durable: true })
      const options = yield* Effect.orDie(PostgresCache.fromUrl(url))
      return {
        connect: { steps: PostgresCache.stepCache(options), artifacts: PostgresCache.artifactStore(options) },
        kill,
        restart
      }
    })
  })
})
