import { assert, describe, it } from "@effect/vitest"
import { type Digest, sha256 } from "@strata/durable/Digest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { Buffer } from "node:buffer"
import * as Fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as ArtifactStore from "../src/ArtifactStore.ts"
import type { Blob } from "../src/CacheEntry.ts"

type Store = ArtifactStore.ArtifactStore["Service"]

/** Few contents, so that operations meet; the first one is empty. */
const contents = Array.from({ length: 6 }, (_, i) => Buffer.alloc(i * 40_000, i))
const Which = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: contents.length - 1 }))

const Operation = Schema.TaggedUnion({
  Add: { which: Which },
  Put: { which: Which, content: Which },
  Get: { which: Which },
  Missing: { which: Schema.Array(Which).check(Schema.isMaxLength(5)) },
  Remove: { which: Which },
  List: {}
})
type Operation = typeof Operation.Type

const blobs: ReadonlyArray<Blob> = contents.map((content) => ({ digest: sha256(content), size: content.length }))

const inChunks = (which: number): Stream.Stream<Uint8Array> => {
  const content = contents[which]!
  return Stream.make(content.subarray(0, 1_000), content.subarray(1_000))
}

/** What an operation comes to on a store, as a value that can be compared. */
const run = (store: Store, operation: Operation): Effect.Effect<unknown> => {
  const outcome: Effect.Effect<unknown, unknown> = Effect.suspend(() => {
    switch (operation._tag) {
      case "Add":
        return store.add(inChunks(operation.which))
      case "Put":
        return store.put(blobs[operation.which]!, inChunks(operation.content))
      case "Get":
        return Effect.map(Stream.runCollect(store.get(blobs[operation.which]!)), (chunks) =>
          sha256(Buffer.concat(chunks))
        )
      case "Missing":
        return store.missing(operation.which.map((which) => blobs[which]!))
      case "Remove":
        return store.remove(blobs[operation.which]!.digest)
      case "List":
        return Effect.map(Stream.runCollect(store.list), (listed) =>
          listed.toSorted((one, other) => (one.digest < other.digest ? -1 : 1))
        )
    }
  })
  return Effect.match(outcome, {
    onSuccess: (answer) => ({ answer }),
    onFailure: (error) => ({ error: error instanceof Error ? error.message : String(error) })
  })
}

/** The model: what is there, and since when. */
const model = () => {
  const there = new Map<Digest, { size: number; touchedAt: number }>()
  return (operation: Operation, now: number): unknown => {
    switch (operation._tag) {
      case "Add":
      case "Put": {
        const { digest, size } = blobs[operation.which]!
        if (operation._tag === "Put" && operation.content !== operation.which && !there.has(digest)) return "corrupt"
        there.set(digest, { size, touchedAt: now })
        return operation._tag === "Add" ? { digest, size } : undefined
      }
      case "Get":
        return there.has(blobs[operation.which]!.digest) ? blobs[operation.which]!.digest : "missing"
      case "Missing":
        return [...new Set(operation.which)].map((which) => blobs[which]!).filter(({ digest }) => !there.has(digest))
      case "Remove":
        return there.delete(blobs[operation.which]!.digest)
      case "List":
        return [...there]
          .map(([digest, { size, touchedAt }]) => ({ digest, size, touchedAt }))
          .toSorted((one, other) => (one.digest < other.digest ? -1 : 1))
    }
  }
}

describe("ArtifactStore", () => {
  it.effect.prop(
    "does the same in memory, on files and in the model, whatever is done",
    { operations: Schema.Array(Operation).check(Schema.isMinLength(10), Schema.isMaxLength(40)) },
    ({ operations }) =>
      Effect.gen(function* () {
        const directory = yield* Effect.acquireRelease(
          Effect.sync(() => Fs.mkdtempSync(join(tmpdir(), "strata-artifacts-"))),
          (directory) => Effect.sync(() => Fs.rmSync(directory, { recursive: true, force: true }))
        )
        const memory = ArtifactStore.makeMemory()
        const files = yield* ArtifactStore.makeFileSystem({ directory })
        const expected = model()
        let now = 0
        for (const operation of operations) {
          yield* TestClock.adjust(1_000)
          now += 1_000
          const answer = yield* run(memory, operation)
          assert.deepStrictEqual(yield* run(files, operation), answer)
          const wanted = expected(operation, now)
          if (wanted === "corrupt" || wanted === "missing") assert.property(answer, "error")
          else assert.deepStrictEqual(answer, { answer: wanted })
        }
        assert.deepStrictEqual(Fs.readdirSync(join(directory, "incoming")), [])
      }),
    { arbitrary: { runs: 40, seed: 39 } }
  )
})
