import { assert, describe, it } from "@effect/vitest"
import { sha256 } from "@strata/durable/Digest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { generateKeyPairSync } from "node:crypto"
import { inspect } from "node:util"
import * as Signing from "../src/Signing.ts"
import { StepKey } from "../src/StepKey.ts"

const signed: Signing.Signed = {
  namespace: "linux-x64",
  key: StepKey.make(sha256("key")),
  digest: sha256("result"),
  artifacts: [{ name: "out.bin", digest: sha256("blob"), size: 4 }]
}

const secret = (text: string) => Redacted.make(text.repeat(32))

const pair = () => {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519")
  return {
    privateKey: Redacted.make(privateKey.export({ type: "pkcs8", format: "pem" }).toString()),
    publicKey: publicKey.export({ type: "spki", format: "pem" }).toString()
  }
}

/** The first letter, and with it the first byte, is another one. */
const altered = (value: string) => `${value.startsWith("A") ? "B" : "A"}${value.slice(1)}`

const keys = pair()

const signWith = (signing: Signing.Signing) => {
  assert.isDefined(signing.sign)
  return signing.sign(signed)
}

describe("Signing", () => {
  const kinds = { "HMAC-SHA256": Signing.hmac("k1", secret("a")), Ed25519: Signing.ed25519("k1", keys.privateKey) }

  for (const [name, key] of Object.entries(kinds)) {
    it.effect(`${name}: accepts what it signed, and refuses it when anything that counts is another`, () =>
      Effect.gen(function* () {
        const signing = yield* Signing.make({ key })
        const signature = signWith(signing)
        assert.strictEqual(signature.keyId, "k1")
        assert.isTrue(signing.verify(signed, signature))
        const changes: ReadonlyArray<Partial<Signing.Signed>> = [
          { namespace: undefined },
          { namespace: "linux-arm64" },
          { key: StepKey.make(sha256("another")) },
          { digest: sha256("another") },
          { artifacts: [] },
          { artifacts: [{ ...signed.artifacts[0]!, size: 5 }] },
          { artifacts: [{ ...signed.artifacts[0]!, name: "out" }] },
          { artifacts: [{ ...signed.artifacts[0]!, digest: sha256("another") }] }
        ]
        for (const change of changes) {
          assert.isFalse(signing.verify({ ...signed, ...change }, signature), JSON.stringify(change))
        }
        assert.isFalse(signing.verify(signed, undefined))
        assert.isFalse(signing.verify(signed, { ...signature, keyId: "k2" }))
        assert.isFalse(signing.verify(signed, { ...signature, value: "" }))
        assert.isFalse(signing.verify(signed, { ...signature, value: altered(signature.value) }))
      })
    )
  }

  it.effect("rotates keys: the old one is accepted until it is not trusted any more", () =>
    Effect.gen(function* () {
      const old = Signing.hmac("2025", secret("a"))
      const current = Signing.hmac("2026", secret("b"))
      const signedBefore = signWith(yield* Signing.make({ key: old }))
      const rotating = yield* Signing.make({ key: current, trusted: [old] })
      assert.strictEqual(signWith(rotating).keyId, "2026")
      assert.isTrue(rotating.verify(signed, signedBefore))
      assert.isFalse((yield* Signing.make({ key: current })).verify(signed, signedBefore))
    })
  )

  it.effect("a public key verifies, and cannot sign", () =>
    Effect.gen(function* () {
      const signature = signWith(yield* Signing.make({ key: Signing.ed25519("k", keys.privateKey) }))
      const reader = yield* Signing.make({ trusted: [Signing.ed25519Public("k", keys.publicKey)] })
      assert.isTrue(reader.verify(signed, signature))
      assert.isUndefined(reader.sign)
      const other = yield* Signing.make({ trusted: [Signing.ed25519Public("k", pair().publicKey)] })
      assert.isFalse(other.verify(signed, signature))
    })
  )

  it.effect("refuses keys that cannot be used, and shows none", () =>
    Effect.gen(function* () {
      const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({
        type: "pkcs8",
        format: "pem"
      })
      const reasonOf = (options: Parameters<typeof Signing.make>[0]) =>
        Effect.map(Effect.flip(Signing.make(options)), (error) => error.reason._tag)
      assert.strictEqual(yield* reasonOf({}), "NoKeys")
      assert.strictEqual(yield* reasonOf({ key: Signing.hmac("k", Redacted.make("short")) }), "InvalidKey")
      assert.strictEqual(yield* reasonOf({ key: Signing.ed25519("k", Redacted.make("no key")) }), "InvalidKey")
      assert.strictEqual(yield* reasonOf({ key: Signing.ed25519("k", Redacted.make(rsa.toString())) }), "InvalidKey")
      assert.strictEqual(
        yield* reasonOf({ key: Signing.hmac("k", secret("a")), trusted: [Signing.hmac("k", secret("b"))] }),
        "DuplicateKey"
      )
      const error = yield* Effect.flip(Signing.make({ key: Signing.hmac("k", Redacted.make("topsecret")) }))
      assert.notInclude(inspect(error, { depth: 10 }), "topsecret")
      assert.notInclude(inspect(Signing.hmac("k", secret("topsecret")), { depth: 10 }), "topsecret")
    })
  )
})
