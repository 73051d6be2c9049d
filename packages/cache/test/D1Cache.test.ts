import { afterAll, assert, describe, it } from "@effect/vitest"
import * as ArtifactStore from "@strata/cache/ArtifactStore"
import type * as D1Cache from "@strata/cache/D1Cache"
import type { MissReason } from "@strata/cache/Lookup"
import * as Entries from "@strata/cache/testing/entries"
import { sha256 } from "@strata/durable/Digest"
import * as D1 from "@strata/durable/testing/d1"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { administer, moody, pruneAt, tierAt } from "./support/d1.ts"
import { reasonOf } from "./support/sharedTier.ts"

const d1 = await D1.forThisFile()
afterAll(d1.stop)

const key = Entries.keyOf("a")

describe.skipIf(!d1.isAvailable)("D1Cache", () => {
  // -------------------------------------------------------------------------------------------------------------------
  // the database
  // -------------------------------------------------------------------------------------------------------------------

  it.live("a database that is away keeps nothing from being built, and is used as soon as it is back", () =>
    Effect.gen(function* () {
      const { db, state } = moody(yield* d1.database)
      state.mood = "lost"
      const entries = yield* tierAt(db)
      const entry = yield* Entries.entryOf(key, 1)
      assert.strictEqual((yield* reasonOf(entries.get(key)))._tag, "Unreachable")
      assert.strictEqual((yield* reasonOf(entries.put(entry)))._tag, "Unreachable")
      state.mood = "work"
      assert.strictEqual((yield* entries.put(entry))._tag, "Inserted")
      state.mood = "lost"
      assert.strictEqual((yield* reasonOf(entries.evict(key)))._tag, "Unreachable")
      state.mood = "work"
      assert.strictEqual((yield* entries.get(key))._tag, "Hit")
    })
  )

  it.effect("a database that does not answer is given up in time, whether or not the table was looked for", () =>
    Effect.gen(function* () {
      const { db, state } = moody(yield* d1.database)
      const entries = yield* tierAt(db)
      for (const before of [Effect.void, entries.get(key)]) {
        state.mood = "work"
        yield* before
        state.mood = "silent"
        const { asked } = state
        const waiting = yield* Effect.forkChild(reasonOf(entries.get(key)))
        while (state.asked === asked) yield* Effect.yieldNow
        yield* TestClock.adjust("15 seconds")
        const reason = yield* Fiber.join(waiting)
        assert.deepStrictEqual(reason._tag === "TimedOut" && [reason.phase, reason.afterMs], ["response", 15_000])
      }
    })
  )

  it.live("what the database says of a statement is told by its code, without a word of what was sent", () =>
    Effect.gen(function* () {
      const db = yield* d1.database
      const entries = yield* tierAt(db)
      yield* entries.get(key)
      const sql = yield* administer(db)
      yield* sql.unsafe("DROP TABLE strata_shared_entry")
      const reason = yield* reasonOf(entries.get(key))
      assert.deepStrictEqual(reason._tag === "Unexpected" && reason.detail, "an error of the database (SQLITE_ERROR)")
    })
  )

  // -------------------------------------------------------------------------------------------------------------------
  // entries
  // -------------------------------------------------------------------------------------------------------------------

  it.live("a row that is damaged is a miss that says why, and the next put replaces it", () =>
    Effect.gen(function* () {
      const db = yield* d1.database
      const entries = yield* tierAt(db)
      const sql = yield* administer(db)
      const entry = yield* Entries.entryOf(key, { a: 1 })
      const damages: ReadonlyArray<readonly [string, MissReason["_tag"]]> = [
        ["result = '{}'", "DigestMismatch"],
        ["note = '{}'", "Undecodable"],
        [`recording = '${"0".repeat(32)}'`, "Undecodable"],
        [`result = '{"a": 1}', digest = '${sha256('{"a": 1}')}'`, "Undecodable"]
      ]
      yield* entries.put(entry)
      for (const [damage, expected] of damages) {
        yield* sql.unsafe(`UPDATE strata_shared_entry SET ${damage}`)
        const found = yield* entries.get(key)
        assert.strictEqual(found._tag === "Miss" && found.reason._tag, expected)
        assert.strictEqual((yield* entries.put(entry))._tag, "Inserted")
        assert.strictEqual((yield* entries.get(key))._tag, "Hit")
      }
    })
  )

  it.live("takes entries up to its bound, which fits into a row, and refuses larger ones", () =>
    Effect.gen(function* () {
      const entries = yield* tierAt(yield* d1.database)
      const largest = yield* Entries.entryOf(key, "x".repeat(1_899_000))
      assert.strictEqual((yield* entries.put(largest))._tag, "Inserted")
      const found = yield* entries.get(key)
      assert.deepStrictEqual(found._tag === "Hit" && found.entry, largest)
      assert.strictEqual((yield* entries.put(largest))._tag, "ExistingSame")
      const larger = yield* Entries.entryOf(Entries.keyOf("b"), "x".repeat(1_900_000))
      const reason = yield* reasonOf(entries.put(larger))
      assert.deepStrictEqual(reason._tag === "TooLarge" && reason.limit, 1_900_000)
    })
  )

  it.live("asks about blobs only where it is told which store has them, and then replaces what lacks one", () =>
    Effect.gen(function* () {
      const db = yield* d1.database
      const blobs = yield* ArtifactStore.ArtifactStore
      const trusting = yield* tierAt(db)
      const asking = yield* tierAt(db, { blobs })
      const lost = yield* Entries.entryOf(key, 1, {
        by: "lost",
        artifacts: [{ name: "out", digest: sha256("lost"), size: 4 }]
      })
      assert.strictEqual((yield* trusting.put(lost))._tag, "Inserted")
      assert.strictEqual((yield* trusting.get(key))._tag, "Hit")
      const found = yield* asking.get(key)
      assert.strictEqual(found._tag === "Miss" && found.reason._tag, "ArtifactMissing")
      const whole = yield* Entries.entryOf(key, 2, { artifacts: [yield* Entries.artifactOf("out", "here")] })
      assert.strictEqual((yield* trusting.put(whole))._tag, "Conflict")
      assert.strictEqual((yield* asking.put(whole))._tag, "Inserted")
      assert.strictEqual((yield* asking.get(key))._tag, "Hit")
    }).pipe(Effect.provide(ArtifactStore.layerMemory()))
  )

  it.live("read-only creates nothing, says what is missing, serves as soon as it is there, and changes nothing", () =>
    Effect.gen(function* () {
      const db = yield* d1.database
      const reader = yield* tierAt(db, { readOnly: true })
      const missing = yield* reasonOf(reader.get(key))
      assert.include(missing._tag === "Invalid" && missing.detail, "strata_shared_entry")
      const sql = yield* administer(db)
      assert.deepStrictEqual(yield* sql`SELECT name FROM sqlite_master WHERE name LIKE 'strata%'`, [])
      const entry = yield* Entries.entryOf(key, 1)
      yield* (yield* tierAt(db)).put(entry)
      yield* sql`UPDATE strata_shared_entry SET used_at = 0`
      const found = yield* reader.get(key)
      assert.deepStrictEqual(found._tag === "Hit" && found.entry, entry)
      const { recording } = entry.metadata
      const refusals = [
        Effect.asVoid(reader.put(entry)),
        Effect.asVoid(reader.evict(key)),
        Effect.asVoid(reader.quarantine(key, { recording, reason: { _tag: "WrongKey" } })),
        Effect.asVoid(pruneAt(db, {}, { readOnly: true }))
      ]
      for (const refusal of refusals) assert.strictEqual((yield* reasonOf(refusal))._tag, "ReadOnly")
      assert.deepStrictEqual(yield* sql`SELECT used_at FROM strata_shared_entry`, [{ used_at: 0 }])
    })
  )

  // -------------------------------------------------------------------------------------------------------------------
  // pruning
  // -------------------------------------------------------------------------------------------------------------------

  it.live("a hit writes its use down once in a while, and what was used last stays", () =>
    Effect.gen(function* () {
      const db = yield* d1.database
      const entries = yield* tierAt(db)
      const sql = yield* administer(db)
      const names = ["a", "b", "c", "d"]
      for (const name of names) yield* entries.put(yield* Entries.entryOf(Entries.keyOf(name), name))
      const left = Effect.map(
        Effect.forEach(names, (name) => Effect.map(entries.get(Entries.keyOf(name)), ({ _tag }) => [name, _tag])),
        (found) => found.flatMap(([name, tag]) => (tag === "Hit" ? [name] : []))
      )
      const twoDays = 2 * 24 * 3_600_000
      yield* sql`UPDATE strata_shared_entry SET used_at = used_at - ${twoDays} + id`
      yield* entries.get(Entries.keyOf("a"))
      const used = sql`SELECT 1 FROM strata_shared_entry WHERE key = ${Entries.keyOf("a")} AND used_at >= put_at`
      while ((yield* used).length === 0) yield* Effect.sleep("10 millis")

      assert.deepStrictEqual(yield* pruneAt(db, {}), { entries: 0, bytes: 0 })
      const [row] = yield* sql<{ bytes: number }>`
        SELECT octet_length(result) + octet_length(note) AS bytes FROM strata_shared_entry LIMIT 1`
      const bytes = row!.bytes
      assert.deepStrictEqual(yield* pruneAt(db, { maxEntries: 3 }), { entries: 1, bytes })
      assert.deepStrictEqual(yield* pruneAt(db, { maxBytes: 2 * bytes }), { entries: 1, bytes })
      assert.deepStrictEqual(yield* pruneAt(db, { maxAge: "1 day" }), { entries: 1, bytes })
      assert.deepStrictEqual(yield* left, ["a"])
    })
  )

  it.live("prunes more than it takes at a time", () =>
    Effect.gen(function* () {
      const db = yield* d1.database
      const sql = yield* administer(db)
      yield* (yield* tierAt(db)).get(key)
      yield* sql`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500)
        INSERT INTO strata_shared_entry (key, recording, digest, result, note, put_at, used_at)
        SELECT printf('%064d', i), printf('%032d', i), printf('%064d', i), '1', '{}', i, i FROM n`
      assert.deepStrictEqual(yield* pruneAt(db, { maxEntries: 10 }), { entries: 2490, bytes: 2490 * 3 })
      assert.deepStrictEqual(yield* sql`SELECT min(used_at) AS oldest FROM strata_shared_entry`, [{ oldest: 2491 }])
    })
  )

  // -------------------------------------------------------------------------------------------------------------------
  // options
  // -------------------------------------------------------------------------------------------------------------------

  it.live("keeps prefixes apart, and refuses options that it cannot use", () =>
    Effect.gen(function* () {
      const db = yield* d1.database
      const one = yield* tierAt(db, { prefix: "one" })
      const two = yield* tierAt(db, { prefix: "two", name: "second" })
      yield* one.put(yield* Entries.entryOf(key, 1))
      assert.strictEqual((yield* two.get(key))._tag, "Miss")
      assert.deepStrictEqual([one.name, two.name], ["d1", "second"])
      const wrong: ReadonlyArray<D1Cache.D1CacheOptions> = [
        { prefix: "" },
        { prefix: "One" },
        { prefix: "x".repeat(31) },
        { maxEntryBytes: 0 },
        { maxEntryBytes: 1_900_001 },
        { maxEntryBytes: Number.NaN }
      ]
      for (const options of wrong) {
        const refused = Effect.scoped(tierAt(db, options))
        assert.strictEqual((yield* reasonOf(refused))._tag, "Invalid")
      }
    })
  )
})
