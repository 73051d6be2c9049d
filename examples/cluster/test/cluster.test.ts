import { assert, describe, it } from "@effect/vitest"
import { DirtyQueue, Path } from "@strata/dirty-queue"
import * as Postgres from "@strata/durable/testing/postgres"
import { Clock, Console, Effect, Fiber, Layer, Random, type Scope } from "effect"
import { SqlClient } from "effect/sql"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { createServer } from "node:net"
import { fileURLToPath } from "node:url"
import { layerStore, Notes } from "../src/notes.ts"

/** Quicker to notice a death than the defaults are, and with fewer locks to hand over in that time. */
const settings = {
  LEASE: "3 seconds",
  SHARD_LOCK_EXPIRATION: "6 seconds",
  REFRESH_ASSIGNMENTS_INTERVAL: "500 millis",
  SHARDS_PER_GROUP: "24"
}

/** Expiration, interval and two seconds; and as much again for a machine that is busy with other things. */
const takeoverBound = 2 * (6 + 0.5 + 2)

const tenants = Array.from({ length: 12 }, (_, i) => Path.Scope.make(`tenant-${i}`))

// ---------------------------------------------------------------------------------------------------------------------
// processes
// ---------------------------------------------------------------------------------------------------------------------

const main = fileURLToPath(new URL("../src/main.ts", import.meta.url))

const freePort = Effect.promise(async () => {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const address = server.address()
  server.close()
  await once(server, "close")
  return typeof address === "object" && address !== null ? address.port : 0
})

interface Runner {
  readonly name: string
  /** Fails when the process has ended, with what it said. */
  readonly check: Effect.Effect<void>
  /** Sends a signal, and ends when the process has. */
  readonly end: (signal: "SIGKILL" | "SIGTERM") => Effect.Effect<void>
}

const startRunner = Effect.fnUntraced(function* (schema: string): Effect.fn.Return<Runner, never, Scope.Scope> {
  const port = yield* freePort
  const database = new URL(process.env["STRATA_TEST_POSTGRES"] ?? "postgres://no-server.invalid")
  database.searchParams.set("options", `-c search_path=${schema}`)
  const child = yield* Effect.acquireRelease(
    Effect.sync(() =>
      spawn(process.execPath, ["--conditions=@strata/source", "--no-warnings", main, "run"], {
        stdio: ["ignore", "pipe", "pipe"],
        env: { ...process.env, ...settings, DATABASE_URL: database.href, HOST: "127.0.0.1", PORT: String(port) }
      })
    ),
    (child) => Effect.sync(() => child.kill("SIGKILL"))
  )
  const closed = once(child, "close")
  const said: Array<string> = []
  for (const output of [child.stdout, child.stderr]) output.setEncoding("utf8").on("data", (text) => said.push(text))
  return {
    name: String(port),
    check: Effect.sync(() => assert.isNull(child.exitCode, `a runner ended by itself: ${said.join("")}`)),
    end: (signal) =>
      Effect.andThen(
        Effect.sync(() => child.kill(signal)),
        Effect.asVoid(Effect.promise(() => closed))
      )
  }
})

// ---------------------------------------------------------------------------------------------------------------------
// the story
// ---------------------------------------------------------------------------------------------------------------------

/** Asks again and again, and fails when it takes too long. */
const eventually = Effect.fnUntraced(function* <E, R>(
  what: string,
  seconds: number,
  check: Effect.Effect<boolean, E, R>
) {
  const deadline = (yield* Clock.currentTimeMillis) + seconds * 1000
  while (!(yield* check)) {
    if ((yield* Clock.currentTimeMillis) > deadline) assert.fail(`${seconds} seconds were not enough: ${what}`)
    yield* Effect.sleep("50 millis")
  }
})

const story = Effect.fnUntraced(function* (schema: string) {
  const sql = yield* SqlClient.SqlClient
  const notes = yield* Notes
  const queue = yield* DirtyQueue.DirtyQueue
  const texts = (rows: ReadonlyArray<ReadonlyArray<unknown>>) => rows.map(([text]) => String(text))
  const now = Effect.map(sql`SELECT clock_timestamp()::TEXT`.values, (rows) => String(rows[0]?.[0]))
  const tenantsOf = (runner: string) =>
    Effect.map(sql`SELECT tenant FROM stay WHERE runner = ${runner} AND until IS NULL`.values, texts)
  const served = Effect.map(sql`SELECT DISTINCT tenant FROM stay WHERE until IS NULL`.values, texts)

  yield* Effect.forEach(tenants, notes.addTenant)
  const runners = yield* Effect.all([startRunner(schema), startRunner(schema), startRunner(schema)])
  yield* eventually(
    "each runner has tenants, and each tenant a runner",
    60,
    Effect.gen(function* () {
      yield* Effect.forEach(runners, ({ check }) => check)
      const shares = yield* Effect.forEach(runners, ({ name }) => tenantsOf(name))
      return shares.every((share) => share.length > 0) && shares.flat().length === tenants.length
    })
  )

  const saved = new Map<string, string>()
  const save = Effect.fnUntraced(function* (tenant: Path.Scope, title: string) {
    const tag = `#v${yield* Random.nextIntBetween(0, 1_000_000)}`
    yield* Effect.uninterruptible(
      Effect.andThen(
        notes.save(tenant, Path.Path.make(title), `a note with ${tag}`),
        Effect.sync(() => saved.set(`${tenant} ${title}`, tag))
      )
    )
  })
  const write = Effect.gen(function* () {
    yield* save(yield* Random.choice(tenants), `note-${yield* Random.nextIntBetween(1, 10)}`)
    yield* Effect.sleep("20 millis")
  })
  const writer = yield* Effect.forkChild(Effect.forever(write))
  yield* Effect.sleep("1 second")

  const [victim, second] = runners
  const orphans = yield* tenantsOf(victim.name)
  yield* Effect.forEach(orphans, (tenant) => save(Path.Scope.make(tenant), "unfinished"))
  yield* victim.end("SIGKILL")
  const killedAt = yield* now
  yield* sql`UPDATE stay SET until = ${killedAt}::TIMESTAMPTZ WHERE runner = ${victim.name} AND until IS NULL`
  yield* Effect.forEach(tenants, (tenant) => save(tenant, "meanwhile"))
  yield* eventually(
    "the others have taken over",
    takeoverBound,
    Effect.map(served, (served) => served.length === tenants.length)
  )
  const takenOverAt = yield* now
  yield* Effect.sleep("1 second")

  // One that ends by itself hands its tenants over without anybody having to notice.
  const endedAt = yield* now
  yield* second.end("SIGTERM")
  assert.deepStrictEqual(yield* tenantsOf(second.name), [])
  yield* eventually(
    "the last one has all tenants",
    takeoverBound,
    Effect.map(served, (served) => served.length === tenants.length)
  )
  const handedOverAt = yield* now
  yield* Fiber.interrupt(writer)
  yield* eventually(
    "everything is processed",
    30,
    Effect.map(queue.pending(), (rows) => rows.length === 0)
  )

  const indexed = yield* sql`SELECT tenant || ' ' || title, tag FROM tag`.values
  assert.deepStrictEqual(new Map(indexed.map(([note, tag]) => [String(note), String(tag)])), saved)
  assert.strictEqual(indexed.length, saved.size)

  const together = yield* sql`SELECT a.tenant, a.runner, b.runner FROM stay AS a JOIN stay AS b
    ON a.tenant = b.tenant AND a.id < b.id
    AND a.since < coalesce(b.until, 'infinity') AND b.since < coalesce(a.until, 'infinity')`.values
  assert.deepStrictEqual(together, [], "two runners had a tenant at a time")
  const elsewhere = yield* sql`SELECT w.tenant, w.runner FROM work AS w WHERE NOT EXISTS (
    SELECT 1 FROM stay AS s WHERE s.tenant = w.tenant AND s.runner = w.runner
    AND w.at BETWEEN s.since AND coalesce(s.until, 'infinity'))`.values
  assert.deepStrictEqual(elsewhere, [], "a runner worked for a tenant that it did not have")
  const [counted] = yield* sql`SELECT count(*)::INTEGER FROM work`.values
  const meanwhile = yield* sql`SELECT DISTINCT tenant FROM work
    WHERE title = 'meanwhile' AND at < ${takenOverAt}::TIMESTAMPTZ`.values
  const others = tenants.filter((tenant) => !orphans.includes(tenant))
  assert.includeMembers(texts(meanwhile), others, "a tenant of another runner had to wait")

  const seconds = (from: string, to: string) => ((Date.parse(to) - Date.parse(from)) / 1000).toFixed(1)
  yield* Console.log(
    `${saved.size} notes indexed ${counted?.[0]} times; ${orphans.length} tenants taken over ` +
      `${seconds(killedAt, takenOverAt)} s after SIGKILL, the rest ${seconds(endedAt, handedOverAt)} s after SIGTERM`
  )
})

describe.skipIf(!Postgres.isAvailable())("three runners on Postgres", () => {
  it.live(
    "a killed one's tenants go to the others, nothing is lost, no tenant is with two, and nobody else waits",
    () =>
      Effect.gen(function* () {
        const schema = yield* Postgres.schema
        const layer = Notes.layer.pipe(Layer.provideMerge(layerStore), Layer.provide(Postgres.layerSchema(schema)))
        yield* Effect.provide(story(schema), Layer.merge(layer, Postgres.layerSchema(schema, { maxConnections: 2 })))
      }).pipe(Random.withSeed("cluster")),
    150_000
  )
})
