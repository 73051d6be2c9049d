import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { Buffer } from "node:buffer"
import { createHash, createHmac, type Hash, type Hmac } from "node:crypto"
import { validateHeaderValue } from "node:http"
import { CacheError, Invalid, TimedOut, Unreachable } from "../../CacheError.ts"
import { load } from "./library.ts"
import type { Target } from "./target.ts"

/** Who this client is. */
export interface Credentials {
  readonly accessKeyId: string
  readonly secretAccessKey: Redacted.Redacted<string>
  readonly sessionToken?: Redacted.Redacted<string> | undefined
}

export interface Unsigned {
  readonly method: string
  readonly url: URL
  readonly query: Readonly<Record<string, string>>
  readonly headers: Readonly<Record<string, string>>
  /** The SHA-256 of the body, which is signed with the rest. */
  readonly payload: string
}

export interface Signer {
  /** The headers of a request, with its signature. */
  readonly sign: (request: Unsigned) => Effect.Effect<Readonly<Record<string, Redacted.Redacted<string>>>, CacheError>
  /** Signs as of the time of the server from now on. Milliseconds since the epoch. */
  readonly setClock: (serverNow: number) => Effect.Effect<void>
}

/** Without credentials they are those of the chain in which tools of AWS look for them. */
export const make = Effect.fnUntraced(function* (
  { region, tier }: Target,
  credentials: Credentials | undefined,
  withinMs: number
): Effect.fn.Return<Signer, CacheError> {
  const { SignatureV4 } = yield* load(tier, "@smithy/signature-v4", () => import("@smithy/signature-v4"))
  const identity = credentials === undefined ? yield* chain(tier) : constant(credentials)
  const signer = new SignatureV4({
    service: "s3",
    region,
    credentials: identity,
    sha256: Sha256,
    uriEscapePath: false
  })
  let aheadMs = 0
  // Providers can ask other machines, and look for what they know already at each signature.
  const ready = Effect.tryPromise({
    try: () => identity(),
    catch: (cause) => new CacheError({ reason: new Unreachable({ tier, detail: `no credentials: ${nameOf(cause)}` }) })
  }).pipe(
    Effect.timeoutOrElse({
      duration: withinMs,
      orElse: () => Effect.fail(new CacheError({ reason: new TimedOut({ tier, phase: "connect", afterMs: withinMs }) }))
    })
  )
  return {
    setClock: (serverNow) => Effect.map(Clock.currentTimeMillis, (now) => void (aheadMs = serverNow - now)),
    sign: Effect.fnUntraced(function* ({ headers, method, payload, query, url }) {
      yield* ready
      const now = yield* Clock.currentTimeMillis
      const signed = yield* Effect.tryPromise({
        try: () =>
          signer.sign(
            {
              method,
              protocol: url.protocol,
              hostname: url.hostname,
              path: url.pathname,
              query: { ...query },
              headers: { ...headers, host: url.host, "x-amz-content-sha256": payload }
            },
            { signingDate: new Date(now + aheadMs) }
          ),
        catch: (cause) =>
          new CacheError({ reason: new Unreachable({ tier, detail: `no signature: ${nameOf(cause)}` }) })
      })
      if (!Object.entries(signed.headers).every(isHeader)) {
        return yield* new CacheError({ reason: new Invalid({ tier, detail: "a header is none of HTTP" }) })
      }
      return Object.fromEntries(Object.entries(signed.headers).map(([name, value]) => [name, Redacted.make(value)]))
    })
  }
})

// ---------------------------------------------------------------------------------------------------------------------
// credentials
// ---------------------------------------------------------------------------------------------------------------------

const constant =
  ({ accessKeyId, secretAccessKey, sessionToken }: Credentials) =>
  () =>
    Promise.resolve({
      accessKeyId,
      secretAccessKey: Redacted.value(secretAccessKey),
      ...(sessionToken === undefined ? {} : { sessionToken: Redacted.value(sessionToken) })
    })

const chain = (tier: string) =>
  Effect.map(
    load(tier, "@aws-sdk/credential-provider-node", () => import("@aws-sdk/credential-provider-node")),
    ({ defaultProvider }) => {
      const provide = defaultProvider()
      return () => provide()
    }
  )

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const isHeader = ([name, value]: readonly [string, string]): boolean => {
  try {
    validateHeaderValue(name, value)
    return true
  } catch {
    return false
  }
}

/** Messages are left out, as nobody knows what is in them. */
const nameOf = (cause: unknown): string => (cause instanceof Error ? cause.name : "an error")

type Bytes = string | ArrayBuffer | ArrayBufferView

/** SHA-256, or its HMAC when there is a secret. */
class Sha256 {
  readonly #hash: Hash | Hmac

  constructor(secret?: Bytes) {
    this.#hash = secret === undefined ? createHash("sha256") : createHmac("sha256", toBuffer(secret))
  }

  update(data: Bytes): void {
    this.#hash.update(toBuffer(data))
  }

  digest(): Promise<Uint8Array> {
    return Promise.resolve(this.#hash.digest())
  }
}

const toBuffer = (data: Bytes): Buffer =>
  typeof data === "string"
    ? Buffer.from(data, "utf8")
    : ArrayBuffer.isView(data)
      ? Buffer.from(data.buffer, data.byteOffset, data.byteLength)
      : Buffer.from(data)
