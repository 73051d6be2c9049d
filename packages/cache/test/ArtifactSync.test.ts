import { assert, describe, it } from "@effect/vitest"
import { sha256 } from "@strata/durable/Digest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as Fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as ArtifactStore from "../src/ArtifactStore.ts"
import * as ArtifactSync from "../src/ArtifactSync.ts"
import type { Blob } from "../src/CacheEntry.ts"
import { CacheError, Forbidden, StorageFailed, TooLarge, Unreachable } from "../src/CacheError.ts"
import * as CombinedArtifactStore from "../src/CombinedArtifactStore.ts"

type Store = ArtifactStore.ArtifactStore["Service"]

const bytes = (content: string): Uint8Array => new TextEncoder().encode(content)

const blobOf = (content: string): Blob => ({ digest: sha256(content), size: bytes(content).length })

const [a, b, c] = ["content a", "content b", "content c"]

const local = (): Store => ArtifactStore.makeMemory({ name: "local" })
const remote = (): Store => ArtifactStore.makeMemory({ name: "remote" })

const fill = (store: Store, ...contents: ReadonlyArray<string>) =>
  Effect.forEach(contents, (content) => store.add(Stream.make(bytes(content))), { discard: true })

const syncOf = (here: Store, there: Store, options?: ArtifactSync.ArtifactSyncOptions) =>
  ArtifactSync.make(Effect.succeed(there), options).pipe(Effect.provideService(ArtifactStore.ArtifactStore, here))

const kindOf = Option.map(({ kind, outlook, stage }: { kind: string; outlook: string; stage: string }) => [
  stage,
  kind,
  outlook
])

const fails = (reason: CacheError["reason"]) => Effect.fail(new CacheError({ reason }))

describe("ArtifactSync", () => {
  it.effect("publishes what the shared tier lacks, and the empty blob too", () =>
    Effect.gen(function* () {
      const [here, there] = [local(), remote()]
      yield* fill(here, a, b, "")
      yield* fill(there, b)
      const sync = yield* syncOf(here, there)
      const all = [a, b, ""].map(blobOf)
      assert.deepStrictEqual(yield* sync.publish(all), Option.none())
      assert.deepStrictEqual(yield* there.missing(all), [])
    })
  )

  it.effect("gives each tier what it lacks itself", () =>
    Effect.gen(function* () {
      const [here, there] = [local(), remote()]
      yield* fill(here, a, b)
      yield* fill(there, b, c)
      const sync = yield* syncOf(here, there)
      assert.deepStrictEqual(yield* sync.publish([blobOf(a), blobOf(b)]), Option.none())
      assert.deepStrictEqual(yield* here.missing([blobOf(c)]), [blobOf(c)])
      assert.deepStrictEqual(yield* sync.fetch([blobOf(b), blobOf(c)]), Option.none())
      assert.deepStrictEqual(yield* there.missing([a, b, c].map(blobOf)), [])
      assert.deepStrictEqual(yield* here.missing([a, b, c].map(blobOf)), [])
    })
  )

  it.effect("refuses to publish what is not here, or is corrupt here", () =>
    Effect.gen(function* () {
      const [here, there] = [local(), remote()]
      const sync = yield* syncOf(here, there)
      assert.deepStrictEqual(
        kindOf(yield* sync.publish([blobOf(a)])),
        Option.some(["local", "ArtifactMissing", "later"])
      )
      const corrupt = { ...here, get: () => Stream.make(bytes("CONTENT A")) }
      const other = yield* syncOf(corrupt, there)
      assert.deepStrictEqual(
        kindOf(yield* other.publish([blobOf(a)])),
        Option.some(["local", "ArtifactCorrupt", "later"])
      )
      assert.deepStrictEqual(yield* there.missing([blobOf(a)]), [blobOf(a)])
    })
  )

  it.effect("looks again after it has sent", () =>
    Effect.gen(function* () {
      const [here, there] = [local(), remote()]
      yield* fill(here, a)
      const forgetful = { ...there, put: () => Effect.void }
      const sync = yield* syncOf(here, forgetful)
      assert.deepStrictEqual(
        kindOf(yield* sync.publish([blobOf(a)])),
        Option.some(["probe", "ArtifactMissing", "later"])
      )
    })
  )

  it.effect("never brings corrupt content here", () =>
    Effect.gen(function* () {
      const [here, there] = [local(), remote()]
      const lying = { ...there, get: () => Stream.make(bytes("CONTENT A")) }
      const sync = yield* syncOf(here, lying)
      assert.deepStrictEqual(
        kindOf(yield* sync.fetch([blobOf(a)])),
        Option.some(["artifact", "ArtifactCorrupt", "later"])
      )
      assert.deepStrictEqual(yield* here.missing([blobOf(a)]), [blobOf(a)])
    })
  )

  it.effect("tells what refuses, where, and whether to try again", () =>
    Effect.gen(function* () {
      const here = local()
      yield* fill(here, a)
      const tier = "remote"
      const cases = [
        [new TooLarge({ tier, size: 9, limit: 5 }), "never"],
        [new Forbidden({ tier, status: 403 }), "never"],
        [new Unreachable({ tier, detail: "502", status: 502 }), "away"]
      ] as const
      for (const [reason, outlook] of cases) {
        const sync = yield* syncOf(here, { ...remote(), put: () => fails(reason) })
        const refusal = Option.getOrUndefined(yield* sync.publish([blobOf(a)]))
        assert.deepInclude(refusal, { stage: "artifact", kind: reason._tag, outlook })
        if (reason._tag === "TooLarge") assert.deepInclude(refusal, { size: 9, limit: 5 })
      }
    })
  )

  it.effect("does not hold a failing disk here against the tier", () =>
    Effect.gen(function* () {
      const [here, there] = [local(), remote()]
      yield* fill(there, a, b)
      const full = { ...here, put: () => fails(new StorageFailed({ tier: "local", cause: "full" })) }
      const sync = yield* syncOf(full, there, { guard: { failures: 1 } })
      for (let i = 0; i < 3; i++) {
        assert.deepStrictEqual(kindOf(yield* sync.fetch([blobOf(a)])), Option.some(["local", "StorageFailed", "later"]))
      }
    })
  )

  it.effect("moves a blob once for many who want it", () =>
    Effect.gen(function* () {
      const [here, there] = [local(), remote()]
      yield* fill(there, a)
      let reads = 0
      const gate = yield* Deferred.make<void>()
      const counted: Store = {
        ...there,
        get: (blob) =>
          Stream.unwrap(
            Effect.gen(function* () {
              reads++
              yield* Deferred.await(gate)
              return there.get(blob)
            })
          )
      }
      const sync = yield* syncOf(here, counted)
      const all = yield* Effect.forkChild(
        Effect.all(
          Array.from({ length: 10 }, () => sync.fetch([blobOf(a)])),
          { concurrency: "unbounded" }
        ),
        { startImmediately: true }
      )
      yield* Deferred.succeed(gate, undefined)
      const outcomes = yield* Fiber.join(all)
      assert.isTrue(outcomes.every(Option.isNone))
      assert.strictEqual(reads, 1)
    })
  )

  it.effect("bounds the bytes on their way, and lets a larger blob go alone", () =>
    Effect.gen(function* () {
      const [here, there] = [local(), remote()]
      const contents = Array.from({ length: 6 }, (_, i) => String(i).repeat(i === 0 ? 40_000 : 6_000))
      yield* fill(here, ...contents)
      let flying = 0
      let most = 0
      const counted: Store = {
        ...there,
        put: (blob, content) =>
          Effect.acquireUseRelease(
            Effect.sync(() => (most = Math.max(most, (flying += blob.size)))),
            () => Effect.andThen(Effect.yieldNow, there.put(blob, content)),
            () => Effect.sync(() => (flying -= blob.size))
          )
      }
      const sync = yield* syncOf(here, counted, { maxBytes: 16_384, concurrency: 6 })
      assert.deepStrictEqual(yield* sync.publish(contents.map(blobOf)), Option.none())
      assert.strictEqual(most, 40_000)
      assert.deepStrictEqual(yield* there.missing(contents.map(blobOf)), [])
    })
  )

  it.effect("bounds how many are on their way, whoever asks", () =>
    Effect.gen(function* () {
      const [here, there] = [local(), remote()]
      const contents = Array.from({ length: 12 }, (_, i) => `content ${i}`)
      yield* fill(there, ...contents)
      let flying = 0
      let most = 0
      const counted: Store = {
        ...there,
        get: (blob) =>
          Stream.unwrap(
            Effect.as(
              Effect.acquireRelease(
                Effect.sync(() => (most = Math.max(most, ++flying))),
                () => Effect.sync(() => flying--)
              ),
              Stream.mapEffect(there.get(blob), (chunk) => Effect.as(Effect.yieldNow, chunk))
            )
          )
      }
      const sync = yield* syncOf(here, counted, { concurrency: 3 })
      const fetches = contents.map((content) => sync.fetch([blobOf(content)]))
      assert.isTrue((yield* Effect.all(fetches, { concurrency: "unbounded" })).every(Option.isNone))
      assert.strictEqual(most, 3)
    })
  )

  it.effect("gives a large blob the time that it needs, and a silent tier no more", () =>
    Effect.gen(function* () {
      const [here, there] = [local(), remote()]
      yield* fill(here, a)
      const silent = { ...there, put: () => Effect.never }
      const sync = yield* syncOf(here, silent, { slowest: 1, guard: { deadline: "10 seconds" } })
      const fiber = yield* Effect.forkChild(sync.publish([blobOf(a)]), { startImmediately: true })
      yield* TestClock.adjust("18 seconds")
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(kindOf(yield* Fiber.join(fiber)), Option.some(["artifact", "TimedOut", "away"]))
    })
  )

  it.effect("has nowhere to share to without a shared tier", () =>
    Effect.gen(function* () {
      const sync = yield* ArtifactSync.ArtifactSync
      assert.isUndefined(sync.tier)
      assert.deepStrictEqual(yield* sync.publish([]), Option.none())
      assert.deepStrictEqual(kindOf(yield* sync.fetch([blobOf(a)])), Option.some(["artifact", "Unsupported", "never"]))
    }).pipe(Effect.provide(ArtifactSync.layerLocal))
  )
})

describe("CombinedArtifactStore", () => {
  const temporary = Effect.acquireRelease(
    Effect.sync(() => Fs.mkdtempSync(join(tmpdir(), "strata-combined-"))),
    (directory) => Effect.sync(() => Fs.rmSync(directory, { recursive: true, force: true }))
  )

  const combined = (here: Store, there: Store) =>
    ArtifactStore.ArtifactStore.pipe(
      Effect.provide(
        CombinedArtifactStore.layer.pipe(
          Layer.provideMerge(ArtifactSync.layer(Effect.succeed(there))),
          Layer.provide(Layer.succeed(ArtifactStore.ArtifactStore, here))
        )
      )
    )

  const read = (store: Store, content: string) =>
    Effect.provideService(ArtifactStore.bytes(blobOf(content)), ArtifactStore.ArtifactStore, store)

  it.effect("reads here what is here, and brings here what is not", () =>
    Effect.gen(function* () {
      const [here, there] = [local(), remote()]
      yield* fill(here, a)
      yield* fill(there, b)
      const asked: Array<string> = []
      const store = yield* combined(here, {
        ...there,
        get: (blob) => {
          asked.push(blob.digest)
          return there.get(blob)
        }
      })
      assert.strictEqual(String(yield* read(store, a)), a)
      assert.deepStrictEqual(asked, [])
      assert.strictEqual(String(yield* read(store, b)), b)
      assert.strictEqual(String(yield* read(store, b)), b)
      assert.deepStrictEqual(asked, [blobOf(b).digest])
      assert.strictEqual((yield* Effect.flip(read(store, c))).reason._tag, "ArtifactMissing")
    })
  )

  const corruptFile = Effect.fnUntraced(function* (content: string) {
    const directory = yield* temporary
    const store = yield* ArtifactStore.makeFileSystem({ directory })
    yield* fill(store, content)
    const { digest } = blobOf(content)
    const file = join(directory, "blobs", digest.slice(0, 2), digest)
    const flipped = Fs.readFileSync(file)
    flipped[1]! ^= 1
    Fs.writeFileSync(file, flipped)
    return { store, file }
  })

  for (const [title, content] of [
    ["a blob", "some content"],
    ["a blob that is not held in memory", "0123456789abcdef".repeat(100_000)]
  ] as const) {
    it.effect(`heals ${title} that is corrupt here, without a byte of what was`, () =>
      Effect.gen(function* () {
        const { file, store: here } = yield* corruptFile(content)
        const there = remote()
        yield* fill(there, content)
        const store = yield* combined(here, there)
        assert.strictEqual(String(yield* read(store, content)), content)
        assert.strictEqual(Fs.readFileSync(file, "utf8"), content)
      })
    )
  }

  it.effect("never gives corrupt content that nobody can heal", () =>
    Effect.gen(function* () {
      const { store: here } = yield* corruptFile(a)
      const store = yield* combined(here, remote())
      const seen: Array<Uint8Array> = []
      const exit = yield* Effect.exit(
        Stream.runForEach(store.get(blobOf(a)), (chunk) => Effect.sync(() => seen.push(chunk)))
      )
      assert.strictEqual(exit._tag, "Failure")
      assert.deepStrictEqual(seen, [])
    })
  )
})
