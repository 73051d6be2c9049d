import { sha256 } from "@strata/durable/Digest"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { CacheError, Forbidden } from "../../CacheError.ts"
import * as Answer from "../http/answer.ts"
import * as Exchange from "../http/exchange.ts"
import { encodeQuery } from "./encoding.ts"
import * as Signer from "./signer.ts"
import * as Status from "./status.ts"
import type { Target } from "./target.ts"
import * as Xml from "./xml.ts"

export interface Client {
  readonly tier: string
  readonly request: <E = never, R = never>(
    request: Request<E, R>
  ) => Effect.Effect<Outcome, CacheError | E, R | Scope.Scope>
  readonly parse: Xml.Parse
  /** Fails as an error means that is in the body of an answer whose status is that of a success. */
  readonly refuse: (method: Status.Method, code: string | undefined) => Effect.Effect<never, CacheError>
}

export interface Request<E, R> {
  readonly method: Status.Method
  /** Below the prefix. */
  readonly key: string
  readonly query?: Readonly<Record<string, string>> | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Its digest is that of the payload which is signed. */
  readonly upload?: Exchange.Upload<E, R> | undefined
}

/** What a request came to. Answers to what does not read have no body any more. */
export type Outcome =
  | { readonly _tag: "Done"; readonly answer: Exchange.Answer }
  | { readonly _tag: "Absent" }
  /** `repeated`: it was sent twice, and the first time may have met the condition. */
  | { readonly _tag: "Unmet"; readonly repeated: boolean }
  | { readonly _tag: "Busy" }

/** The most that is read of the body of an error. */
const errorBytes = 65_536

/** A client with connections of its own, which are closed with the scope. */
export const make = Effect.fnUntraced(function* (
  target: Target,
  credentials: Signer.Credentials | undefined,
  deadlines: Exchange.Deadlines
): Effect.fn.Return<Client, CacheError, Scope.Scope> {
  const { tier } = target
  const signer = yield* Signer.make(target, credentials, deadlines.connectMs)
  const parse = yield* Xml.makeParse(tier)
  const connection = yield* Exchange.makeConnection(tier, target.base, deadlines)

  const send = Effect.fnUntraced(function* <E, R>(
    { headers, key, method, query = {}, upload }: Request<E, R>,
    payload: string
  ): Effect.fn.Return<Exchange.Answer, CacheError | E, R | Scope.Scope> {
    const url = new URL(key, target.base)
    url.search = encodeQuery(query)
    const signed = yield* signer.sign({
      method,
      url,
      query,
      payload,
      headers: { ...headers, ...(upload === undefined ? {} : { "content-type": "application/octet-stream" }) }
    })
    const { host: _, ...rest } = signed
    return yield* Exchange.run(connection, { method, url, headers: rest, upload })
  })

  const codeOf = (answer: Exchange.Answer): Effect.Effect<string | undefined> =>
    answer.status < 300
      ? Effect.undefined
      : Answer.readAll(tier, answer, errorBytes).pipe(
          Effect.map((body) => parse(body)?.fields.get("Code")),
          Effect.orElseSucceed(() => undefined)
        )

  const attempt = <E, R>(
    request: Request<E, R>,
    isCorrected: boolean
  ): Effect.Effect<Outcome, CacheError | E, R | Scope.Scope> =>
    Effect.gen(function* () {
      const { method, upload } = request
      const answer = yield* send(request, upload?.digest ?? emptyDigest)
      const said = { method, status: answer.status, code: yield* codeOf(answer) }
      const meaning = Status.meaning(tier, said, upload?.size ?? 0)
      switch (meaning._tag) {
        case "Done":
          if (method === "GET" || method === "POST") yield* Answer.checkEncoding(tier, answer)
          else yield* Answer.drain(answer)
          return { _tag: "Done", answer }
        case "Unmet":
          return { _tag: "Unmet", repeated: answer.repeated }
        case "Skewed": {
          const serverNow = Date.parse(answer.headers.date ?? "")
          if (isCorrected || Number.isNaN(serverNow)) {
            return yield* new CacheError({ reason: new Forbidden({ tier, status: answer.status }) })
          }
          yield* signer.setClock(serverNow)
          return yield* attempt(request, true)
        }
        case "Failed":
          return yield* new CacheError({ reason: meaning.reason })
        default:
          return meaning
      }
    })

  return {
    tier,
    parse,
    request: (request) => attempt(request, false),
    refuse: (method, code) => {
      const said = { method, status: 200, code }
      const meaning = Status.ofCode(tier, said, 0) ?? Status.unexpected(tier, said)
      const { reason } = meaning._tag === "Failed" ? meaning : Status.unexpected(tier, said)
      return Effect.fail(new CacheError({ reason }))
    }
  }
})

const emptyDigest = sha256("")
