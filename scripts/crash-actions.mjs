// Kills a process that runs actions with artifacts at random moments, and looks after each kill whether its database is
// whole and what others see in the shared tier; at the end lets it settle, and looks whether everything is shared.
//
//   node --conditions=@strata/source scripts/crash-actions.mjs [--kills 300] [--seed 1] [--server nginx|node]
//
// The shared tier is nginx where it is installed, else a server in this process. The same seed gives the same inputs and
// the same moments.
import * as HttpCache from "@strata/cache/HttpCache"
import * as Nginx from "@strata/cache/testing/nginx"
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { startCasServer } from "./crash/casServer.mjs"
import { randomFrom } from "./crash/random.mjs"

const worker = fileURLToPath(new URL("crash/actions.mjs", import.meta.url))

const { values } = parseArgs({
  options: {
    kills: { type: "string", default: "300" },
    seed: { type: "string", default: "1" },
    server: { type: "string" }
  }
})
const kills = Number(values.kills)
const random = randomFrom(Number(values.seed))

/** One kill in ten hits the start of the process, the others its work. */
const startKills = 0.1
const startMs = 700
const workMs = 600

// ---------------------------------------------------------------------------------------------------------------------
// runs
// ---------------------------------------------------------------------------------------------------------------------

const start = (mode, { folder, url }, seed) => {
  const child = spawn(
    process.execPath,
    [
      "--conditions=@strata/source",
      "--no-warnings",
      worker,
      mode,
      join(folder, "cache.db"),
      join(folder, "blobs"),
      url,
      String(seed)
    ],
    { stdio: ["ignore", "pipe", "inherit"] }
  )
  const lines = []
  let rest = ""
  const ready = new Promise((resolve) => {
    child.stdout.setEncoding("utf8").on("data", (text) => {
      const parts = (rest + text).split("\n")
      rest = parts.pop()
      for (const line of parts) {
        if (line === "ready") resolve()
        else lines.push(line)
      }
    })
    child.on("exit", resolve)
  })
  return { child, lines, ready }
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

/** Starts the work, kills it at a random moment, and gives the keys whose outcome it said to be committed. */
const killOnce = async (machine, seed) => {
  const { child, lines, ready } = start("work", machine, seed)
  const closed = once(child, "close")
  if (random() < startKills) {
    await pause(random() * startMs)
  } else {
    await ready
    await pause(random() * workMs)
  }
  child.kill("SIGKILL")
  const [code, signal] = await closed
  if (signal !== "SIGKILL") throw new Error(`the work ended by itself with ${code}`)
  return lines
}

const settle = async (machine) => {
  const { child } = start("settle", machine, 0)
  const [code] = await once(child, "close")
  if (code !== 0) throw new Error(`the last run ended with ${code}`)
}

// ---------------------------------------------------------------------------------------------------------------------
// what is looked at
// ---------------------------------------------------------------------------------------------------------------------

const query = (folder, statement) => {
  const database = new DatabaseSync(join(folder, "cache.db"))
  try {
    return database.prepare(statement).all()
  } finally {
    database.close()
  }
}

const heads = (folder) =>
  query(folder, "SELECT l.key, l.recording FROM strata_cache AS h JOIN strata_cache_ledger AS l ON l.id = h.ledger")

/** The entries that the journal says are in the cache: the last event of a key decides. */
const journaled = (folder) => {
  const events = query(folder, "SELECT type, payload FROM strata_journal WHERE type LIKE 'cache-%' ORDER BY ordinal")
  const present = new Map()
  for (const { payload, type } of events) {
    const { key, metadata } = JSON.parse(payload)
    if (type === "cache-recorded") present.set(key, metadata.recording)
    if (type === "cache-quarantined" || type === "cache-evicted") present.delete(key)
  }
  return present
}

/** What is wrong with the database, in lines. */
const checkDatabase = (folder, committed) => {
  const wrong = []
  const [{ integrity_check: integrity }] = query(folder, "PRAGMA integrity_check")
  if (integrity !== "ok") wrong.push(`integrity: ${integrity}`)
  const rows = new Map(heads(folder).map(({ key, recording }) => [key, recording]))
  const events = journaled(folder)
  for (const [key, recording] of rows) {
    if (events.get(key) !== recording) wrong.push(`the row of ${key} is not in the journal`)
  }
  for (const key of events.keys()) {
    if (!rows.has(key)) wrong.push(`the journal has an entry of ${key}, the table has none`)
  }
  for (const key of committed) {
    if (!rows.has(key)) wrong.push(`${key} was committed and is gone`)
  }
  return { wrong, rows }
}

/** Looks at every entry as a reader does: what is visible has its result and its blobs. */
const checkTier = (tier, keys) =>
  Effect.gen(function* () {
    const wrong = []
    const shared = new Map()
    yield* Effect.forEach(
      keys,
      (key) =>
        Effect.gen(function* () {
          const found = yield* tier.steps.get(key)
          if (found._tag === "Hit") {
            shared.set(key, found.entry.metadata.recording)
            const missing = yield* tier.artifacts.missing(found.entry.artifacts)
            if (missing.length > 0) wrong.push(`${key} is shared without ${missing.length} of its blobs`)
          } else if (found.reason._tag !== "Absent") {
            wrong.push(`${key} is shared, but a miss by ${found.reason._tag}`)
          }
        }),
      { concurrency: 8, discard: true }
    )
    return { wrong, shared }
  })

// ---------------------------------------------------------------------------------------------------------------------
// program
// ---------------------------------------------------------------------------------------------------------------------

const server = Effect.gen(function* () {
  if (values.server === "nginx" || (values.server === undefined && (yield* Nginx.isInstalled))) {
    return { name: "nginx", url: (yield* Nginx.make()).url }
  }
  return yield* Effect.acquireRelease(Effect.promise(startCasServer), (server) => Effect.sync(server.stop))
})

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "strata-crash-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

const program = Effect.gen(function* () {
  const { name, url } = yield* server
  const machine = { folder: yield* folder, url }
  const tier = { steps: yield* HttpCache.stepCache({ url }), artifacts: yield* HttpCache.artifactStore({ url }) }
  const committed = new Set()
  const wrong = []
  // A first start makes the tables, so that they can be looked at after every kill.
  yield* Effect.promise(() => settle(machine))
  let seen = new Set()
  let atKills = 0
  for (let kill = 1; kill <= kills; kill++) {
    const lines = yield* Effect.promise(() => killOnce(machine, Number(values.seed) * 10_000 + kill))
    for (const key of lines) committed.add(key)
    const database = checkDatabase(machine.folder, committed)
    // What was found to be shared and whole stays so; everything that is new, or was not there, is looked at.
    const unseen = [...database.rows.keys()].filter((key) => !seen.has(key))
    const found = yield* checkTier(tier, unseen)
    for (const key of found.shared.keys()) seen.add(key)
    atKills += unseen.length - found.shared.size
    for (const line of [...database.wrong, ...found.wrong]) wrong.push(`after kill ${kill}: ${line}`)
    if (wrong.length > 0) break
  }
  yield* Effect.promise(() => settle(machine))
  const last = checkDatabase(machine.folder, committed)
  const all = yield* checkTier(tier, [...last.rows.keys()])
  wrong.push(...last.wrong, ...all.wrong)
  for (const [key, recording] of last.rows) {
    if (all.shared.get(key) !== recording) wrong.push(`${key} is not shared at the end`)
  }
  for (const line of wrong) console.error(line)
  console.log(
    `${kills} kills, ${name}, ${last.rows.size} entries committed, ${atKills} times one was not shared yet when its process was killed: ` +
      (wrong.length === 0 ? "every entry journaled, shared, and with its blobs" : `${wrong.length} things wrong`)
  )
  process.exitCode = wrong.length === 0 ? 0 : 1
})

await Effect.runPromise(Effect.scoped(program))
