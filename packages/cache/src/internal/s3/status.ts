import {
  type CacheErrorReason,
  Forbidden,
  Invalid,
  ReadOnly,
  Redirected,
  TooLarge,
  Unexpected,
  Unreachable,
  Unsupported
} from "../../CacheError.ts"

export type Method = "GET" | "HEAD" | "PUT" | "POST" | "DELETE"

/** What a status means in this protocol. */
export type Meaning =
  | { readonly _tag: "Done" }
  | { readonly _tag: "Absent" }
  /** The condition of a request does not hold. */
  | { readonly _tag: "Unmet" }
  /** Another request for the same key is under way: this one has done nothing. */
  | { readonly _tag: "Busy" }
  /** The time in the signature is not that of the server. */
  | { readonly _tag: "Skewed" }
  | Failed

/** A status, and the `Code` of the error in the body. An answer to HEAD has none. */
export interface Said {
  readonly method: Method
  readonly status: number
  readonly code: string | undefined
}

/**
 * The one place that reads what S3 says. Codes come first, as one status stands for many of them. `size`: of the body that
 * was sent.
 *
 * Source: https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
 */
export const meaning = (tier: string, said: Said, size: number): Meaning => {
  const { code, method, status } = said
  if (status >= 200 && status < 300) return { _tag: "Done" }
  const byCode = code === undefined ? undefined : ofCode(tier, said, size)
  if (byCode !== undefined) return byCode
  switch (status) {
    case 301:
    case 302:
    case 303:
    case 307:
    case 308:
      return failed(new Redirected({ tier, status }))
    case 401:
    case 403:
      return failed(new Forbidden({ tier, status }))
    case 404:
      return method === "GET" || method === "HEAD" || method === "DELETE" ? { _tag: "Absent" } : unexpected(tier, said)
    case 405:
      return method === "GET" || method === "HEAD" ? unexpected(tier, said) : failed(new ReadOnly({ tier }))
    case 409:
      return { _tag: "Busy" }
    case 412:
      return { _tag: "Unmet" }
    case 413:
      return failed(new TooLarge({ tier, size }))
    case 429:
    case 502:
    case 503:
    case 504:
      return unreachable(tier, said)
    case 501:
      return failed(new Unsupported({ tier, operation: "do what it was asked: it says that this is not implemented" }))
    default:
      return unexpected(tier, said)
  }
}

/** What a code means that says more than its status, or stands in a body whose status is 200. */
export const ofCode = (tier: string, said: Said, size: number): Meaning | undefined => {
  switch (said.code) {
    case "NoSuchKey":
      return { _tag: "Absent" }
    case "NoSuchBucket":
      return failed(new Invalid({ tier, detail: "there is no such bucket" }))
    case "InvalidBucketName":
      return failed(new Invalid({ tier, detail: "the bucket has no name of S3" }))
    case "AuthorizationHeaderMalformed":
      return failed(new Invalid({ tier, detail: "the region is not that of the bucket" }))
    case "PreconditionFailed":
      return { _tag: "Unmet" }
    case "ConditionalRequestConflict":
    case "OperationAborted":
      return { _tag: "Busy" }
    case "RequestTimeTooSkewed":
      return { _tag: "Skewed" }
    case "ExpiredToken":
    case "InvalidToken":
    case "TokenRefreshRequired":
      return failed(new Forbidden({ tier, status: said.status }))
    case "EntityTooLarge":
      return failed(new TooLarge({ tier, size }))
    case "SlowDown":
    case "ServiceUnavailable":
    case "RequestTimeout":
      return unreachable(tier, said)
    // Refusals of what was sent that have the status of one of access.
    case "InvalidObjectState":
    case "QuotaExceeded":
    case "NoSuchUpload":
      return unexpected(tier, said)
    default:
      return undefined
  }
}

interface Failed {
  readonly _tag: "Failed"
  readonly reason: CacheErrorReason
}

const failed = (reason: CacheErrorReason): Failed => ({ _tag: "Failed", reason })

/** A code is a word of the protocol; the message beside it may repeat what was sent. */
const detailOf = ({ code, method, status }: Said): string =>
  `status ${status}${code !== undefined && /^[A-Za-z0-9.]{1,64}$/.test(code) ? ` (${code})` : ""} to ${method}`

export const unexpected = (tier: string, said: Said): Failed =>
  failed(new Unexpected({ tier, detail: detailOf(said), status: said.status }))

const unreachable = (tier: string, said: Said): Meaning =>
  failed(new Unreachable({ tier, detail: detailOf(said), status: said.status }))
