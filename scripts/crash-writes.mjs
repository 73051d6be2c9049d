// Kills a process with SIGKILL at random moments while it writes through the DurableWriter in many fibers at once, and
// looks at its database after each: every write whose success was reported is there whole, none is there in part, and
// none whose failure was reported is there at all.
//
//   node --conditions=@strata/source --no-warnings scripts/crash-writes.mjs [--kills 300] [--fibers 64] [--seed 1]
//
// All runs go on in one database, so each also recovers from the kill before it. The same seed gives the same writes and
// the same delays.
import * as SqliteClient from "@strata/sqlite/SqliteClient"
import * as DurableWriter from "@strata/durable/DurableWriter"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync, writeSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"

const { values } = parseArgs({
  options: {
    kills: { type: "string", default: "300" },
    fibers: { type: "string", default: "64" },
    seed: { type: "string", default: "1" },
    /** Set for the process that writes: its database, and the number of its first write. */
    database: { type: "string" },
    first: { type: "string", default: "0" }
  }
})

/** Numbers from 0 to 1, the same for the same seed (mulberry32). */
const randomFrom = (seed) => () => {
  seed = (seed + 0x6d2b79f5) | 0
  let t = Math.imul(seed ^ (seed >>> 15), 1 | seed)
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
  return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
}

// ---------------------------------------------------------------------------------------------------------------------
// the process that writes
// ---------------------------------------------------------------------------------------------------------------------

/** How many rows write `id` has beside its first one. */
const partsOf = (id) => 1 + (id % 5)

const isToFail = (id) => id % 8 === 7

/** One write: a row that tells how many others belong to it, and those, in statements of their own. */
const write = (sql, id) =>
  DurableWriter.write(
    Effect.gen(function* () {
      yield* sql`INSERT INTO whole (id, parts) VALUES (${id}, ${partsOf(id)})`
      for (let n = 0; n < partsOf(id); n++) {
        yield* sql`INSERT INTO part (id, n) VALUES (${id}, ${n})`
        if (id % 3 === 0) yield* Effect.yieldNow
      }
      if (isToFail(id)) yield* Effect.fail("no")
    })
  )

/** Reports at once: what was said before the kill is in the pipe. */
const report = (outcome, id) => Effect.sync(() => writeSync(1, `${outcome} ${id}\n`))

const writeForEver = (filename, first, fibers) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    let next = first
    const loop = Effect.forever(
      Effect.suspend(() => {
        const id = next++
        return Effect.matchEffect(write(sql, id), {
          onFailure: (error) => (error === "no" ? report("failed", id) : Effect.die(error)),
          onSuccess: () => report("done", id)
        })
      })
    )
    yield* Effect.all(
      Array.from({ length: fibers }, () => loop),
      { concurrency: "unbounded", discard: true }
    )
  }).pipe(
    Effect.provide(
      DurableWriter.layer().pipe(
        // A small log, so that kills meet checkpoints too.
        Layer.provideMerge(SqliteClient.layer({ filename, walAutocheckpoint: 200 }))
      )
    )
  )

// ---------------------------------------------------------------------------------------------------------------------
// the process that kills
// ---------------------------------------------------------------------------------------------------------------------

/** Writes from number `first` on, for `delay` ms after the first report. Gives what was reported. */
const killAfter = async (filename, first, delay) => {
  const child = spawn(
    process.execPath,
    [
      ...process.execArgv,
      fileURLToPath(import.meta.url),
      "--database",
      filename,
      "--first",
      String(first),
      "--fibers",
      values.fibers
    ],
    { stdio: ["ignore", "pipe", "inherit"] }
  )
  let output = ""
  let timer
  child.stdout.setEncoding("utf8")
  child.stdout.on("data", (data) => {
    output += data
    timer ??= setTimeout(() => child.kill("SIGKILL"), delay)
  })
  const [code, signal] = await once(child, "close")
  if (signal !== "SIGKILL") throw new Error(`the process that writes ended by itself with ${code}`)
  // The last line may have been cut.
  return output
    .slice(0, output.lastIndexOf("\n") + 1)
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => line.split(" "))
}

/** What is wrong in the database, in lines. */
const check = (filename, first, reports) => {
  const database = new DatabaseSync(filename)
  const found = new Map(
    database
      .prepare(
        `SELECT id, max(parts) AS parts, count(n) AS rows FROM
          (SELECT id, parts, NULL AS n FROM whole UNION ALL SELECT id, NULL, n FROM part)
        WHERE id >= ? GROUP BY id`
      )
      .all(first)
      .map(({ id, parts, rows }) => [id, { parts, rows }])
  )
  const { integrity_check: integrity } = database.prepare("PRAGMA integrity_check").get()
  database.close()
  const wrong = integrity === "ok" ? [] : [`integrity: ${integrity}`]
  for (const [id, { parts, rows }] of found) {
    if (parts !== partsOf(id) || rows !== parts) wrong.push(`write ${id} is there in part: ${rows} of ${parts} rows`)
    if (isToFail(id)) wrong.push(`write ${id} failed and is there`)
  }
  for (const [outcome, id] of reports) {
    if (outcome === "done" && !found.has(Number(id))) wrong.push(`write ${id} was reported and is not there`)
  }
  return { wrong, last: Math.max(first, ...found.keys(), ...reports.map(([, id]) => Number(id))) }
}

const createTables = (filename) => {
  const database = new DatabaseSync(filename)
  database.exec("CREATE TABLE whole (id INTEGER PRIMARY KEY, parts INTEGER NOT NULL)")
  database.exec("CREATE TABLE part (id INTEGER NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (id, n)) WITHOUT ROWID")
  database.close()
}

const killAll = async (filename) => {
  const random = randomFrom(Number(values.seed))
  const kills = Number(values.kills)
  createTables(filename)
  let first = 0
  let reported = 0
  const wrong = []
  for (let kill = 0; kill < kills; kill++) {
    const reports = await killAfter(filename, first, random() * 60)
    const checked = check(filename, first, reports)
    wrong.push(...checked.wrong.map((line) => `kill ${kill}: ${line}`))
    reported += reports.length
    first = checked.last + 1
  }
  wrong.push(...check(filename, 0, []).wrong)
  for (const line of wrong) console.error(line)
  console.log(
    `${kills} kills, ${reported} writes reported: ` +
      (wrong.length === 0 ? "each is there whole or not at all, as reported" : `${wrong.length} differences`)
  )
  process.exitCode = wrong.length === 0 ? 0 : 1
}

if (values.database !== undefined) {
  await Effect.runPromise(writeForEver(values.database, Number(values.first), Number(values.fibers)))
} else {
  const folder = mkdtempSync(join(tmpdir(), "strata-crash-"))
  try {
    await killAll(join(folder, "writes.db"))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
