import * as Effect from "effect/Effect"
import { Buffer } from "node:buffer"
import { CacheError, Invalid } from "../../CacheError.ts"
import { encode } from "./encoding.ts"

/** A place in a bucket. */
export interface Target {
  readonly tier: string
  readonly region: string
  /** Of bucket and prefix; ends with a slash. */
  readonly base: URL
}

export interface Place {
  readonly bucket: string
  readonly prefix: string
  readonly region: string
  readonly endpoint: string | URL | undefined
  readonly pathStyle: boolean | undefined
}

/** Checks where a tier is, once, so that no request can fail for it. No error holds any part of it. */
export const make = Effect.fnUntraced(function* (
  tier: string,
  { bucket, endpoint, pathStyle, prefix, region }: Place
): Effect.fn.Return<Target, CacheError> {
  const invalid = (detail: string) => new CacheError({ reason: new Invalid({ tier, detail }) })
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]$/.test(bucket) || bucket.includes("..")) {
    return yield* invalid("the bucket has no name of S3")
  }
  if (!/^[a-z0-9-]{1,64}$/.test(region)) return yield* invalid("the region is none")
  const base = URL.parse(String(endpoint ?? endpointOf(region)))
  if (base === null) return yield* invalid("the endpoint is no URL")
  if (base.protocol !== "http:" && base.protocol !== "https:")
    return yield* invalid("the endpoint is not one of http(s)")
  if (base.username !== "" || base.password !== "") {
    return yield* invalid("the endpoint holds credentials: they belong into `credentials`")
  }
  if (base.search !== "" || base.hash !== "" || base.pathname !== "/") {
    return yield* invalid("the endpoint has a path, a query or a fragment")
  }
  const segments = prefix.split("/").filter((segment) => segment !== "")
  // URLs would be shortened by these.
  if (segments.some((segment) => segment === "." || segment === "..") || !prefix.isWellFormed()) {
    return yield* invalid("the prefix cannot be in a URL")
  }
  if (Buffer.byteLength(prefix) > mostPrefixBytes) {
    return yield* invalid(`the prefix is longer than ${mostPrefixBytes} bytes`)
  }
  // The certificates of wildcards cover one label.
  const inPath = pathStyle ?? (endpoint !== undefined || bucket.includes("."))
  if (!inPath) base.hostname = `${bucket}.${base.hostname}`
  base.pathname = `/${[...(inPath ? [bucket] : []), ...segments].map((segment) => `${encode(segment)}/`).join("")}`
  return { tier, region, base }
})

/** A key has at most 1024, with what the tier adds. */
const mostPrefixBytes = 900

const endpointOf = (region: string): string =>
  `https://s3.${region}.amazonaws.com${region.startsWith("cn-") ? ".cn" : ""}`
