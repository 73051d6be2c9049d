/** What the tests of several shared tiers hold them to, on an entry and a blob of their own. */
import { assert } from "@effect/vitest"
import { type ArtifactStore, bytes, ArtifactStore as Store } from "@strata/cache/ArtifactStore"
import { Recording } from "@strata/cache/CacheEntry"
import type { CacheError } from "@strata/cache/CacheError"
import type { StepCache } from "@strata/cache/StepCache"
import { Buffer } from "node:buffer"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { blobOf, entryOf } from "./http.ts"

interface Tier {
  readonly entries: StepCache["Service"]
  readonly blobs: ArtifactStore["Service"]
}

export const content = Buffer.from("some content")

export const blob = blobOf(content)

export const collect = (stream: Stream.Stream<Uint8Array, CacheError>) =>
  Effect.map(Stream.runCollect(stream), Buffer.concat)

export const reasonOf = <A>(effect: Effect.Effect<A, CacheError>) =>
  Effect.map(Effect.flip(effect), (error) => error.reason)

/** Entries are taken out while others put them: never one of another recording than was asked for. */
export const evictsByRecording = Effect.fnUntraced(function* ({ entries }: Tier, rounds: number) {
  const [old, fresh] = [entryOf("a"), { ...entryOf("a"), metadata: entryOf("b").metadata }]
  const other = Recording.make("f".repeat(32))
  for (let round = 0; round < rounds; round++) {
    yield* entries.put(old)
    const reason = { _tag: "DigestMismatch" } as const
    assert.isFalse(yield* entries.evict(old.key, { recording: other }))
    const [evicted, again] = yield* Effect.all(
      [
        entries.quarantine(old.key, { recording: old.metadata.recording, reason }),
        Effect.andThen(entries.evict(old.key), entries.put(fresh))
      ],
      { concurrency: 2 }
    )
    assert.isBoolean(evicted)
    assert.strictEqual(again._tag, "Inserted")
    assert.strictEqual((yield* entries.get(old.key))._tag, "Hit")
    assert.isTrue(yield* entries.evict(old.key, { recording: fresh.metadata.recording }))
  }
})

/** A tier that takes entries of 1,000 bytes and blobs of 10. Gives the entry that is too large. */
export const refusesWhatIsTooLarge = Effect.fnUntraced(function* ({ blobs, entries }: Tier) {
  const large = entryOf("a", { result: JSON.stringify("x".repeat(1000)) })
  assert.deepInclude(yield* reasonOf(entries.put(large)), { _tag: "TooLarge", limit: 1000 })
  const refused = { _tag: "TooLarge", size: content.length, limit: 10 } as const
  assert.deepInclude(yield* reasonOf(blobs.put(blob, Stream.die("asked for"))), refused)
  assert.deepInclude(yield* reasonOf(blobs.add(Stream.make(content))), refused)
  assert.deepInclude(yield* reasonOf(collect(blobs.get(blob))), refused)
  return large
})

/** A reader of what `writer` has serves it, and changes nothing. */
export const onlyReads = Effect.fnUntraced(function* (writer: Tier, reader: Tier) {
  const entry = entryOf("a")
  yield* writer.entries.put(entry)
  assert.strictEqual((yield* reader.entries.get(entry.key))._tag, "Hit")
  const reason = { _tag: "WrongKey" } as const
  const refused = [
    reader.entries.put(entry),
    reader.entries.evict(entry.key),
    reader.entries.quarantine(entry.key, { recording: entry.metadata.recording, reason }),
    reader.blobs.put(blob, Stream.die("asked for")),
    reader.blobs.add(Stream.die("asked for")),
    reader.blobs.remove(blob.digest)
  ]
  for (const effect of refused) {
    assert.strictEqual((yield* reasonOf(Effect.asVoid<unknown, CacheError, never>(effect)))._tag, "ReadOnly")
  }
  assert.strictEqual((yield* writer.entries.get(entry.key))._tag, "Hit")
  assert.strictEqual((yield* reasonOf(Stream.runDrain(writer.blobs.list)))._tag, "Unsupported")
})

export const servesAccessors = Effect.fnUntraced(function* ({ blobs }: Tier) {
  yield* blobs.put(blob, Stream.make(content))
  assert.deepStrictEqual(yield* Effect.provideService(bytes(blob), Store, blobs), content)
})
