import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, describe, it } from "@effect/vitest"
import * as PostgresCache from "@strata/cache/PostgresCache"
import * as Entries from "@strata/cache/testing/entries"
import * as Postgres from "@strata/durable/testing/postgres"
import * as SqliteClient from "@strata/sqlite/SqliteClient"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import { randomUUID } from "node:crypto"
import * as Proxy from "./support/proxy.ts"
import {
  administer,
  blobOf,
  bytesOf,
  missOf,
  options,
  read,
  schema,
  somePrefix,
  tierOf,
  url
} from "./support/postgres.ts"
import { reasonOf } from "./support/sharedTier.ts"

const key = Entries.keyOf("a")

/** The address of the tier by way of a proxy. */
const throughProxy = Effect.gen(function* () {
  const all = yield* options
  const address = new URL(all.url!)
  const proxy = yield* Proxy.make({ host: address.hostname, port: Number(address.port) })
  address.host = `127.0.0.1:${proxy.port}`
  return { proxy, all: { ...all, url: address } }
})

/** A role of that name that may sign in, and nothing else. */
const role = Effect.fnUntraced(function* (sql: PgClient.PgClient) {
  const username = `role_${randomUUID().replaceAll("-", "")}`
  const password = `secret-${randomUUID()}`
  yield* Effect.acquireRelease(sql.unsafe(`CREATE ROLE ${username} LOGIN PASSWORD '${password}'`).unprepared, () =>
    Effect.orDie(Effect.andThen(sql.unsafe(`DROP OWNED BY ${username}`), sql.unsafe(`DROP ROLE ${username}`)))
  )
  yield* sql.unsafe(`GRANT USAGE ON SCHEMA ${schema} TO ${username}`)
  return { username, password }
})

describe.skipIf(!Postgres.isAvailable())("PostgresCache", () => {
  // -------------------------------------------------------------------------------------------------------------------
  // the database
  // -------------------------------------------------------------------------------------------------------------------

  it.live("a database that is down keeps nothing from being built, and is used as soon as it is back", () =>
    Effect.gen(function* () {
      const { all, proxy } = yield* throughProxy
      proxy.mood = "refuse"
      const entries = yield* PostgresCache.stepCache(all)
      const blobs = yield* PostgresCache.artifactStore(all)
      const entry = yield* Entries.entryOf(key, 1)
      assert.strictEqual((yield* reasonOf(entries.get(key)))._tag, "Unreachable")
      assert.strictEqual((yield* reasonOf(entries.put(entry)))._tag, "Unreachable")
      assert.strictEqual((yield* reasonOf(blobs.missing([blobOf(bytesOf("a"))])))._tag, "Unreachable")
      proxy.mood = "pass"
      assert.strictEqual((yield* entries.put(entry))._tag, "Inserted")
      assert.deepStrictEqual(yield* blobs.missing([blobOf(bytesOf("a"))]), [blobOf(bytesOf("a"))])
      proxy.mood = "refuse"
      proxy.cut()
      assert.strictEqual((yield* reasonOf(entries.get(key)))._tag, "Unreachable")
      proxy.mood = "pass"
      assert.strictEqual((yield* entries.get(key))._tag, "Hit")
    })
  )

  it.live("a database that does not answer is given up in time", () =>
    Effect.gen(function* () {
      const { all, proxy } = yield* throughProxy
      const deadlines = { connect: "300 millis", response: "700 millis" } as const
      const entries = yield* PostgresCache.stepCache({ ...all, deadlines, maxEntryBytes: 1 })
      proxy.mood = "silent"
      const [connecting, unreachable] = yield* Effect.timed(reasonOf(entries.get(key)))
      assert.strictEqual(unreachable._tag, "Unreachable")
      assert.isBelow(Duration.toMillis(connecting), 900)
      proxy.mood = "pass"
      yield* entries.get(key)
      proxy.silence()
      proxy.mood = "silent"
      const [answering, silent] = yield* Effect.timed(reasonOf(entries.get(key)))
      assert.deepStrictEqual(silent._tag === "TimedOut" && [silent.phase, silent.afterMs], ["response", 1001])
      assert.isBelow(Duration.toMillis(answering), 2000)
    })
  )

  it.live("a call that waits for a silent database is interrupted at once", () =>
    Effect.gen(function* () {
      const { all, proxy } = yield* throughProxy
      const entries = yield* PostgresCache.stepCache(all)
      yield* entries.get(key)
      proxy.silence()
      proxy.mood = "silent"
      const waiting = yield* Effect.forkChild(entries.get(key))
      yield* Effect.sleep("50 millis")
      const [time] = yield* Effect.timed(Fiber.interrupt(waiting))
      assert.isBelow(Duration.toMillis(time), 500)
    })
  )

  it.live("a lock that is held for too long is a timeout, and the statement ends", () =>
    Effect.gen(function* () {
      const { entries, options } = yield* tierOf({ deadlines: { response: "300 millis", minBytesPerSecond: 1e9 } })
      const sql = yield* administer
      yield* entries.put(yield* Entries.entryOf(key, 1))
      yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql.unsafe(`LOCK TABLE strata_${options.prefix}_entry`)
          assert.strictEqual((yield* reasonOf(entries.get(key)))._tag, "TimedOut")
          yield* Effect.sleep("50 millis")
          const waiting = yield* sql`SELECT 1 FROM pg_stat_activity
            WHERE application_name = 'strata-cache' AND wait_event_type = 'Lock'`
          assert.deepStrictEqual(waiting, [])
        })
      )
      assert.strictEqual((yield* entries.get(key))._tag, "Hit")
    })
  )

  it.live("who may not sign in, or not create tables, is forbidden, and no error tells a password", () =>
    Effect.gen(function* () {
      const sql = yield* administer
      const { password, username } = yield* role(sql)
      const all = yield* options
      const wrong = `wrong-${randomUUID()}`
      const tellsNothing = <A, E>(effect: Effect.Effect<A, E>, expected: string) =>
        Effect.gen(function* () {
          const exit = yield* Effect.exit(effect)
          if (Exit.isSuccess(exit)) return assert.fail("no failure")
          const told = `${Cause.pretty(exit.cause)} ${JSON.stringify(exit.cause)} ${String(exit.cause)}`
          assert.include(told, expected)
          for (const secret of [password, wrong]) assert.notInclude(told, secret)
        })
      const stranger = { username, password: Redacted.make(wrong) }
      const refused = yield* PostgresCache.stepCache({ ...all, credentials: stranger })
      yield* tellsNothing(refused.get(key), "Forbidden")
      const known = { username, password: Redacted.make(password) }
      const powerless = yield* PostgresCache.stepCache({ ...all, credentials: known })
      yield* tellsNothing(powerless.get(key), "Forbidden")
      const elsewhere = yield* PostgresCache.stepCache({ ...all, schema: "not_there", credentials: known })
      yield* tellsNothing(elsewhere.get(key), "Forbidden")
    })
  )

  it.live("a database that does not exist, or has another encoding, is told", () =>
    Effect.gen(function* () {
      const sql = yield* administer
      const name = `latin_${randomUUID().replaceAll("-", "")}`
      const at = (database: string) =>
        Effect.flatMap(options, (all) => {
          const address = new URL(all.url!)
          address.pathname = `/${database}`
          return PostgresCache.stepCache({ ...all, url: address })
        })
      const nowhere = yield* reasonOf((yield* at(name)).get(key))
      assert.include(nowhere._tag === "Invalid" && nowhere.detail, "no such database")
      yield* Effect.acquireRelease(
        sql.unsafe(`CREATE DATABASE ${name} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0`).unprepared,
        () => Effect.orDie(sql.unsafe(`DROP DATABASE ${name} WITH (FORCE)`).unprepared)
      )
      const latin = yield* reasonOf((yield* at(name)).get(key))
      assert.include(latin._tag === "Invalid" && latin.detail, "LATIN1, not UTF8")
    })
  )

  // -------------------------------------------------------------------------------------------------------------------
  // tables
  // -------------------------------------------------------------------------------------------------------------------

  it.live("16 clients that start together make schema and tables once", () =>
    Effect.gen(function* () {
      const sql = yield* administer
      const all = { ...(yield* options), schema: `Odd "${randomUUID().slice(0, 8)}`, maxConnections: 1 }
      yield* Effect.addFinalizer(() =>
        Effect.orDie(sql.unsafe(`DROP SCHEMA "${all.schema.replaceAll('"', '""')}" CASCADE`).unprepared)
      )
      const clients = yield* Effect.replicateEffect(PostgresCache.stepCache(all), 16)
      const outcomes = yield* Effect.forEach(
        clients,
        (client, i) => Effect.flatMap(Entries.entryOf(Entries.keyOf(`${i}`), i), client.put),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(
        outcomes.map(({ _tag }) => _tag),
        clients.map(() => "Inserted")
      )
    })
  )

  it.live("read-only creates nothing, says what is missing, and serves as soon as it is there", () =>
    Effect.gen(function* () {
      const sql = yield* administer
      const { password, username } = yield* role(sql)
      const all = yield* options
      const reader = { ...all, readOnly: true, credentials: { username, password: Redacted.make(password) } }
      const entries = yield* PostgresCache.stepCache(reader)
      const blobs = yield* PostgresCache.artifactStore(reader)
      const missing = yield* reasonOf(entries.get(key))
      assert.include(missing._tag === "Invalid" && missing.detail, `strata_${all.prefix}_blob`)
      assert.deepStrictEqual(yield* sql`SELECT to_regclass(${`strata_${all.prefix}_entry`})::TEXT AS found`, [
        { found: null }
      ])

      const writer = yield* PostgresCache.stepCache(all)
      const store = yield* PostgresCache.artifactStore(all)
      const blob = yield* store.add(Stream.make(bytesOf("content")))
      const entry = yield* Entries.entryOf(key, 1, { artifacts: [{ name: "out", ...blob }] })
      yield* writer.put(entry)
      assert.strictEqual((yield* reasonOf(entries.get(key)))._tag, "Forbidden")
      for (const table of ["entry", "blob", "artifact", "migrations"]) {
        yield* sql.unsafe(`GRANT SELECT ON strata_${all.prefix}_${table} TO ${username}`)
      }
      yield* sql.unsafe(`UPDATE strata_${all.prefix}_entry SET used_at = 0`)
      const found = yield* entries.get(key)
      assert.deepStrictEqual(found._tag === "Hit" && found.entry, entry)
      assert.strictEqual(yield* read(blobs, blob), "content")
      const refusals = [
        entries.put(entry),
        entries.evict(key),
        entries.quarantine(key, { recording: entry.metadata.recording, reason: { _tag: "WrongKey" } }),
        blobs.put(blob, Stream.empty),
        blobs.add(Stream.empty),
        blobs.remove(blob.digest),
        PostgresCache.prune(reader, {})
      ]
      for (const refusal of refusals) assert.strictEqual((yield* reasonOf(Effect.asVoid(refusal)))._tag, "ReadOnly")
    })
  )

  it.live("who may write but not create works with tables that are there", () =>
    Effect.gen(function* () {
      const sql = yield* administer
      const { password, username } = yield* role(sql)
      const { entries, options: all } = yield* tierOf()
      yield* entries.get(key)
      for (const table of ["entry", "blob", "artifact", "migrations"]) {
        yield* sql.unsafe(`GRANT SELECT, INSERT, UPDATE, DELETE ON strata_${all.prefix}_${table} TO ${username}`)
      }
      const credentials = { username, password: Redacted.make(password) }
      const writer = yield* PostgresCache.stepCache({ ...all, credentials })
      assert.strictEqual((yield* writer.put(yield* Entries.entryOf(key, 1)))._tag, "Inserted")
      assert.isTrue(yield* writer.evict(key))
    })
  )

  it.live("tables that were dropped meanwhile are made anew", () =>
    Effect.gen(function* () {
      const sql = yield* administer
      const { entries, options: all } = yield* tierOf()
      const entry = yield* Entries.entryOf(key, 1)
      yield* entries.put(entry)
      const names = ["entry", "blob", "artifact", "migrations"].map((name) => `strata_${all.prefix}_${name}`)
      yield* sql.unsafe(`DROP TABLE ${names.join(", ")}`)
      yield* Effect.ignore(entries.get(key))
      assert.strictEqual(missOf(yield* entries.get(key)), "Absent")
      assert.strictEqual((yield* entries.put(entry))._tag, "Inserted")
    })
  )

  it.live("a table without its unique index does not arbitrate, and is refused", () =>
    Effect.gen(function* () {
      const sql = yield* administer
      const { entries, options: all } = yield* tierOf()
      yield* entries.get(key)
      yield* sql.unsafe(`ALTER TABLE strata_${all.prefix}_entry DROP CONSTRAINT strata_${all.prefix}_entry_pkey`)
      const other = yield* PostgresCache.stepCache(all)
      const reason = yield* reasonOf(other.get(key))
      assert.include(reason._tag === "Invalid" && reason.detail, "unique index")
    })
  )

  // -------------------------------------------------------------------------------------------------------------------
  // options
  // -------------------------------------------------------------------------------------------------------------------

  it.live(
    "works over a client that it is given, in no transaction of the app, and arbitrates whatever its isolation",
    () =>
      Effect.gen(function* () {
        const all = { schema, prefix: somePrefix(), name: "given" }
        const address = yield* PostgresCache.fromUrl(url())
        const context = yield* Layer.build(
          PgClient.layer({
            url: Redacted.make(String(address.url)),
            username: address.credentials!.username,
            password: address.credentials!.password!,
            maxConnections: 8,
            startupParameters: { default_transaction_isolation: "serializable", client_min_messages: "warning" }
          })
        )
        const client = Context.get(context, PgClient.PgClient)
        const entries = yield* PostgresCache.stepCache({ ...all, client })
        const entry = yield* Entries.entryOf(key, 1)
        yield* Effect.exit(client.withTransaction(Effect.andThen(entries.put(entry), Effect.fail("undone"))))
        assert.strictEqual((yield* entries.get(key))._tag, "Hit")
        for (let round = 0; round < 10; round++) {
          const outcomes = yield* Effect.forEach(
            Array.from({ length: 16 }, (_, i) => i),
            (i) => Effect.flatMap(Entries.entryOf(Entries.keyOf(`round ${round}`), i, { by: `${i}` }), entries.put),
            { concurrency: "unbounded" }
          )
          const count = (tag: string) => outcomes.filter(({ _tag }) => _tag === tag).length
          assert.deepStrictEqual([count("Inserted"), count("Conflict")], [1, 15])
        }
      })
  )

  it.live("refuses options that it cannot use, and tells no part of a URL", () =>
    Effect.gen(function* () {
      const sqlite = Context.get(
        yield* Layer.build(SqliteClient.layer({ filename: ":memory:" })),
        SqliteClient.SqliteClient
      )
      const wrong: ReadonlyArray<PostgresCache.PostgresCacheOptions> = [
        {},
        { url: "none" },
        { url: "mysql://localhost/secret" },
        { url: "postgres://user:secret@localhost/db" },
        { url: "postgres://localhost/db?password=secret" },
        { url: "postgres://localhost/db?sslmode=secret" },
        { url: "postgres://localhost/db", prefix: "Strata" },
        { url: "postgres://localhost/db", prefix: "x".repeat(31) },
        { url: "postgres://localhost/db", schema: "" },
        { url: "postgres://localhost/db", client: sqlite },
        { client: sqlite }
      ]
      for (const options of wrong) {
        const all = { ...options, name: "postgres" }
        for (const made of [
          Effect.asVoid(PostgresCache.stepCache(all)),
          Effect.asVoid(PostgresCache.artifactStore(all))
        ]) {
          const reason = yield* reasonOf(Effect.scoped(made))
          assert.strictEqual(reason._tag, "Invalid")
          assert.notInclude(JSON.stringify(reason), "secret")
        }
      }
    })
  )

  it.live("reads a URL, and names the tier by it", () =>
    Effect.gen(function* () {
      const of = (url: string) => PostgresCache.fromUrl(Redacted.make(url))
      const all = yield* of("postgres://us%40er:p%3Ass@db.example.org:5433/cache?sslmode=require&schema=s&prefix=p")
      const { credentials, ...others } = all
      assert.deepStrictEqual(others, {
        url: "postgres://db.example.org:5433/cache?sslmode=require",
        schema: "s",
        prefix: "p"
      })
      assert.deepStrictEqual(
        [credentials?.username, credentials?.password && Redacted.value(credentials.password)],
        ["us@er", "p:ss"]
      )
      const named = yield* PostgresCache.stepCache(all)
      assert.strictEqual(named.name, "postgres://db.example.org:5433/cache?schema=s&prefix=p")
      assert.deepStrictEqual(yield* of("postgresql://localhost"), { url: "postgresql://localhost" })
      const asParameters = yield* of("postgres://localhost/db?user=u&password=p")
      assert.strictEqual(asParameters.url, "postgres://localhost/db")
      assert.strictEqual(asParameters.credentials?.username, "u")
      for (const wrong of ["secret", "postgres://:secret@localhost/db", "postgres://%:secret@localhost/db"]) {
        const reason = yield* reasonOf(of(wrong))
        assert.strictEqual(reason._tag, "Invalid")
        assert.notInclude(JSON.stringify(reason), "secret")
      }
    })
  )
})
