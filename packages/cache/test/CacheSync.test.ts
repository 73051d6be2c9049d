import { assert, describe, it } from "@effect/vitest"
import { sha256 } from "@strata/durable/Digest"
import * as DurableWriter from "@strata/durable/DurableWriter"
import * as Journal from "@strata/journal/Journal"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import type { CacheEntry } from "../src/CacheEntry.ts"
import { Forbidden, TooLarge, Unexpected, Unreachable } from "../src/CacheError.ts"
import * as CacheEvents from "../src/CacheEvents.ts"
import * as CacheSync from "../src/CacheSync.ts"
import * as Signing from "../src/Signing.ts"
import { keyOf, makeEntry } from "./support/entries.ts"
import { failing, type SharedSteps, sharedSteps, well } from "./support/tiers.ts"

const layerJournal = Journal.layerMemory().pipe(Layer.provideMerge(DurableWriter.layerMemory()))

const syncTo = (steps: SharedSteps, options?: CacheSync.CacheSyncOptions) =>
  CacheSync.make(Effect.succeed(steps.service), options)

const conflicts = Effect.map(
  Journal.Journal.use((journal) => journal.read({ stream: CacheEvents.stream, types: ["cache-conflict"] })),
  (entries) =>
    entries
      .map((entry) => CacheEvents.Conflicted.decodePayload(entry.payload))
      .map((r) => Effect.runSync(Effect.fromResult(r)))
)

const key = keyOf("a")

describe("CacheSync", () => {
  it.effect("finds what another machine published, also after it was looked up in vain (C8)", () =>
    Effect.gen(function* () {
      const steps = sharedSteps()
      const [a, b] = [yield* syncTo(steps), yield* syncTo(steps)]
      assert.deepStrictEqual(yield* b.lookup(key), { _tag: "Miss", reason: { _tag: "Absent" } })
      const entry = yield* makeEntry({ key, value: { answer: 42 } })
      assert.deepStrictEqual(yield* a.publishEntry(entry), Option.none())
      assert.deepStrictEqual(yield* b.lookup(key), { _tag: "Hit", entry, tier: "shared" })
    }).pipe(Effect.provide(layerJournal))
  )

  it.effect("a tier that fails is a miss, and a refusal", () =>
    Effect.gen(function* () {
      const steps = sharedSteps()
      const sync = yield* syncTo(steps)
      const entry = yield* makeEntry({ key, value: 1 })
      steps.mood = failing(new Unexpected({ tier: "shared", detail: "500", status: 500 }))
      assert.deepStrictEqual(yield* sync.lookup(key), {
        _tag: "Miss",
        reason: { _tag: "Unavailable", error: "Unexpected" }
      })
      const refusal = yield* sync.publishEntry(entry)
      assert.deepInclude(Option.getOrThrow(refusal), {
        stage: "entry",
        kind: "Unexpected",
        status: 500,
        outlook: "later"
      })
      steps.mood = well
      assert.deepStrictEqual(yield* sync.publishEntry(entry), Option.none())
    }).pipe(Effect.provide(layerJournal))
  )

  it.effect("a refusal names size and limit (C6), and whether trying again is of use", () =>
    Effect.gen(function* () {
      const entry = yield* makeEntry({ key, value: 1 })
      const refusalFor = Effect.fnUntraced(function* (mood: SharedSteps["mood"]) {
        const steps = sharedSteps()
        steps.mood = mood
        return Option.getOrThrow(yield* (yield* syncTo(steps)).publishEntry(entry))
      })
      assert.deepInclude(yield* refusalFor(failing(new TooLarge({ tier: "shared", size: 10, limit: 5 }))), {
        kind: "TooLarge",
        size: 10,
        limit: 5,
        outlook: "never"
      })
      assert.deepInclude(yield* refusalFor(failing(new Forbidden({ tier: "shared", status: 403 }))), {
        kind: "Forbidden",
        status: 403,
        outlook: "never"
      })
      assert.deepInclude(yield* refusalFor(failing(new Unreachable({ tier: "shared", detail: "gone" }))), {
        kind: "Unreachable",
        outlook: "away"
      })
    }).pipe(Effect.provide(layerJournal))
  )

  for (const arbitration of ["exact", "last-writer-wins"] as const) {
    describe(arbitration, () => {
      it.effect("the first result stays, and the conflict is journaled once", () =>
        Effect.gen(function* () {
          const steps = sharedSteps({ arbitration })
          const sync = yield* syncTo(steps)
          const first = yield* makeEntry({ key, value: { by: "a" } })
          const second = yield* makeEntry({ key, value: { by: "b" } })
          assert.isTrue(Option.isNone(yield* sync.publishEntry(first)))
          assert.isTrue(Option.isNone(yield* sync.publishEntry(second)))
          assert.isTrue(Option.isNone(yield* sync.publishEntry(second)))
          assert.strictEqual(steps.entries.get(key)?.digest, first.digest)
          assert.deepStrictEqual(yield* conflicts, [
            {
              key,
              kept: first.metadata.recording,
              keptDigest: first.digest,
              recording: second.metadata.recording,
              digest: second.digest,
              tier: "shared"
            }
          ])
        }).pipe(Effect.provide(layerJournal))
      )

      it.effect("the same result with another key order is the same entry (C9)", () =>
        Effect.gen(function* () {
          const steps = sharedSteps({ arbitration })
          const sync = yield* syncTo(steps)
          const first = yield* makeEntry({ key, value: { a: 1, b: [2, { c: 3, d: 4 }] } })
          const second = yield* makeEntry({ key, value: { b: [2, { d: 4, c: 3 }], a: 1 } })
          assert.strictEqual(first.result, second.result)
          yield* sync.publishEntry(first)
          yield* sync.publishEntry(second)
          assert.deepStrictEqual(yield* conflicts, [])
          assert.strictEqual(steps.entries.get(key)?.metadata.recording, first.metadata.recording)
        }).pipe(Effect.provide(layerJournal))
      )
    })
  }

  it.effect("what two put at the same time into an exact tier is settled by the tier", () =>
    Effect.gen(function* () {
      const steps = sharedSteps()
      const sync = yield* syncTo(steps)
      const [ours, theirs] = [yield* makeEntry({ key, value: 1 }), yield* makeEntry({ key, value: 2 })]
      // The look finds nothing, and then another machine is faster.
      steps.mood = Effect.sync(() => {
        if (steps.calls.at(-1) === "put") steps.entries.set(key, theirs)
      })
      assert.isTrue(Option.isNone(yield* sync.publishEntry(ours)))
      assert.strictEqual(steps.entries.get(key), theirs)
      assert.lengthOf(yield* conflicts, 1)
    }).pipe(Effect.provide(layerJournal))
  )

  it.effect("verifies what the tier gives", () =>
    Effect.gen(function* () {
      const steps = sharedSteps()
      const sync = yield* syncTo(steps)
      const entry = yield* makeEntry({ key, value: { answer: 42 } })
      const reasonOf = (given: CacheEntry) => {
        steps.entries.set(key, given)
        return Effect.map(sync.lookup(key), (found) => (found._tag === "Miss" ? found.reason._tag : found._tag))
      }
      assert.strictEqual(yield* reasonOf(entry), "Hit")
      assert.strictEqual(yield* reasonOf({ ...entry, key: keyOf("b") }), "WrongKey")
      assert.strictEqual(yield* reasonOf({ ...entry, result: '{"answer":43}' }), "DigestMismatch")
      const spaced = '{ "answer": 42 }'
      assert.strictEqual(yield* reasonOf({ ...entry, result: spaced, digest: sha256(spaced) }), "Undecodable")
      assert.strictEqual(yield* reasonOf({ ...entry, result: "{", digest: sha256("{") }), "Undecodable")
    }).pipe(Effect.provide(layerJournal))
  )

  it.effect("writes over what cannot be served, where the tier lets it, and else says so", () =>
    Effect.gen(function* () {
      const entry = yield* makeEntry({ key, value: { answer: 42 } })
      const broken = { ...entry, result: '{"answer":43}' }
      const lenient = sharedSteps({ arbitration: "last-writer-wins" })
      lenient.entries.set(key, broken)
      assert.isTrue(Option.isNone(yield* (yield* syncTo(lenient)).publishEntry(entry)))
      assert.strictEqual(lenient.entries.get(key)?.result, entry.result)
      const strict = sharedSteps()
      strict.entries.set(key, broken)
      const refusal = Option.getOrThrow(yield* (yield* syncTo(strict)).publishEntry(entry))
      assert.deepInclude(refusal, { stage: "entry", kind: "Invalid", outlook: "never" })
    }).pipe(Effect.provide(layerJournal))
  )

  it.effect("keeps namespaces apart", () =>
    Effect.gen(function* () {
      const steps = sharedSteps()
      const linux = yield* syncTo(steps, { namespace: "linux" })
      const mac = yield* syncTo(steps, { namespace: "mac" })
      const none = yield* syncTo(steps)
      const entry = yield* makeEntry({ key, value: "linux" })
      assert.isTrue(Option.isNone(yield* linux.publishEntry(entry)))
      assert.deepStrictEqual(yield* linux.lookup(key), { _tag: "Hit", entry, tier: "shared#linux" })
      for (const other of [mac, none]) {
        assert.strictEqual((yield* other.lookup(key))._tag, "Miss")
      }
      // An entry that was carried over from another namespace by hand has the wrong key there.
      const [moved] = steps.entries.values()
      steps.entries.set(key, moved!)
      assert.deepStrictEqual(yield* none.lookup(key), { _tag: "Miss", reason: { _tag: "WrongKey" } })
    }).pipe(Effect.provide(layerJournal))
  )

  it.effect("serves only what a trusted key has signed, through a rotation of keys", () =>
    Effect.gen(function* () {
      const secret = (id: string) => Signing.hmac(id, Redacted.make(id.repeat(32)))
      const steps = sharedSteps({ arbitration: "last-writer-wins" })
      const unsigned = yield* syncTo(steps)
      const old = yield* syncTo(steps, { signing: yield* Signing.make({ key: secret("k1") }) })
      const rotating = yield* syncTo(steps, {
        signing: yield* Signing.make({ key: secret("k2"), trusted: [secret("k1")] })
      })
      const current = yield* syncTo(steps, { signing: yield* Signing.make({ key: secret("k2") }) })
      const entry = yield* makeEntry({ key, value: 1 })

      yield* unsigned.publishEntry(entry)
      assert.deepStrictEqual(yield* old.lookup(key), { _tag: "Miss", reason: { _tag: "BadSignature" } })

      yield* old.publishEntry(entry)
      assert.strictEqual((yield* old.lookup(key))._tag, "Hit")
      assert.strictEqual((yield* rotating.lookup(key))._tag, "Hit")
      assert.strictEqual((yield* unsigned.lookup(key))._tag, "Hit")
      assert.deepStrictEqual(yield* current.lookup(key), { _tag: "Miss", reason: { _tag: "BadSignature" } })

      yield* current.publishEntry(entry)
      assert.strictEqual((yield* rotating.lookup(key))._tag, "Hit")
      assert.strictEqual((yield* current.lookup(key))._tag, "Hit")
    }).pipe(Effect.provide(layerJournal))
  )

  it.effect("a signature is worth nothing in another namespace", () =>
    Effect.gen(function* () {
      const signing = yield* Signing.make({ key: Signing.hmac("k", Redacted.make("k".repeat(32))) })
      const steps = sharedSteps()
      const linux = yield* syncTo(steps, { signing, namespace: "linux" })
      const none = yield* syncTo(steps, { signing })
      yield* linux.publishEntry(yield* makeEntry({ key, value: 1 }))
      const [moved] = steps.entries.values()
      steps.entries.set(key, { ...moved!, key })
      assert.deepStrictEqual(yield* none.lookup(key), { _tag: "Miss", reason: { _tag: "BadSignature" } })
    }).pipe(Effect.provide(layerJournal))
  )

  it.effect("read-only, and without a tier, nothing is written", () =>
    Effect.gen(function* () {
      const steps = sharedSteps()
      const entry = yield* makeEntry({ key, value: 1 })
      const trusting = yield* Signing.make({ trusted: [Signing.hmac("k", Redacted.make("k".repeat(32)))] })
      const publicOnly = yield* Signing.make({
        trusted: [Signing.ed25519Public("p", ed25519PublicKey)]
      })
      for (const options of [{ readOnly: true }, { signing: publicOnly }, { signing: trusting }]) {
        const sync = yield* syncTo(steps, options)
        assert.isTrue(sync.readOnly)
        const refusal = Option.getOrThrow(yield* sync.publishEntry(entry))
        assert.deepInclude(refusal, { kind: "ReadOnly", outlook: "never" })
      }
      assert.deepStrictEqual(steps.calls, [])
      assert.deepStrictEqual(yield* CacheSync.local.lookup(key), { _tag: "Miss", reason: { _tag: "Absent" } })
      assert.isTrue(Option.isSome(yield* CacheSync.local.publishEntry(entry)))
    }).pipe(Effect.provide(layerJournal))
  )
})

const ed25519PublicKey = `-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=
-----END PUBLIC KEY-----
`
