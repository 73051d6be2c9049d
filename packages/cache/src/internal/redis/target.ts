import * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import { CacheError, Invalid } from "../../CacheError.ts"

/** Who this client is. Without a user name, the default user. */
export interface Credentials {
  readonly username?: string | undefined
  readonly password: Redacted.Redacted<string>
}

/** A database of a server. */
export interface Target {
  readonly tier: string
  readonly host: string
  readonly port: number
  readonly isTls: boolean
  readonly database: number
  readonly credentials: Credentials | undefined
}

/** Checks a URL once. No error holds any part of it. */
export const make = Effect.fnUntraced(function* (
  tier: string,
  options: { readonly url: string | URL; readonly credentials?: Credentials | undefined }
): Effect.fn.Return<Target, CacheError> {
  const invalid = (detail: string) => new CacheError({ reason: new Invalid({ tier, detail }) })
  const url = URL.parse(String(options.url))
  if (url === null) return yield* invalid("the URL is none")
  if (url.protocol !== "redis:" && url.protocol !== "rediss:") return yield* invalid("the URL is not one of redis(s)")
  if (url.username !== "" || url.password !== "") {
    return yield* invalid("the URL holds credentials: they belong into `credentials`")
  }
  if (url.search !== "" || url.hash !== "") return yield* invalid("the URL has a query or a fragment")
  if (url.hostname === "") return yield* invalid("the URL has no host")
  const database = /^\/?(\d{0,9})\/?$/.exec(url.pathname)?.[1]
  if (database === undefined) return yield* invalid("the path of the URL is not the number of a database")
  return {
    tier,
    // An address of IPv6 stands in brackets there.
    host: url.hostname.replace(/^\[(.*)\]$/, "$1"),
    port: url.port === "" ? 6379 : Number(url.port),
    isTls: url.protocol === "rediss:",
    database: Number(database),
    credentials: options.credentials
  }
})
