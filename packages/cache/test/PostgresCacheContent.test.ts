import type * as PgClient from "@effect/sql-pg/PgClient"
import { assert, describe, it } from "@effect/vitest"
import type { Blob } from "@strata/cache/CacheEntry"
import * as PostgresCache from "@strata/cache/PostgresCache"
import * as Entries from "@strata/cache/testing/entries"
import { sha256 } from "@strata/durable/Digest"
import * as Postgres from "@strata/durable/testing/postgres"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { Buffer } from "node:buffer"
import { administer, blobOf, bytesOf, missOf, read, tierOf } from "./support/postgres.ts"
import { reasonOf } from "./support/sharedTier.ts"

const key = Entries.keyOf("a")

describe.skipIf(!Postgres.isAvailable())("PostgresCache", () => {
  // -------------------------------------------------------------------------------------------------------------------
  // entries
  // -------------------------------------------------------------------------------------------------------------------

  it.live("keeps the signature of an entry", () =>
    Effect.gen(function* () {
      const { entries } = yield* tierOf()
      const signature = { keyId: "k", value: Buffer.from("signed").toString("base64") }
      const entry = { ...(yield* Entries.entryOf(key, 1)), signature }
      yield* entries.put(entry)
      const found = yield* entries.get(key)
      assert.deepStrictEqual(found._tag === "Hit" && found.entry, entry)
    })
  )

  const damages = [
    ["DigestMismatch", "result = '2'"],
    ["DigestMismatch", `digest = '${sha256("2")}'`],
    ["Undecodable", "note = '{}'"],
    ["Undecodable", "note = '['"],
    ["Undecodable", `recording = '${Entries.recordingOf("another")}'`],
    ["Undecodable", `note = replace(note, '"measure"', '""')`],
    ["Undecodable", `result = '{ }', digest = '${sha256("{ }")}'`]
  ] as const
  it.live("an entry that is damaged is a miss that says why, and the next put replaces it", () =>
    Effect.gen(function* () {
      const sql = yield* administer
      const { entries, options: all } = yield* tierOf()
      const table = `strata_${all.prefix}_entry`
      yield* entries.get(key)
      const checks = yield* sql<{ name: string }>`
        SELECT conname AS name FROM pg_constraint WHERE conrelid = ${table}::regclass AND contype = 'c'`
      for (const { name } of checks) yield* sql.unsafe(`ALTER TABLE ${table} DROP CONSTRAINT "${name}"`)
      for (const [i, [reason, damage]] of damages.entries()) {
        const key = Entries.keyOf(`damage ${i}`)
        const entry = yield* Entries.entryOf(key, 1)
        yield* entries.put(entry)
        yield* sql.unsafe(`UPDATE ${table} SET ${damage} WHERE key = '${key}'`)
        assert.strictEqual(missOf(yield* entries.get(key)), reason, damage)
        assert.strictEqual((yield* entries.put(entry))._tag, "Inserted", damage)
        const found = yield* entries.get(key)
        assert.deepStrictEqual(found._tag === "Hit" && found.entry, entry)
      }
    })
  )

  it.live("16 that replace a damaged entry put one", () =>
    Effect.gen(function* () {
      const sql = yield* administer
      const { entries, options: all } = yield* tierOf({ maxConnections: 8 })
      const table = `strata_${all.prefix}_entry`
      yield* entries.get(key)
      yield* sql.unsafe(`ALTER TABLE ${table} DROP CONSTRAINT strata_${all.prefix}_entry_check`)
      for (let round = 0; round < 10; round++) {
        const key = Entries.keyOf(`round ${round}`)
        yield* entries.put(yield* Entries.entryOf(key, "damaged"))
        yield* sql.unsafe(`UPDATE ${table} SET result = '0' WHERE key = '${key}'`)
        const outcomes = yield* Effect.forEach(
          Array.from({ length: 16 }, (_, i) => i),
          (i) => Effect.flatMap(Entries.entryOf(key, i + 1, { by: `${i}` }), entries.put),
          { concurrency: "unbounded" }
        )
        const count = (tag: string) => outcomes.filter(({ _tag }) => _tag === tag).length
        assert.deepStrictEqual([count("Inserted"), count("Conflict")], [1, 15])
      }
    })
  )

  it.live("the database refuses a result, and content, that is not of its digest", () =>
    Effect.gen(function* () {
      const sql = yield* administer
      const { blobs, entries, options: all } = yield* tierOf()
      yield* entries.put(yield* Entries.entryOf(key, 1))
      const blob = yield* blobs.add(Stream.make(bytesOf("content")))
      const refused = [
        `UPDATE strata_${all.prefix}_entry SET result = '2'`,
        `UPDATE strata_${all.prefix}_blob SET content = 'CONTENT'::BYTEA`,
        `UPDATE strata_${all.prefix}_blob SET size = 1`,
        `INSERT INTO strata_${all.prefix}_artifact (digest, entry) SELECT '${sha256("x")}', id FROM strata_${all.prefix}_entry`
      ]
      for (const statement of refused) {
        const error = yield* Effect.flip(sql.unsafe(statement))
        assert.strictEqual(error.reason._tag, "ConstraintError", statement)
      }
      assert.strictEqual(yield* read(blobs, blob), "content")
    })
  )

  it.live("bounds entries both ways", () =>
    Effect.gen(function* () {
      const { entries, options: all } = yield* tierOf()
      const small = yield* PostgresCache.stepCache({ ...all, maxEntryBytes: 1000 })
      const large = yield* Entries.entryOf(key, "é".repeat(600))
      const reason = yield* reasonOf(small.put(large))
      assert.deepStrictEqual(reason._tag === "TooLarge" && [reason.size, reason.limit], [1202, 1000])
      yield* entries.put(large)
      assert.strictEqual(missOf(yield* small.get(key)), "Undecodable")
      assert.strictEqual((yield* reasonOf(small.put(yield* Entries.entryOf(key, 1))))._tag, "Invalid")
      assert.strictEqual((yield* entries.get(key))._tag, "Hit")
      const sixteen = yield* Entries.entryOf(Entries.keyOf("b"), "x".repeat(16 * 1024 ** 2 - 2))
      assert.strictEqual((yield* entries.put(sixteen))._tag, "Inserted")
      const found = yield* entries.get(sixteen.key)
      assert.strictEqual(found._tag === "Hit" && found.entry.digest, sixteen.digest)
    })
  )

  it.live("artifacts elsewhere are trusted when they are to be", () =>
    Effect.gen(function* () {
      const { entries } = yield* tierOf({ artifacts: "trust" })
      const entry = yield* Entries.entryOf(key, 1, { artifacts: [{ name: "out", ...blobOf(bytesOf("elsewhere")) }] })
      assert.strictEqual((yield* entries.put(entry))._tag, "Inserted")
      assert.strictEqual((yield* entries.get(key))._tag, "Hit")
    })
  )

  // -------------------------------------------------------------------------------------------------------------------
  // blobs
  // -------------------------------------------------------------------------------------------------------------------

  /** Flips a byte of the content, past what the database checks. */
  const corrupt = Effect.fnUntraced(function* (sql: PgClient.PgClient, prefix: string, { digest }: Blob) {
    const table = `strata_${prefix}_blob`
    const checks = yield* sql<{ name: string; definition: string }>`
      SELECT conname AS name, pg_get_constraintdef(oid) AS definition FROM pg_constraint
      WHERE conrelid = ${table}::regclass AND contype = 'c'`
    for (const { name } of checks) yield* sql.unsafe(`ALTER TABLE ${table} DROP CONSTRAINT "${name}"`)
    yield* sql.unsafe(
      `UPDATE ${table} SET content = set_byte(content, 0, get_byte(content, 0) # 1) WHERE digest = '${digest}'`
    )
    for (const { definition, name } of checks) {
      yield* sql.unsafe(`ALTER TABLE ${table} ADD CONSTRAINT "${name}" ${definition} NOT VALID`)
    }
  })

  it.live(
    "a blob that is corrupt is never given, is missing once it was read, and is healed by the next put (C5)",
    () =>
      Effect.gen(function* () {
        const sql = yield* administer
        const { blobs, entries, options: all } = yield* tierOf()
        const content = bytesOf("the content")
        const blob = yield* blobs.add(Stream.make(content))
        const entry = yield* Entries.entryOf(key, 1, { artifacts: [{ name: "out", ...blob }] })
        yield* entries.put(entry)
        yield* corrupt(sql, all.prefix, blob)
        const other = yield* PostgresCache.artifactStore(all)
        assert.strictEqual((yield* reasonOf(read(blobs, blob)))._tag, "ArtifactCorrupt")
        // For everybody.
        assert.deepStrictEqual(yield* other.missing([blob]), [blob])
        assert.strictEqual((yield* reasonOf(read(other, blob)))._tag, "ArtifactMissing")
        assert.strictEqual(missOf(yield* entries.get(key)), "ArtifactMissing")
        yield* other.put(blob, Stream.make(content))
        assert.strictEqual(yield* read(blobs, blob), "the content")
        assert.strictEqual((yield* entries.get(key))._tag, "Hit")
        assert.deepInclude(yield* PostgresCache.prune(all, { grace: 0 }), { blobs: 0 })
      })
  )

  it.live("a put that comes later than an hour finds corrupt content, and so does any add", () =>
    Effect.gen(function* () {
      const sql = yield* administer
      const { blobs, options: all } = yield* tierOf()
      const content = bytesOf("the content")
      const blob = yield* blobs.add(Stream.make(content))
      yield* corrupt(sql, all.prefix, blob)
      yield* blobs.add(Stream.make(content))
      assert.strictEqual(yield* read(blobs, blob), "the content")
      yield* sql.unsafe(`UPDATE strata_${all.prefix}_blob SET touched_at = 0`)
      yield* corrupt(sql, all.prefix, blob)
      yield* blobs.put(blob, Stream.make(content))
      assert.strictEqual(yield* read(blobs, blob), "the content")
    })
  )

  it.live("bounds blobs both ways, by default to 4 MiB", () =>
    Effect.gen(function* () {
      const { blobs, options: all } = yield* tierOf()
      const most = new Uint8Array(4 * 1024 ** 2)
      const blob = yield* blobs.add(Stream.make(most))
      const chunks = yield* Stream.runCollect(blobs.get(blob))
      assert.strictEqual(Buffer.concat(chunks).length, most.length)
      const more = new Uint8Array(most.length + 1)
      for (const put of [blobs.put(blobOf(more), Stream.make(more)), blobs.add(Stream.make(more))]) {
        const reason = yield* reasonOf(Effect.asVoid(put))
        assert.deepStrictEqual(reason._tag === "TooLarge" && [reason.size, reason.limit], [more.length, most.length])
      }
      const small = yield* PostgresCache.artifactStore({ ...all, maxBlobBytes: 1000 })
      assert.strictEqual((yield* reasonOf(Stream.runDrain(small.get(blob))))._tag, "TooLarge")
    })
  )

  it.live("lists blobs by pages with the time of the database, and takes them out", () =>
    Effect.gen(function* () {
      const { blobs } = yield* tierOf()
      const before = Date.now()
      const contents = Array.from({ length: 1003 }, (_, i) => bytesOf(`blob ${i}`))
      yield* Effect.forEach(contents, (content) => blobs.add(Stream.make(content)), { concurrency: 8, discard: true })
      const listed = yield* Stream.runCollect(blobs.list)
      assert.sameMembers(
        listed.map(({ digest }) => digest),
        contents.map((content) => sha256(content))
      )
      for (const { touchedAt } of listed) assert.isAtLeast(touchedAt, before - 1000)
      const [first] = listed
      assert.isTrue(yield* blobs.remove(first!.digest))
      assert.isFalse(yield* blobs.remove(first!.digest))
      assert.lengthOf(yield* Stream.runCollect(blobs.list), 1002)
    })
  )

  // -------------------------------------------------------------------------------------------------------------------
  // pruning
  // -------------------------------------------------------------------------------------------------------------------

  const fill = Effect.fnUntraced(function* (
    tier: Effect.Success<ReturnType<typeof tierOf>>,
    names: ReadonlyArray<string>
  ) {
    for (const name of names) {
      const blob = yield* tier.blobs.add(Stream.make(bytesOf(`blob of ${name}`)))
      const artifacts = [{ name: "out", ...blob }]
      yield* tier.entries.put(yield* Entries.entryOf(Entries.keyOf(name), `of${name}`, { artifacts }))
    }
  })

  const present = (tier: Effect.Success<ReturnType<typeof tierOf>>, names: ReadonlyArray<string>) =>
    Effect.filter(names, (name) => Effect.map(tier.entries.get(Entries.keyOf(name)), ({ _tag }) => _tag === "Hit"))

  for (const [limit, limits] of [
    ["age", { maxAge: "1 hour" }],
    ["number", { maxEntries: 1 }],
    ["bytes", { maxBytes: 20 }]
  ] as const) {
    it.live(`prunes to a limit of ${limit}: what was used least lately, with its blobs`, () =>
      Effect.gen(function* () {
        const sql = yield* administer
        const tier = yield* tierOf({ useGrain: "10 minutes" })
        const table = `strata_${tier.options.prefix}_entry`
        yield* fill(tier, ["a", "b", "c"])
        yield* sql.unsafe(`UPDATE ${table} SET used_at = used_at - 7200000`)
        yield* tier.entries.get(Entries.keyOf("b"))
        const used = sql<{ key: string }>`SELECT key FROM ${sql(table)} WHERE used_at > put_at - 3600000`
        while ((yield* used).length === 0) yield* Effect.sleep("5 millis")
        assert.deepStrictEqual(yield* PostgresCache.prune(tier.options, { ...limits, grace: 0 }), {
          entries: 2,
          resultBytes: 10,
          blobs: 2,
          blobBytes: 18
        })
        assert.deepStrictEqual(yield* present(tier, ["a", "b", "c"]), ["b"])
        assert.deepStrictEqual(yield* PostgresCache.prune(tier.options, { ...limits, grace: 0 }), {
          entries: 0,
          resultBytes: 0,
          blobs: 0,
          blobBytes: 0
        })
      })
    )
  }

  it.live("without limits only blobs go that nothing has referred to for a day", () =>
    Effect.gen(function* () {
      const sql = yield* administer
      const tier = yield* tierOf()
      yield* fill(tier, ["a"])
      yield* tier.blobs.add(Stream.make(bytesOf("young")))
      const old = yield* tier.blobs.add(Stream.make(bytesOf("old")))
      const times = `UPDATE strata_${tier.options.prefix}_blob SET touched_at = touched_at - 90000000`
      yield* sql.unsafe(`${times} WHERE digest IN ('${old.digest}', '${sha256("blob of a")}')`)
      assert.deepStrictEqual(yield* PostgresCache.prune(tier.options, {}), {
        entries: 0,
        resultBytes: 0,
        blobs: 1,
        blobBytes: 3
      })
      assert.deepStrictEqual(yield* tier.blobs.missing([old]), [old])
      assert.deepStrictEqual(yield* present(tier, ["a"]), ["a"])
    })
  )

  it.live("a blob that an entry is about to name is not pruned", () =>
    Effect.gen(function* () {
      const tier = yield* tierOf({ maxConnections: 4 })
      let kept = 0
      for (let i = 0; i < 30; i++) {
        const blob = yield* tier.blobs.add(Stream.make(bytesOf(`blob ${i}`)))
        const key = Entries.keyOf(`${i}`)
        const entry = yield* Entries.entryOf(key, i, { artifacts: [{ name: "out", ...blob }] })
        const [put] = yield* Effect.all(
          [Effect.result(tier.entries.put(entry)), PostgresCache.prune(tier.options, { grace: 0 })],
          { concurrency: "unbounded" }
        )
        if (put._tag === "Failure") assert.strictEqual(put.failure.reason._tag, "ArtifactMissing")
        else kept++
        assert.strictEqual(missOf(yield* tier.entries.get(key)), put._tag === "Success" ? "Hit" : "Absent")
      }
      assert.isAbove(kept, 0)
    })
  )
})
