import { type CacheErrorReason, Forbidden, ReadOnly, TooLarge, Unexpected, Unreachable } from "../../CacheError.ts"

export type Method = "GET" | "HEAD" | "PUT"

/** What a status means in this protocol. */
export type Meaning =
  | { readonly _tag: "Done" }
  | { readonly _tag: "Absent" }
  | { readonly _tag: "Failed"; readonly reason: CacheErrorReason }

/**
 * The one place that reads statuses. `size`: of the body that was sent.
 *
 * - A put is done by 200, 201 or 204: servers differ, and say nothing about what was there before.
 * - 400 to a put means its size: key, digest and length of what is put are right, so that is what is left to refuse.
 * - 412 and 409 are no sign that the same was there: for servers they mean anything up to a storage that failed.
 */
export const meaning = (tier: string, method: Method, status: number, size: number): Meaning => {
  switch (status) {
    case 200:
      return done
    case 201:
      return method === "PUT" ? done : failed(unexpected(tier, status))
    case 204:
      return method === "GET" ? failed(unexpected(tier, status)) : done
    case 400:
      return failed(method === "PUT" ? new TooLarge({ tier, size }) : unexpected(tier, status))
    case 401:
    case 403:
      return failed(new Forbidden({ tier, status }))
    case 404:
      return method === "PUT" ? failed(unexpected(tier, status)) : { _tag: "Absent" }
    case 405:
      return failed(method === "PUT" ? new ReadOnly({ tier }) : unexpected(tier, status))
    case 413:
      return failed(method === "PUT" ? new TooLarge({ tier, size }) : unexpected(tier, status))
    case 502:
    case 503:
    case 504:
      return failed(new Unreachable({ tier, detail: `status ${status}`, status }))
    default:
      return failed(unexpected(tier, status))
  }
}

const done: Meaning = { _tag: "Done" }

const failed = (reason: CacheErrorReason): Meaning => ({ _tag: "Failed", reason })

const unexpected = (tier: string, status: number) => new Unexpected({ tier, detail: `status ${status}`, status })
