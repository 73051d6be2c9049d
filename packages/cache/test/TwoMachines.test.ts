import * as HttpCache from "@strata/cache/HttpCache"
import * as RedisCache from "@strata/cache/RedisCache"
import { twoMachinesSuite } from "@strata/cache/testing"
import * as Nginx from "@strata/cache/testing/nginx"
import * as Redis from "@strata/cache/testing/redis"
import * as Effect from "effect/Effect"
import { machine } from "./support/machine.ts"

if (await Effect.runPromise(Nginx.isInstalled)) {
  twoMachinesSuite("HTTP, nginx", {
    machine,
    keeps: true,
    serve: Effect.map(Nginx.make(), ({ kill, restart, url }) => ({
      connect: { steps: HttpCache.stepCache({ url }), artifacts: HttpCache.artifactStore({ url }) },
      kill,
      restart
    }))
  })
}

if (await Effect.runPromise(Redis.isInstalled)) {
  twoMachinesSuite("Redis", {
    machine,
    keeps: true,
    serve: Effect.map(Redis.make({ durable: true }), ({ kill, restart, url }) => ({
      connect: { steps: RedisCache.stepCache({ url }), artifacts: RedisCache.artifactStore({ url }) },
      kill,
      restart
    }))
  })
}
