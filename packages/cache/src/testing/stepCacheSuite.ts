/**
 * The contracts of a step cache, local or shared: 36, 37 and 38 as far as they can be seen from outside.
 *
 * @since 0.1.0
 */
import { assert, describe, it } from "@effect/vitest"
import { sha256 } from "@strata/durable/Digest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { ArtifactStore } from "../ArtifactStore.ts"
import type { CacheEntry } from "../CacheEntry.ts"
import type { CacheError } from "../CacheError.ts"
import type { Lookup } from "../Lookup.ts"
import { type Arbitration, StepCache } from "../StepCache.ts"
import * as Entries from "./entries.ts"

// ---------------------------------------------------------------------------------------------------------------------
// tiers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A tier to test, and what it can do.
 *
 * @since 0.1.0
 * @category models
 */
export interface StepCacheTier<E> {
  /** An empty step cache, with the artifact store whose blobs its entries name. */
  readonly layer: Layer.Layer<StepCache | ArtifactStore, E>
  readonly arbitration: Arbitration
  /** Whether it can take entries out. */
  readonly evict: boolean
  /** Whether it refuses entries without their blobs, and does not serve them. */
  readonly artifacts: boolean
  /** Set on tiers behind a socket, which do not live on the test's clock. Default false. */
  readonly live?: boolean | undefined
}

// ---------------------------------------------------------------------------------------------------------------------
// suite
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Runs the contracts on one tier. Each test builds its layer anew.
 *
 * @since 0.1.0
 * @category suites
 */
export const stepCacheSuite = <E>(name: string, tier: StepCacheTier<E>): void => {
  const test = testing(tier)
  const exact = tier.arbitration === "exact"

  describe(`StepCache (${name})`, () => {
    test("a key without an entry is a miss", true, () =>
      Effect.gen(function* () {
        assert.strictEqual(missOf(yield* get("a")), "Absent")
      })
    )

    test("gives what was put, whole", true, () =>
      Effect.gen(function* () {
        const entry = yield* withArtifacts("a")
        const outcome = yield* put(entry)
        assert.strictEqual(outcome._tag, exact ? "Inserted" : "Unarbitrated")
        const found = yield* get("a")
        assert.deepStrictEqual(withoutSignature(hitOf(found)), entry)
        assert.strictEqual(missOf(yield* get("b")), "Absent")
      })
    )

    test("says how certain it is", true, () =>
      Effect.gen(function* () {
        assert.strictEqual(yield* StepCache.useSync((cache) => cache.arbitration), tier.arbitration)
      })
    )

    test("keeps the first of two equal results, with its metadata", exact, () =>
      Effect.gen(function* () {
        const first = yield* Entries.entryOf(keyA, { a: 1, b: [2] }, { by: "first" })
        const second = yield* Entries.entryOf(keyA, { b: [2], a: 1 }, { by: "second" })
        yield* put(first)
        const outcome = yield* put(second)
        assert.strictEqual(outcome._tag, "ExistingSame")
        assert.deepStrictEqual(outcome._tag === "ExistingSame" && outcome.entry, first)
        assert.deepStrictEqual(hitOf(yield* get("a")), first)
      })
    )

    test("keeps the first of two different results, and tells which", exact, () =>
      Effect.gen(function* () {
        const first = yield* Entries.entryOf(keyA, 1, { by: "first" })
        yield* put(first)
        const outcome = yield* put(yield* Entries.entryOf(keyA, 2, { by: "second" }))
        assert.strictEqual(outcome._tag, "Conflict")
        assert.deepStrictEqual(outcome._tag === "Conflict" && outcome.entry, first)
        assert.deepStrictEqual(hitOf(yield* get("a")), first)
      })
    )

    test("decides by the result alone, not by its artifacts", exact && tier.artifacts, () =>
      Effect.gen(function* () {
        const first = yield* withArtifacts("a")
        yield* put(first)
        const outcome = yield* put({ ...first, artifacts: [] })
        assert.strictEqual(outcome._tag, "ExistingSame")
        assert.deepStrictEqual(hitOf(yield* get("a")).artifacts, first.artifacts)
      })
    )

    test("lets one of many writers in", exact, () =>
      Effect.gen(function* () {
        const entries = yield* Effect.forEach([0, 1, 2, 3, 4, 5, 6, 7], (i) =>
          Entries.entryOf(keyA, i % 2, { by: `writer ${i}` })
        )
        const outcomes = yield* Effect.forEach(entries, put, { concurrency: "unbounded" })
        const winner = outcomes.findIndex(({ _tag }) => _tag === "Inserted")
        assert.strictEqual(outcomes.filter(({ _tag }) => _tag === "Inserted").length, 1)
        assert.deepStrictEqual(hitOf(yield* get("a")), entries[winner])
        for (const [i, outcome] of outcomes.entries()) {
          if (i === winner) continue
          assert.strictEqual(outcome._tag, i % 2 === winner % 2 ? "ExistingSame" : "Conflict")
        }
      })
    )

    test("the last writer is served where none can be first", !exact, () =>
      Effect.gen(function* () {
        yield* put(yield* Entries.entryOf(keyA, 1, { by: "first" }))
        const second = yield* Entries.entryOf(keyA, 2, { by: "second" })
        assert.strictEqual((yield* put(second))._tag, "Unarbitrated")
        assert.deepStrictEqual(withoutSignature(hitOf(yield* get("a"))), second)
      })
    )

    test("takes any result that JSON has, in UTF-8", true, () =>
      Effect.gen(function* () {
        const values = [
          null,
          true,
          "",
          "😀\u0000\uFFFD",
          -0.5,
          1e300,
          [],
          {},
          { "": [{ é: '\\"' }] },
          "x".repeat(70_000)
        ]
        for (const [i, value] of values.entries()) {
          const entry = yield* Entries.entryOf(Entries.keyOf(`value ${i}`), value)
          yield* put(entry)
          assert.strictEqual(hitOf(yield* get(`value ${i}`)).result, entry.result)
        }
      })
    )

    test("refuses an entry that contradicts itself", true, () =>
      Effect.gen(function* () {
        const entry = yield* Entries.entryOf(keyA, { a: 1, b: 2 })
        const loose = '{"b":2,"a":1}'
        const blob = { digest: sha256(""), size: 0 }
        const contradictions: ReadonlyArray<CacheEntry> = [
          { ...entry, digest: sha256("another") },
          { ...entry, result: loose, digest: sha256(loose) },
          { ...entry, result: "{", digest: sha256("{") },
          {
            ...entry,
            artifacts: [
              { name: "a", ...blob },
              { name: "a", ...blob }
            ]
          }
        ]
        for (const wrong of contradictions) {
          assert.strictEqual(yield* refusedFor(wrong), "Invalid")
        }
        assert.strictEqual(missOf(yield* get("a")), "Absent")
      })
    )

    test("serves a recording only to those who want it, when they name one", true, () =>
      Effect.gen(function* () {
        const entry = yield* Entries.entryOf(keyA, 1, { by: "first" })
        yield* put(entry)
        const cache = yield* StepCache
        const own = yield* cache.get(keyA, { recording: Entries.recordingOf("first") })
        assert.strictEqual(own._tag, "Hit")
        const other = yield* cache.get(keyA, { recording: Entries.recordingOf("second") })
        assert.strictEqual(missOf(other), "Fenced")
      })
    )

    test("evicts what is there", tier.evict, () =>
      Effect.gen(function* () {
        const cache = yield* StepCache
        yield* put(yield* Entries.entryOf(keyA, 1))
        assert.isTrue(yield* cache.evict(keyA))
        assert.strictEqual(missOf(yield* get("a")), "Absent")
        assert.isFalse(yield* cache.evict(keyA))
      })
    )

    test("a fenced evict leaves a fresher entry alone", tier.evict, () =>
      Effect.gen(function* () {
        const cache = yield* StepCache
        yield* put(yield* Entries.entryOf(keyA, 1, { by: "old" }))
        yield* cache.evict(keyA)
        yield* put(yield* Entries.entryOf(keyA, 2, { by: "new" }))
        assert.isFalse(yield* cache.evict(keyA, { recording: Entries.recordingOf("old") }))
        assert.isFalse(
          yield* cache.quarantine(keyA, { recording: Entries.recordingOf("old"), reason: { _tag: "WrongKey" } })
        )
        assert.strictEqual(hitOf(yield* get("a")).result, "2")
        assert.isTrue(yield* cache.evict(keyA, { recording: Entries.recordingOf("new") }))
      })
    )

    test("an entry that was taken out can be recorded again", tier.evict, () =>
      Effect.gen(function* () {
        const cache = yield* StepCache
        const entry = yield* Entries.entryOf(keyA, 1)
        yield* put(entry)
        const { recording } = entry.metadata
        assert.isTrue(
          yield* cache.quarantine(keyA, { recording, reason: { _tag: "Undecodable", detail: "by the app" } })
        )
        assert.strictEqual(missOf(yield* get("a")), "Absent")
        assert.strictEqual((yield* put(entry))._tag, exact ? "Inserted" : "Unarbitrated")
        assert.deepStrictEqual(hitOf(yield* get("a")), entry)
      })
    )

    test("refuses an entry whose blobs are not there", tier.artifacts, () =>
      Effect.gen(function* () {
        const digest = sha256("nowhere")
        const entry = yield* Entries.entryOf(keyA, 1, { artifacts: [{ name: "a", digest, size: 7 }] })
        const result = yield* Effect.result(put(entry))
        const reason = Result.isFailure(result) ? result.failure.reason : undefined
        assert.deepStrictEqual(reason?._tag === "ArtifactMissing" && reason.digests, [digest])
        assert.strictEqual(missOf(yield* get("a")), "Absent")
      })
    )

    test("does not serve an entry whose blob was deleted, and lets it be recorded anew", tier.artifacts, () =>
      Effect.gen(function* () {
        const entry = yield* withArtifacts("a")
        yield* put(entry)
        const { digest } = entry.artifacts[0]!
        yield* ArtifactStore.use((store) => store.remove(digest))
        const found = yield* get("a")
        assert.deepStrictEqual(found._tag === "Miss" && found.reason, { _tag: "ArtifactMissing", digests: [digest] })
        const again = yield* withArtifacts("a")
        yield* put(again)
        assert.strictEqual((yield* get("a"))._tag, "Hit")
      })
    )

    test("an entry may name the empty blob, and one blob by several names", tier.artifacts, () =>
      Effect.gen(function* () {
        const artifacts = [
          yield* Entries.artifactOf("b", ""),
          yield* Entries.artifactOf("a", "same"),
          yield* Entries.artifactOf("c", "same")
        ]
        const entry = yield* Entries.entryOf(keyA, 1, { artifacts })
        yield* put(entry)
        assert.deepStrictEqual(hitOf(yield* get("a")).artifacts, entry.artifacts)
      })
    )

    it.effect.prop(
      "what is put is what is served, whatever the value",
      { value: Value },
      ({ value }) =>
        Effect.gen(function* () {
          const entry = yield* Entries.entryOf(keyA, value)
          yield* put(entry)
          assert.strictEqual(hitOf(yield* get("a")).result, entry.result)
        }).pipe(Effect.provide(tier.layer)),
      { arbitrary: { runs: 25, seed: 36 }, timeout: 120_000 }
    )
  })
}

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const testing =
  <E>(tier: StepCacheTier<E>) =>
  (title: string, applies: boolean, body: () => Effect.Effect<void, CacheError, StepCache | ArtifactStore>): void => {
    if (!applies) return
    const run = tier.live === true ? it.live : it.effect
    run(title, () => Effect.provide(body(), tier.layer))
  }

const keyA = Entries.keyOf("a")

const get = (name: string) => StepCache.use((cache) => cache.get(Entries.keyOf(name)))

const put = (entry: CacheEntry) => StepCache.use((cache) => cache.put(entry))

const withArtifacts = Effect.fnUntraced(function* (name: string) {
  const artifacts = [
    yield* Entries.artifactOf("out/b.txt", `b of ${name}`),
    yield* Entries.artifactOf("out/a.txt", `a of ${name}`)
  ]
  return yield* Entries.entryOf(Entries.keyOf(name), { name }, { artifacts })
})

const withoutSignature = ({ artifacts, digest, key, metadata, result }: CacheEntry): CacheEntry => ({
  key,
  result,
  digest,
  artifacts,
  metadata
})

const hitOf = (lookup: Lookup): CacheEntry => {
  if (lookup._tag === "Miss") return assert.fail(`a miss: ${lookup.reason._tag}`)
  return lookup.entry
}

const missOf = (lookup: Lookup): string => (lookup._tag === "Hit" ? "Hit" : lookup.reason._tag)

const refusedFor = (entry: CacheEntry) =>
  Effect.match(put(entry), { onFailure: (error) => error.reason._tag, onSuccess: (outcome) => outcome._tag })

const Text = Schema.String.check(
  Schema.isMaxLength(20),
  Schema.makeFilter((text: string) => text.isWellFormed() || "well-formed Unicode")
)

const Scalar = Schema.Union([Schema.Null, Schema.Boolean, Schema.Finite, Text])

const Value = Schema.Record(Text, Schema.Union([Scalar, Schema.Array(Scalar)]))
