import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { Buffer } from "node:buffer"
import type { CacheError } from "../../CacheError.ts"
import type { Connection } from "./connection.ts"
import type * as Reply from "./reply.ts"

/** What a server says of itself. */
export interface Server {
  readonly software: string
  /** Milliseconds since the epoch. */
  readonly now: number
}

/** Source: https://redis.io/docs/latest/commands/info/ and https://redis.io/docs/latest/commands/time/ */
export const ask = Effect.fnUntraced(function* ({ send }: Connection): Effect.fn.Return<Server, CacheError> {
  const software = yield* send(softwareOf, ["INFO", "server"])
  return { software, now: yield* send(timeOf, ["TIME"]) }
})

/** Valkey has a version of its own beside that of the Redis it is like. */
const softwareOf: Reply.Expected<string> = (reply) => {
  const fields = new Map(text(reply).map((line) => line.split(":", 2) as [string, string]))
  const version = fields.get("valkey_version") ?? fields.get("redis_version")
  return version === undefined
    ? Option.none()
    : Option.some(`${fields.has("valkey_version") ? "Valkey" : "Redis"} ${version}`)
}

const text = (reply: unknown): ReadonlyArray<string> =>
  reply instanceof Buffer
    ? reply
        .toString()
        .split(/\r?\n/)
        .filter((line) => line.includes(":"))
    : []

const timeOf: Reply.Expected<number> = (reply) => {
  const [seconds, micros] = Array.isArray(reply) ? reply.map(Number) : []
  const now = Math.round((seconds ?? Number.NaN) * 1000 + (micros ?? Number.NaN) / 1000)
  return Number.isFinite(now) ? Option.some(now) : Option.none()
}
