import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { CacheError } from "../../CacheError.ts"
import { Redirected, Unexpected } from "../../CacheError.ts"
import * as Answer from "./answer.ts"
import * as Exchange from "./exchange.ts"
import * as Status from "./status.ts"
import type { Target } from "./target.ts"
import { failWith } from "../refusing.ts"

export interface Client {
  readonly target: Target
  readonly request: <E = never, R = never>(
    method: Status.Method,
    path: string,
    upload?: Exchange.Upload<E, R>
  ) => Effect.Effect<Outcome, CacheError | E, R | Scope.Scope>
}

/** What a request came to: the answer of a status of success, or that there is nothing under the path. */
export type Outcome = { readonly _tag: "Done"; readonly answer: Exchange.Answer } | { readonly _tag: "Absent" }

/** How often a server may send on within its origin. */
const mostRedirects = 5

/** A client with connections of its own, which are closed with the scope. */
export const make = Effect.fnUntraced(function* (
  target: Target,
  deadlines: Exchange.Deadlines
): Effect.fn.Return<Client, never, Scope.Scope> {
  const connection = yield* Exchange.makeConnection(target.tier, target.base, deadlines)
  const headers = Object.fromEntries(target.headers)

  const follow = <E, R>(
    method: Status.Method,
    url: URL,
    upload: Exchange.Upload<E, R> | undefined,
    hops: number
  ): Effect.Effect<Exchange.Answer, CacheError | E, R | Scope.Scope> =>
    Effect.flatMap(Exchange.run(connection, { method, url, headers, upload }), (answer) => {
      if (answer.status === 417 && upload !== undefined && upload.unasked !== true) {
        return Effect.andThen(Answer.drain(answer), follow(method, url, { ...upload, unasked: true }, hops))
      }
      if (!isRedirect(method, answer.status)) return Effect.succeed(answer)
      const location = answer.headers.location
      const there = location === undefined ? null : URL.parse(location, url.href)
      if (there !== null && there.origin !== url.origin) {
        return failWith(new Redirected({ tier: target.tier, status: answer.status }))
      }
      if (there === null || hops >= mostRedirects) {
        return failWith(
          new Unexpected({ tier: target.tier, detail: "redirects without an end", status: answer.status })
        )
      }
      // User info in a location would be sent as credentials.
      there.username = ""
      there.password = ""
      return Effect.andThen(Answer.drain(answer), follow(method, there, upload, hops + 1))
    })

  const request: Client["request"] = (method, path, upload) =>
    Effect.flatMap(follow(method, new URL(path, target.base), upload, 0), (answer) => {
      const meaning = Status.meaning(target.tier, method, answer.status, upload?.size ?? 0)
      if (meaning._tag === "Done" && method === "GET")
        return Effect.as(Answer.checkEncoding(target.tier, answer), { _tag: "Done", answer })
      const outcome: Effect.Effect<Outcome, CacheError> =
        meaning._tag === "Failed"
          ? failWith(meaning.reason)
          : Effect.succeed(meaning._tag === "Done" ? { _tag: "Done", answer } : meaning)
      return Effect.andThen(Answer.drain(answer), outcome)
    })

  return { target, request }
})

/** A method changes on 301, 302 and 303, so that only what reads can follow these. */
const isRedirect = (method: Status.Method, status: number): boolean =>
  status === 307 || status === 308 || (method !== "PUT" && (status === 301 || status === 302 || status === 303))
