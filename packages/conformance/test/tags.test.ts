/** Faults on the tags of this project: what is built on a service holds its promises when the service does not. */
import { assert, describe, it } from "@effect/vitest"
import * as ArtifactStore from "@strata/cache/ArtifactStore"
import * as ArtifactSync from "@strata/cache/ArtifactSync"
import { CacheError, Unexpected, Unreachable } from "@strata/cache/CacheError"
import * as CacheSync from "@strata/cache/CacheSync"
import * as Lookup from "@strata/cache/Lookup"
import * as StepCache from "@strata/cache/StepCache"
import * as StepCacheStorage from "@strata/cache/StepCacheStorage"
import * as Entries from "@strata/cache/testing/entries"
import * as Fault from "@strata/conformance/Fault"
import * as Faults from "@strata/conformance/Faults"
import * as Changelog from "@strata/dirty-queue/Changelog"
import * as ChangeSignal from "@strata/dirty-queue/ChangeSignal"
import * as DurableWriter from "@strata/durable/DurableWriter"
import * as Event from "@strata/journal/Event"
import * as Journal from "@strata/journal/Journal"
import * as JournalStorage from "@strata/journal/JournalStorage"
import { StreamName } from "@strata/journal/StreamName"
import * as SqliteClient from "@strata/sqlite/SqliteClient"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { ConnectionError, LockTimeoutError, SqlError } from "effect/sql/SqlError"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { Buffer } from "node:buffer"

const busy = new SqlError({ reason: new LockTimeoutError({ cause: "busy" }) })
const lost = new SqlError({ reason: new ConnectionError({ cause: "lost" }) })

const database = Layer.merge(DurableWriter.layer(), ChangeSignal.layer).pipe(
  Layer.provideMerge(SqliteClient.layer({ filename: ":memory:", synchronous: "OFF" }))
)

const stream = StreamName.make("test")
const Noted = Event.make("noted", Schema.Struct({ text: Schema.String }))
const note = (text: string) => Journal.Journal.use((journal) => journal.append(stream, [Noted.make({ text })]))
const notes = Effect.map(
  Journal.Journal.use((journal) => journal.read({ stream })),
  (entries) => entries.map(({ payload }) => payload)
)

describe("JournalStorage", () => {
  const withFaults = (rules: ReadonlyArray<Faults.Rule<JournalStorage.JournalStorage["Service"]>>) =>
    Journal.layer().pipe(
      Layer.provide(
        Faults.make(JournalStorage.JournalStorage, { rules }).layer.pipe(Layer.provide(JournalStorage.layerSql))
      ),
      Layer.provideMerge(database)
    )

  it.live("an append whose answer is a conflict is run again with its write, and is there once", () =>
    Effect.gen(function* () {
      yield* DurableWriter.write(note("a"))
      assert.deepStrictEqual(yield* notes, [{ text: "a" }])
    }).pipe(
      Effect.provide(withFaults([{ operation: "append", fault: Fault.fail(busy, "after"), when: Fault.first(3) }]))
    )
  )

  it.effect("an append that fails takes its write with it", () =>
    Effect.gen(function* () {
      const both = Effect.andThen(note("a"), note("b"))
      assert.isTrue(Exit.isFailure(yield* Effect.exit(DurableWriter.write(both))))
      assert.deepStrictEqual(yield* notes, [])
    }).pipe(Effect.provide(withFaults([{ operation: "append", fault: Fault.fail(lost, "after"), when: Fault.nth(2) }])))
  )
})

describe("DurableWriter", () => {
  it.effect("a commit whose answer is lost has happened", () => {
    const faults = Faults.make(DurableWriter.DurableWriter, {
      rules: [{ operation: "write", fault: Fault.fail(lost, "after"), when: Fault.nth(1) }]
    })
    return Effect.gen(function* () {
      assert.isTrue(Exit.isFailure(yield* Effect.exit(DurableWriter.write(note("a")))))
      yield* DurableWriter.write(note("b"))
      assert.deepStrictEqual(yield* notes, [{ text: "a" }, { text: "b" }])
    }).pipe(
      Effect.provide(
        Journal.layer().pipe(
          Layer.provide(JournalStorage.layerSql),
          Layer.provideMerge(faults.layer),
          Layer.provide(database)
        )
      )
    )
  })
})

describe("StepCacheStorage", () => {
  it.effect("whatever of it fails in a put, the cache and its journal agree", () => {
    const faults = Faults.make(StepCacheStorage.StepCacheStorage)
    const layer = StepCache.layer().pipe(
      Layer.provide(faults.layer.pipe(Layer.provide(StepCacheStorage.layerSql))),
      Layer.provideMerge(Layer.mergeAll(Journal.layerSql(), Changelog.layer(), ArtifactStore.layerMemory())),
      Layer.provideMerge(database)
    )
    return Effect.gen(function* () {
      const cache = yield* StepCache.StepCache
      const key = Entries.keyOf("a")
      const entry = yield* Entries.entryOf(key, 1)
      const troubles: ReadonlyArray<Faults.Rule<StepCacheStorage.StepCacheStorage["Service"]>> = [
        { operation: "find", fault: Fault.fail(lost) },
        { operation: "insert", fault: Fault.fail(lost) },
        { operation: "insert", fault: Fault.fail(lost, "after") },
        { operation: "insert", fault: Fault.die("bug") }
      ]
      for (const trouble of troubles) {
        yield* faults.set([trouble])
        assert.isTrue(Exit.isFailure(yield* Effect.exit(cache.put(entry))))
        yield* faults.clear
        assert.deepStrictEqual(yield* cache.get(key), Lookup.absent)
        assert.deepStrictEqual(yield* Journal.Journal.use((journal) => journal.readAll({})), [])
      }
      assert.strictEqual((yield* cache.put(entry))._tag, "Inserted")
    }).pipe(Effect.provide(layer))
  })
})

describe("a shared StepCache", () => {
  const setUp = (rules: ReadonlyArray<Faults.Rule<StepCache.StepCache["Service"]>>) =>
    Effect.gen(function* () {
      const remote = Faults.make(StepCache.StepCache, { rules }).wrap(yield* StepCache.make({ name: "remote" }))
      const sync = yield* CacheSync.make(Effect.succeed(remote), { guard: { deadline: "3 seconds" } })
      return { remote, sync, entry: yield* Entries.entryOf(Entries.keyOf("a"), { a: 1 }) }
    })

  const layer = StepCache.layerSql({ name: "local" }).pipe(
    Layer.provideMerge(Layer.mergeAll(Journal.layerSql(), Changelog.layer(), ArtifactStore.layerMemory())),
    Layer.provideMerge(database)
  )

  it.effect("that hangs is a miss at the deadline", () =>
    Effect.gen(function* () {
      const { entry, sync } = yield* setUp([{ operation: "get", fault: Fault.hang() }])
      const fiber = yield* Effect.forkChild(sync.lookup(entry.key))
      yield* TestClock.adjust("3 seconds")
      const found = yield* Fiber.join(fiber)
      assert.deepStrictEqual(found, Lookup.miss({ _tag: "Unavailable", error: "TimedOut" }))
    }).pipe(Effect.provide(layer))
  )

  it.effect("that lies is a miss that says how", () =>
    Effect.gen(function* () {
      const { entry, remote, sync } = yield* setUp(
        Faults.script("get", [
          Fault.answer((found: Lookup.Lookup) =>
            found._tag === "Hit" ? Lookup.hit({ ...found.entry, result: "{}" }, found.tier) : found
          ),
          Fault.answer((found: Lookup.Lookup) =>
            found._tag === "Hit" ? Lookup.hit({ ...found.entry, key: Entries.keyOf("b") }, found.tier) : found
          )
        ])
      )
      yield* remote.put(entry)
      assert.deepStrictEqual(yield* sync.lookup(entry.key), Lookup.miss({ _tag: "DigestMismatch" }))
      assert.deepStrictEqual(yield* sync.lookup(entry.key), Lookup.miss({ _tag: "WrongKey" }))
      assert.strictEqual((yield* sync.lookup(entry.key))._tag, "Hit")
    }).pipe(Effect.provide(layer))
  )

  it.effect("that fails refuses a publication, and takes it the next time", () =>
    Effect.gen(function* () {
      const away = new CacheError({ reason: new Unreachable({ tier: "remote", detail: "502", status: 502 }) })
      const broken = new CacheError({ reason: new Unexpected({ tier: "remote", detail: "500", status: 500 }) })
      const { entry, sync } = yield* setUp(Faults.script("put", [Fault.fail(away), Fault.fail(broken, "after")]))
      assert.strictEqual(Option.getOrThrow(yield* sync.publishEntry(entry)).kind, "Unreachable")
      assert.strictEqual(Option.getOrThrow(yield* sync.publishEntry(entry)).kind, "Unexpected")
      // It was there since the answer that was lost.
      assert.deepStrictEqual(yield* sync.publishEntry(entry), Option.none())
    }).pipe(Effect.provide(layer))
  )
})

describe("ArtifactStore", () => {
  const content = Buffer.alloc(200_000, "0123456789")
  const away = new CacheError({ reason: new Unreachable({ tier: "remote", detail: "reset" }) })

  const setUp = (rules: ReadonlyArray<Faults.Rule<ArtifactStore.ArtifactStore["Service"]>>) =>
    Effect.gen(function* () {
      const faults = Faults.make(ArtifactStore.ArtifactStore, { rules })
      const whole = { here: ArtifactStore.makeMemory(), there: ArtifactStore.makeMemory({ name: "remote" }) }
      const sync = yield* ArtifactSync.make(Effect.succeed(faults.wrap(whole.there)), {
        guard: { failures: 100 }
      }).pipe(Effect.provideService(ArtifactStore.ArtifactStore, whole.here))
      return {
        faults,
        sync,
        whole,
        chunks: Stream.fromIterable([content.subarray(0, 70_000), content.subarray(70_000)])
      }
    })

  it.effect("content that is cut off, corrupted or broken off on its way never gets here", () =>
    Effect.gen(function* () {
      const { chunks, sync, whole } = yield* setUp(
        Faults.script("get", [
          Fault.fail(away),
          Fault.fail(away, 100_000),
          Fault.fail(away, "after"),
          Fault.truncate(100_000),
          Fault.truncate(0),
          Fault.corrupt
        ])
      )
      const blob = yield* whole.there.add(chunks)
      for (let i = 0; i < 6; i++) {
        assert.isTrue(Option.isSome(yield* sync.fetch([blob])))
        assert.deepStrictEqual(yield* whole.here.missing([blob]), [blob])
      }
      assert.deepStrictEqual(yield* sync.fetch([blob]), Option.none())
      assert.deepStrictEqual(yield* whole.here.missing([blob]), [])
    })
  )

  it.effect("content that is cut off, corrupted or broken off on its way never gets there", () =>
    Effect.gen(function* () {
      const { chunks, sync, whole } = yield* setUp(
        Faults.script("put", [
          Fault.fail(away),
          Fault.fail(away, 100_000),
          Fault.truncate(100_000),
          Fault.truncate(0),
          Fault.corrupt
        ])
      )
      const blob = yield* whole.here.add(chunks)
      for (let i = 0; i < 5; i++) {
        assert.isTrue(Option.isSome(yield* sync.publish([blob])))
        assert.deepStrictEqual(yield* whole.there.missing([blob]), [blob])
      }
      assert.deepStrictEqual(yield* sync.publish([blob]), Option.none())
    })
  )

  it.effect("a tier that forgets what it took is found out", () =>
    Effect.gen(function* () {
      const { chunks, faults, sync, whole } = yield* setUp([])
      const blob = yield* whole.here.add(chunks)
      yield* faults.set([{ operation: "missing", fault: Fault.answer(() => [blob]) }])
      assert.strictEqual(Option.getOrThrow(yield* sync.publish([blob])).kind, "ArtifactMissing")
    })
  )

  it.effect("by chance, with a seed: in the end everything is everywhere", () =>
    Effect.gen(function* () {
      const { faults, sync, whole } = yield* setUp([
        { operation: "get", fault: Fault.truncate(10), when: Fault.chance(0.3) },
        { operation: "put", fault: Fault.fail(away, "after"), when: Fault.chance(0.3) },
        { operation: "missing", fault: Fault.fail(away), when: Fault.chance(0.2) }
      ])
      const blobs = yield* Effect.forEach(
        Array.from({ length: 20 }, (_, i) => `content ${i}`.repeat(i)),
        (text, i) => (i % 2 === 0 ? whole.here : whole.there).add(Stream.make(Buffer.from(text)))
      )
      const mine = blobs.filter((_, i) => i % 2 === 0)
      const theirs = blobs.filter((_, i) => i % 2 === 1)
      const moved = Effect.gen(function* () {
        const refusals = [yield* sync.publish(mine), yield* sync.fetch(theirs)]
        return refusals.every(Option.isNone)
      })
      let rounds = 0
      while (!(yield* moved)) assert.isBelow(++rounds, 100)
      assert.deepStrictEqual(yield* whole.here.missing(blobs), [])
      assert.deepStrictEqual(yield* whole.there.missing(blobs), [])
      assert.isAbove((yield* faults.calls).filter(({ fault }) => fault !== undefined).length, 5)
    })
  )
})
