import { Buffer } from "node:buffer"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { validateHeaderName, validateHeaderValue } from "node:http"
import { CacheError, Invalid } from "../../CacheError.ts"

/** Who this client is. */
export type Credentials =
  | { readonly _tag: "Bearer"; readonly token: Redacted.Redacted<string> }
  | { readonly _tag: "Basic"; readonly username: string; readonly password: Redacted.Redacted<string> }

/** A server, and what every request to it carries. */
export interface Target {
  readonly tier: string
  /** Ends with a slash. */
  readonly base: URL
  /** By lower-case name. */
  readonly headers: ReadonlyMap<string, Redacted.Redacted<string>>
}

/** Headers that are the business of the protocol: to set them would break its framing. */
const reserved = new Set([
  "accept-encoding",
  "connection",
  "content-encoding",
  "content-length",
  "expect",
  "host",
  "transfer-encoding",
  "upgrade"
])

/** Checks a URL and headers once, so that no request can fail for them. No error holds any of their values. */
export const make = Effect.fnUntraced(function* (
  tier: string,
  options: {
    readonly url: string | URL
    readonly headers?: Readonly<Record<string, Redacted.Redacted<string>>> | undefined
    readonly credentials?: Credentials | undefined
  }
): Effect.fn.Return<Target, CacheError> {
  const invalid = (detail: string) => new CacheError({ reason: new Invalid({ tier, detail }) })
  const base = URL.parse(String(options.url))
  if (base === null) return yield* invalid("the URL is none")
  if (base.protocol !== "http:" && base.protocol !== "https:") return yield* invalid("the URL is not one of http(s)")
  if (base.username !== "" || base.password !== "") {
    return yield* invalid("the URL holds credentials: they belong into `credentials`")
  }
  if (base.search !== "" || base.hash !== "") return yield* invalid("the URL has a query or a fragment")
  if (!base.pathname.endsWith("/")) base.pathname += "/"

  const headers = new Map<string, Redacted.Redacted<string>>()
  for (const [name, value] of Object.entries(options.headers ?? {})) {
    const key = name.toLowerCase()
    if (reserved.has(key)) return yield* invalid(`the header ${key} cannot be set`)
    if (!isHeader(name, Redacted.value(value))) return yield* invalid("a header is none of HTTP")
    headers.set(key, value)
  }
  if (options.credentials !== undefined) {
    if (headers.has("authorization")) return yield* invalid("the header authorization is given twice")
    const value = authorization(options.credentials)
    if (value === undefined || !isHeader("authorization", Redacted.value(value))) {
      return yield* invalid("the credentials are none of HTTP")
    }
    headers.set("authorization", value)
  }
  return { tier, base, headers }
})

const isHeader = (name: string, value: string): boolean => {
  try {
    validateHeaderName(name)
    validateHeaderValue(name, value)
    return true
  } catch {
    return false
  }
}

const authorization = (credentials: Credentials): Redacted.Redacted<string> | undefined => {
  if (credentials._tag === "Bearer") return Redacted.make(`Bearer ${Redacted.value(credentials.token)}`)
  if (credentials.username.includes(":")) return undefined
  const pair = Buffer.from(`${credentials.username}:${Redacted.value(credentials.password)}`, "utf8")
  return Redacted.make(`Basic ${pair.toString("base64")}`)
}
