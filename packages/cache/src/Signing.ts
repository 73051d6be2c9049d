/**
 * Vouching for entries. A shared tier is open to whoever can write to it; with signing, an entry from there is served
 * only when the holder of a trusted key has signed it. A signature covers the namespace, the key, the digest of the
 * result, and names, digests and sizes of the artifacts: what it covers decides everything that is served.
 *
 * Keys rotate by their ids: trust the new key everywhere, sign with it, and stop trusting the old one when what it
 * signed is no longer wanted.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { Buffer } from "node:buffer"
import {
  createHmac,
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  type KeyObject,
  sign as signWith,
  timingSafeEqual,
  verify as verifyWith
} from "node:crypto"
import type { CacheEntry, Signature } from "./CacheEntry.ts"

// ---------------------------------------------------------------------------------------------------------------------
// models
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A key under the id that signatures name it by. An HMAC key and the private key of Ed25519 sign and verify; the public
 * key of Ed25519 only verifies.
 *
 * @since 0.1.0
 * @category models
 */
export type Key =
  | { readonly _tag: "Hmac"; readonly id: string; readonly secret: Redacted.Redacted<Uint8Array | string> }
  | { readonly _tag: "Ed25519"; readonly id: string; readonly privateKey: Redacted.Redacted<string> }
  | { readonly _tag: "Ed25519Public"; readonly id: string; readonly publicKey: string }

/**
 * A key that can sign.
 *
 * @since 0.1.0
 * @category models
 */
export type SigningKey = Exclude<Key, { readonly _tag: "Ed25519Public" }>

/**
 * What a signature covers.
 *
 * @since 0.1.0
 * @category models
 */
export interface Signed extends Pick<CacheEntry, "key" | "digest" | "artifacts"> {
  readonly namespace: string | undefined
}

/**
 * Signs, when it has a key to sign with, and verifies.
 *
 * @since 0.1.0
 * @category models
 */
export interface Signing {
  /** Absent where entries are only verified: such a machine cannot publish. */
  readonly sign: ((signed: Signed) => Signature) | undefined
  /** Whether the signature is that of a trusted key. No signature is not. */
  readonly verify: (signed: Signed, signature: Signature | undefined) => boolean
}

// ---------------------------------------------------------------------------------------------------------------------
// errors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A key that is none of its kind, or too short: an HMAC secret has 32 bytes or more. Does not hold the key.
 *
 * @since 0.1.0
 * @category reasons
 */
export class InvalidKey extends Schema.TaggedError<InvalidKey>("@strata/cache/SigningError/InvalidKey")("InvalidKey", {
  id: Schema.String,
  detail: Schema.String
}) {
  override get message(): string {
    return `The key ${this.id} cannot be used: ${this.detail}`
  }
}

/**
 * Two keys with one id.
 *
 * @since 0.1.0
 * @category reasons
 */
export class DuplicateKey extends Schema.TaggedError<DuplicateKey>("@strata/cache/SigningError/DuplicateKey")(
  "DuplicateKey",
  { id: Schema.String }
) {
  override get message(): string {
    return `There are two keys with the id ${this.id}`
  }
}

/**
 * No key at all: every entry would be refused.
 *
 * @since 0.1.0
 * @category reasons
 */
export class NoKeys extends Schema.TaggedError<NoKeys>("@strata/cache/SigningError/NoKeys")("NoKeys", {}) {
  override get message(): string {
    return "There is no key to trust"
  }
}

/**
 * The keys cannot be used.
 *
 * @since 0.1.0
 * @category errors
 */
export class SigningError extends Schema.TaggedError<SigningError>("@strata/cache/SigningError")("SigningError", {
  reason: Schema.Union([InvalidKey, DuplicateKey, NoKeys])
}) {
  override get message(): string {
    return this.reason.message
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// constructors
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A secret that all machines share, for HMAC-SHA256: 32 bytes or more, a string as UTF-8.
 *
 * @since 0.1.0
 * @category constructors
 */
export const hmac = (id: string, secret: Redacted.Redacted<Uint8Array | string>): SigningKey => ({
  _tag: "Hmac",
  id,
  secret
})

/**
 * A private key of Ed25519, in PEM: for machines that publish.
 *
 * @since 0.1.0
 * @category constructors
 */
export const ed25519 = (id: string, privateKey: Redacted.Redacted<string>): SigningKey => ({
  _tag: "Ed25519",
  id,
  privateKey
})

/**
 * A public key of Ed25519, in PEM: for machines that only trust what others publish.
 *
 * @since 0.1.0
 * @category constructors
 */
export const ed25519Public = (id: string, publicKey: string): Key => ({ _tag: "Ed25519Public", id, publicKey })

/**
 * Signs with `key`, and trusts it and the `trusted` ones. Without `key` it only verifies.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = Effect.fnUntraced(function* (options: {
  readonly key?: SigningKey | undefined
  readonly trusted?: ReadonlyArray<Key> | undefined
}): Effect.fn.Return<Signing, SigningError> {
  const keys: ReadonlyArray<Key> = [...(options.key === undefined ? [] : [options.key]), ...(options.trusted ?? [])]
  if (keys.length === 0) return yield* new SigningError({ reason: new NoKeys() })
  const trusted = new Map<string, Pair>()
  for (const key of keys) {
    if (trusted.has(key.id)) return yield* new SigningError({ reason: new DuplicateKey({ id: key.id }) })
    trusted.set(key.id, yield* load(key))
  }
  const signer = options.key === undefined ? undefined : trusted.get(options.key.id)?.sign
  const keyId = options.key?.id
  return {
    sign:
      signer === undefined || keyId === undefined
        ? undefined
        : (signed) => ({ keyId, value: Buffer.from(signer(message(keyId, signed))).toString("base64") }),
    verify: (signed, signature) => {
      const pair = signature && trusted.get(signature.keyId)
      return (
        signature !== undefined &&
        pair !== undefined &&
        pair.verify(message(signature.keyId, signed), Buffer.from(signature.value, "base64"))
      )
    }
  }
})

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

interface Pair {
  readonly sign: ((message: Uint8Array) => Uint8Array) | undefined
  readonly verify: (message: Uint8Array, signature: Uint8Array) => boolean
}

const leastSecretBytes = 32

const load = Effect.fnUntraced(function* (key: Key): Effect.fn.Return<Pair, SigningError> {
  switch (key._tag) {
    case "Hmac": {
      const secret = Redacted.value(key.secret)
      const bytes = typeof secret === "string" ? Buffer.from(secret, "utf8") : secret
      if (bytes.length < leastSecretBytes) return yield* invalid(key.id, `it has less than ${leastSecretBytes} bytes`)
      return hmacPair(createSecretKey(bytes))
    }
    case "Ed25519": {
      const privateKey = yield* parse(key.id, () => createPrivateKey(Redacted.value(key.privateKey)))
      return { ...publicPair(createPublicKey(privateKey)), sign: (message) => signWith(null, message, privateKey) }
    }
    case "Ed25519Public":
      return publicPair(yield* parse(key.id, () => createPublicKey(key.publicKey)))
  }
})

const invalid = (id: string, detail: string): SigningError =>
  new SigningError({ reason: new InvalidKey({ id, detail }) })

/** The parser's own message is left out, since it may quote what it could not read. */
const parse = (id: string, f: () => KeyObject): Effect.Effect<KeyObject, SigningError> =>
  Effect.try({ try: f, catch: () => invalid(id, "it is no key in PEM") }).pipe(
    Effect.filterOrFail(
      (key) => key.asymmetricKeyType === "ed25519",
      () => invalid(id, "it is no key of Ed25519")
    )
  )

const hmacPair = (key: KeyObject): Pair => {
  const sign = (message: Uint8Array) => createHmac("sha256", key).update(message).digest()
  return {
    sign,
    verify: (message, signature) => {
      const expected = sign(message)
      return expected.length === signature.length && timingSafeEqual(expected, signature)
    }
  }
}

const publicPair = (key: KeyObject): Pair => ({
  sign: undefined,
  verify: (message, signature) => verifyWith(null, message, key, signature)
})

/** One text for one meaning: JSON of an array of strings and numbers, in an order that never changes. */
const message = (keyId: string, signed: Signed): Uint8Array =>
  Buffer.from(
    JSON.stringify([
      "strata-cache-entry-1",
      keyId,
      signed.namespace ?? null,
      signed.key,
      signed.digest,
      signed.artifacts.map((artifact) => [artifact.name, artifact.digest, artifact.size])
    ]),
    "utf8"
  )
