/**
 * The contract of an artifact store, local or shared: 39, as far as it can be seen from outside.
 *
 * @since 0.1.0
 */
import { assert, describe, it } from "@effect/vitest"
import { sha256 } from "@strata/durable/Digest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { Buffer } from "node:buffer"
import * as Store from "../ArtifactStore.ts"
import { ArtifactStore } from "../ArtifactStore.ts"
import type { Blob } from "../CacheEntry.ts"
import type { CacheError } from "../CacheError.ts"

// ---------------------------------------------------------------------------------------------------------------------
// tiers
// ---------------------------------------------------------------------------------------------------------------------

/**
 * A tier to test, and what it can do.
 *
 * @since 0.1.0
 * @category models
 */
export interface ArtifactStoreTier<E> {
  /** An empty store that takes blobs of at least 2 MiB. */
  readonly layer: Layer.Layer<ArtifactStore, E>
  /** Whether it can list blobs, and take them out. */
  readonly collects: boolean
  /** Set on tiers behind a socket, which do not live on the test's clock. Default false. */
  readonly live?: boolean | undefined
}

// ---------------------------------------------------------------------------------------------------------------------
// suite
// ---------------------------------------------------------------------------------------------------------------------

/**
 * Runs the contract on one tier. Each test builds its layer anew.
 *
 * @since 0.1.0
 * @category suites
 */
export const artifactStoreSuite = <E>(name: string, tier: ArtifactStoreTier<E>): void => {
  const run = tier.live === true ? it.live : it.effect
  const test = (title: string, body: () => Effect.Effect<void, CacheError, ArtifactStore | Scope.Scope>) =>
    run(title, () => Effect.provide(body(), tier.layer))

  describe(`ArtifactStore (${name})`, () => {
    for (const [title, content] of contents) {
      test(`gives ${title} as it was added`, () =>
        Effect.gen(function* () {
          const store = yield* ArtifactStore
          const blob = yield* store.add(inChunks(content))
          assert.deepStrictEqual(blob, blobOf(content))
          assert.deepStrictEqual(yield* Store.bytes(blob), Buffer.from(content))
          assert.deepStrictEqual(yield* store.missing([blob]), [])
        }))

      test(`gives ${title} as it was put`, () =>
        Effect.gen(function* () {
          const store = yield* ArtifactStore
          yield* store.put(blobOf(content), inChunks(content))
          assert.deepStrictEqual(yield* Store.bytes(blobOf(content)), Buffer.from(content))
        }))
    }

    test("tells what is missing, each once and in order", () =>
      Effect.gen(function* () {
        const store = yield* ArtifactStore
        const [a, b, c] = [text("a"), text("b"), text("c")]
        yield* store.put(blobOf(b), Stream.make(b))
        const asked = [c, b, a, c].map(blobOf)
        assert.deepStrictEqual(yield* store.missing(asked), [blobOf(c), blobOf(a)])
        assert.deepStrictEqual(yield* store.missing([]), [])
        const named = { name: "a.txt", ...blobOf(a) }
        assert.deepStrictEqual(yield* store.missing([named]), [blobOf(a)])
      }))

    test("lacks a blob of another size", () =>
      Effect.gen(function* () {
        const store = yield* ArtifactStore
        const blob = yield* store.add(Stream.make(text("content")))
        const other = { ...blob, size: blob.size + 1 }
        assert.deepStrictEqual(yield* store.missing([other]), [other])
        assert.include(["ArtifactCorrupt", "ArtifactMissing"], yield* failure(Store.bytes(other)))
      }))

    test("fails for what is not there", () =>
      Effect.gen(function* () {
        assert.strictEqual(yield* failure(Store.bytes(blobOf(text("never")))), "ArtifactMissing")
      }))

    for (const [title, content] of wrong) {
      test(`refuses ${title}, and keeps nothing of it`, () =>
        Effect.gen(function* () {
          const store = yield* ArtifactStore
          const blob = blobOf(text("the content"))
          assert.strictEqual(yield* failure(store.put(blob, Stream.fromIterable(content))), "ArtifactCorrupt")
          assert.deepStrictEqual(yield* store.missing([blob]), [blob])
        }))
    }

    test("keeps nothing of content that fails on its way, and passes its error on", () =>
      Effect.gen(function* () {
        const store = yield* ArtifactStore
        const blob = blobOf(text("the content"))
        const broken = Stream.concat(Stream.make(text("the ")), Stream.fail("broken" as const))
        assert.strictEqual(yield* errorOf(store.put(blob, broken)), "broken")
        assert.strictEqual(yield* errorOf(store.add(broken)), "broken")
        assert.deepStrictEqual(yield* store.missing([blob]), [blob])
      }))

    test("keeps nothing of a put that is interrupted", () =>
      Effect.gen(function* () {
        const store = yield* ArtifactStore
        const blob = blobOf(text("the content"))
        const stuck = Stream.concat(Stream.make(text("the ")), Stream.never)
        const winner = Effect.as(
          Effect.forEach(Array.from({ length: 20 }), () => Effect.yieldNow),
          "winner"
        )
        assert.strictEqual(yield* Effect.raceFirst(Effect.as(store.put(blob, stuck), "put"), winner), "winner")
        assert.deepStrictEqual(yield* store.missing([blob]), [blob])
      }))

    test("does not ask for content that is there", () =>
      Effect.gen(function* () {
        const store = yield* ArtifactStore
        const blob = yield* store.add(Stream.make(text("content")))
        yield* store.put(blob, Stream.die("asked for"))
      }))

    test("takes the same blob from many at a time", () =>
      Effect.gen(function* () {
        const store = yield* ArtifactStore
        const content = bytes(300_000)
        const puts = Array.from({ length: 8 }, () => store.put(blobOf(content), inChunks(content)))
        yield* Effect.all(puts, { concurrency: "unbounded" })
        assert.deepStrictEqual(yield* Store.bytes(blobOf(content)), Buffer.from(content))
      }))

    if (tier.collects) collecting(test)
  })
}

const collecting = (
  test: (title: string, body: () => Effect.Effect<void, CacheError, ArtifactStore | Scope.Scope>) => void
): void => {
  test("lists what is there, with the time it was last wanted", () =>
    Effect.gen(function* () {
      const store = yield* ArtifactStore
      assert.deepStrictEqual(yield* Stream.runCollect(store.list), [])
      yield* TestClock.adjust(1_000)
      const a = yield* store.add(Stream.make(text("a")))
      const b = yield* store.add(Stream.empty)
      yield* TestClock.adjust(1_000)
      yield* store.put(a, Stream.die("asked for"))
      const listed = yield* Stream.runCollect(store.list)
      assert.sameDeepMembers(listed, [
        { ...a, touchedAt: 2_000 },
        { ...b, touchedAt: 1_000 }
      ])
      yield* TestClock.adjust(1_000)
      yield* store.add(Stream.empty)
      assert.deepInclude(yield* Stream.runCollect(store.list), { ...b, touchedAt: 3_000 })
    }))

  test("takes a blob out, and tells whether there was one", () =>
    Effect.gen(function* () {
      const store = yield* ArtifactStore
      const blob = yield* store.add(Stream.make(text("a")))
      assert.isTrue(yield* store.remove(blob.digest))
      assert.isFalse(yield* store.remove(blob.digest))
      assert.deepStrictEqual(yield* store.missing([blob]), [blob])
      yield* store.put(blob, Stream.make(text("a")))
      assert.deepStrictEqual(yield* store.missing([blob]), [])
    }))
}

// ---------------------------------------------------------------------------------------------------------------------
// helpers
// ---------------------------------------------------------------------------------------------------------------------

const text = (content: string): Uint8Array => new TextEncoder().encode(content)

/** Bytes in which no place is like another. */
const bytes = (length: number): Uint8Array => Uint8Array.from({ length }, (_, i) => (i * 2654435761) >>> 24)

const contents: ReadonlyArray<readonly [title: string, content: Uint8Array]> = [
  ["the empty blob", new Uint8Array()],
  ["a text", text("some text, ünïcödé 😀")],
  ["a larger blob", bytes(1_500_000)]
]

const wrong: ReadonlyArray<readonly [title: string, content: ReadonlyArray<Uint8Array>]> = [
  ["other content of the same size", [text("THE content")]],
  ["less than the content", [text("the conten")]],
  ["more than the content", [text("the content"), text("!")]],
  ["nothing", []]
]

const blobOf = (content: Uint8Array): Blob => ({ digest: sha256(content), size: content.length })

const inChunks = (content: Uint8Array): Stream.Stream<Uint8Array> =>
  Stream.fromIterable(
    Array.from({ length: Math.ceil(content.length / 70_000) }, (_, i) => content.subarray(i * 70_000, (i + 1) * 70_000))
  )

/** The reason of a failure; `none` when there was none. */
const failure = <A, R>(effect: Effect.Effect<A, CacheError, R>): Effect.Effect<string, never, R> =>
  Effect.match(effect, { onFailure: (error) => error.reason._tag, onSuccess: () => "none" })

/** The error; nothing when there was none. */
const errorOf = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<E | undefined, never, R> =>
  Effect.match(effect, { onFailure: (error) => error, onSuccess: () => undefined })
