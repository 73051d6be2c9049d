import { assert, it } from "@effect/vitest"
import * as ArtifactStore from "@strata/cache/ArtifactStore"
import * as ArtifactSync from "@strata/cache/ArtifactSync"
import { ArtifactCorrupt, ArtifactMissing, CacheError, Unsupported } from "@strata/cache/CacheError"
import { artifactStoreSuite, Fault, Faults } from "@strata/conformance"
import { sha256 } from "@strata/durable/Digest"
import { Effect, Layer, Option, Stream } from "effect"
import { Buffer } from "node:buffer"

/** A tier of your own. */
const make = Effect.sync((): ArtifactStore.ArtifactStore["Service"] => {
  const tier = "mine"
  const blobs = new Map<string, Uint8Array>()
  const fail = (reason: CacheError["reason"]) => Effect.fail(new CacheError({ reason }))
  const collect = <E, R>(content: Stream.Stream<Uint8Array, E, R>) =>
    Effect.map(Stream.runCollect(content), (chunks) => new Uint8Array(Buffer.concat(chunks)))
  const keep = (bytes: Uint8Array) => {
    const digest = sha256(bytes)
    blobs.set(digest, bytes)
    return { digest, size: bytes.length }
  }
  const has = (blob: { readonly digest: string; readonly size: number }) => blobs.get(blob.digest)?.length === blob.size
  return {
    name: tier,
    add: (content) => Effect.map(collect(content), keep),
    put: Effect.fnUntraced(function* (blob, content) {
      if (has(blob)) return
      const bytes = yield* collect(content)
      if (sha256(bytes) !== blob.digest) return yield* fail(new ArtifactCorrupt({ tier, digest: blob.digest }))
      keep(bytes)
    }),
    get: (blob) =>
      Stream.suspend(() =>
        has(blob)
          ? Stream.fromIterable([blobs.get(blob.digest)!])
          : Stream.fromEffect(fail(new ArtifactMissing({ tier, digests: [blob.digest] })))
      ),
    missing: (asked) =>
      Effect.sync(() => {
        const distinct = new Map(asked.map(({ digest, size }) => [`${digest}/${size}`, { digest, size }]))
        return [...distinct.values()].filter((blob) => !has(blob))
      }),
    remove: () => fail(new Unsupported({ tier, operation: "remove blobs" })),
    list: Stream.fromEffect(fail(new Unsupported({ tier, operation: "list blobs" })))
  }
})

// The contract, each line of it a test.
artifactStoreSuite("mine", { layer: Layer.effect(ArtifactStore.ArtifactStore, make), collects: false })

// What is built on the tier, when the tier goes wrong.
it.effect("content that is corrupted on its way does not get here", () =>
  Effect.gen(function* () {
    const faults = Faults.make(ArtifactStore.ArtifactStore, {
      rules: [{ operation: "get", fault: Fault.corrupt, when: Fault.first(1) }]
    })
    const mine = faults.wrap(yield* make)
    const blob = yield* mine.add(Stream.make(new TextEncoder().encode("content")))
    const sync = yield* ArtifactSync.make(Effect.succeed(mine))
    assert.strictEqual(Option.getOrThrow(yield* sync.fetch([blob])).kind, "ArtifactCorrupt")
    assert.deepStrictEqual(yield* sync.fetch([blob]), Option.none())
  }).pipe(Effect.provide(ArtifactStore.layerMemory()))
)
