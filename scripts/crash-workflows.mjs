// Kills a process that runs workflows at random moments, and looks after each kill at what it has left; at the end lets
// all runs complete, and looks whether each has its result.
//
//   node --conditions=@strata/source scripts/crash-workflows.mjs [--kills 300] [--seed 1]
//
// Held against the database as it was when the process before was killed: no activity whose completion was committed runs
// again. Held against the journal: no clock fires twice, or before its deadline. The time from `ready` to the first
// activity, clock or suspension of a run of an earlier process is the time to resume.
import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { randomFrom } from "./crash/random.mjs"
import { expected } from "./crash/workflows.mjs"

const worker = fileURLToPath(new URL("crash/workflows.mjs", import.meta.url))

const { values } = parseArgs({
  options: { kills: { type: "string", default: "300" }, seed: { type: "string", default: "1" } }
})
const kills = Number(values.kills)
const random = randomFrom(Number(values.seed))

/** One kill in ten hits the start of the process, the others its work. */
const startKills = 0.1
const startMs = 700
const workMs = 500
const resumeMs = 200

// ---------------------------------------------------------------------------------------------------------------------
// processes
// ---------------------------------------------------------------------------------------------------------------------

const start = (mode, { database, log }, seed) => {
  const child = spawn(
    process.execPath,
    ["--conditions=@strata/source", "--no-warnings", worker, mode, database, log, String(seed)],
    { stdio: ["ignore", "pipe", "inherit"] }
  )
  const lines = []
  let rest = ""
  let readyAt
  const ready = new Promise((resolve) => {
    child.stdout.setEncoding("utf8").on("data", (text) => {
      const parts = (rest + text).split("\n")
      rest = parts.pop()
      for (const line of parts) {
        if (line === "ready") {
          readyAt = Date.now()
          resolve()
        } else lines.push(line)
      }
    })
    child.on("exit", resolve)
  })
  return { child, lines, ready, readyAt: () => readyAt }
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

const killOnce = async (place, seed) => {
  const { child, lines, ready, readyAt } = start("work", place, seed)
  const closed = once(child, "close")
  if (random() < startKills) {
    await pause(random() * startMs)
  } else {
    await ready
    await pause(50 + random() * workMs)
  }
  child.kill("SIGKILL")
  const [code, signal] = await closed
  if (signal !== "SIGKILL") throw new Error(`the work ended by itself with ${code}`)
  return { started: lines.map(Number), readyAt: readyAt() }
}

const settle = async (place) => {
  const { child } = start("settle", place, 0)
  const [code] = await once(child, "close")
  if (code !== 0) throw new Error(`the last process ended with ${code}`)
}

// ---------------------------------------------------------------------------------------------------------------------
// what is looked at
// ---------------------------------------------------------------------------------------------------------------------

const query = (database, statement, ...parameters) => {
  const connection = new DatabaseSync(database)
  try {
    return connection.prepare(statement).all(...parameters)
  } finally {
    connection.close()
  }
}

/** The completions that are committed, as the log names them. */
const committed = (database) =>
  new Set(
    query(
      database,
      `SELECT r.execution_id AS id, a.attempt, a.name FROM strata_run_activity AS a JOIN strata_run AS r ON r.id = a.run`
    ).map(({ attempt, id, name }) => `${id} ${attempt} ${name}`)
  )

const ranSince = (log, offset) =>
  existsSync(log) ? readFileSync(log, "utf8").slice(offset).split("\n").filter(Boolean) : []

/** What is wrong with the clocks of all runs, in lines. */
const checkClocks = (database) => {
  const wrong = []
  const clocks = new Map()
  const entries = query(
    database,
    `SELECT s.name AS stream, j.type, j.payload, j.recorded_at AS at FROM strata_journal AS j
     JOIN strata_journal_stream AS s ON s.id = j.stream
     WHERE j.type IN ('clock-scheduled', 'clock-completed') ORDER BY j.ordinal`
  )
  for (const { at, payload, stream, type } of entries) {
    const { deadline, name, outcome } = JSON.parse(payload)
    const key = `${stream} ${name}`
    const clock = clocks.get(key)
    if (type === "clock-scheduled") {
      if (clock !== undefined) wrong.push(`${key} was set twice`)
      clocks.set(key, { deadline, completed: false })
    } else if (clock === undefined || clock.completed) {
      wrong.push(`${key} ended ${clock === undefined ? "without being set" : "twice"}`)
    } else {
      clock.completed = true
      if (outcome === "fired" && at < clock.deadline) wrong.push(`${key} fired ${clock.deadline - at} ms early`)
    }
  }
  return wrong
}

/** When the first of the runs that were there before did something, according to the journal. */
const firstResumed = (database, runs, since) => {
  const [row] = query(
    database,
    `SELECT min(j.recorded_at) AS at FROM strata_journal AS j JOIN strata_journal_stream AS s ON s.id = j.stream
     JOIN strata_run AS r ON s.name = 'run/' || r.execution_id
     WHERE r.id <= ? AND j.ordinal > ?`,
    runs,
    since
  )
  return row?.at ?? undefined
}

const heads = (database) => {
  const [{ ordinal }] = query(database, "SELECT ifnull(max(ordinal), 0) AS ordinal FROM strata_journal")
  const [{ run }] = query(database, "SELECT ifnull(max(id), 0) AS run FROM strata_run")
  // Those that were being run when the process was killed, so that there is something to resume at once.
  const [{ busy }] = query(database, "SELECT count(*) AS busy FROM strata_run WHERE status = 'running'")
  return { ordinal, run, busy }
}

const checkResults = (database, started) => {
  const wrong = []
  const rows = query(database, "SELECT execution_id AS id, workflow, payload, status, result FROM strata_run")
  const numbers = new Set()
  for (const { id, payload, result, status, workflow } of rows) {
    const { n } = JSON.parse(payload)
    if (workflow === "Order") numbers.add(n)
    const value = result === null ? undefined : JSON.parse(result).complete?.value
    const right = workflow === "Order" ? expected(n) : String(n)
    if (status !== "completed" || value !== right) wrong.push(`${workflow} ${id} is ${status}: ${result}`)
  }
  for (const n of started) if (!numbers.has(n)) wrong.push(`run ${n} was started and is gone`)
  return { wrong, runs: rows.length }
}

// ---------------------------------------------------------------------------------------------------------------------
// program
// ---------------------------------------------------------------------------------------------------------------------

const folder = mkdtempSync(join(tmpdir(), "strata-crash-"))
try {
  const place = { database: join(folder, "runs.db"), log: join(folder, "log") }
  writeFileSync(place.log, "")
  // A first start makes the tables, so that they can be looked at after every kill.
  await settle(place)
  const wrong = []
  const started = []
  const resumed = []
  let again = 0
  for (let kill = 1; kill <= kills && wrong.length === 0; kill++) {
    const before = {
      done: committed(place.database),
      log: readFileSync(place.log, "utf8").length,
      ...heads(place.database)
    }
    const { readyAt, started: runs } = await killOnce(place, Number(values.seed) * 1000 + kill)
    started.push(...runs)
    for (const line of ranSince(place.log, before.log)) {
      if (before.done.has(line)) wrong.push(`after kill ${kill}: ${line} ran again, although it was committed`)
    }
    for (const line of checkClocks(place.database)) wrong.push(`after kill ${kill}: ${line}`)
    const at = firstResumed(place.database, before.run, before.ordinal)
    if (readyAt !== undefined && before.busy > 0 && at !== undefined) resumed.push(Math.max(at - readyAt, 0))
    again += before.busy
  }
  await settle(place)
  wrong.push(...checkClocks(place.database))
  const { runs, wrong: results } = checkResults(place.database, started)
  wrong.push(...results)
  const sorted = resumed.toSorted((a, b) => a - b)
  const at = (share) => sorted[Math.min(Math.floor(sorted.length * share), sorted.length - 1)] ?? 0
  // Among a few, one that a busy machine held up is no more than that.
  const share = sorted.length >= 100 ? 0.99 : 0.5
  if (at(share) > resumeMs) wrong.push(`resuming took ${at(share)} ms (p${share * 100}), more than ${resumeMs} ms`)
  for (const line of wrong.slice(0, 20)) console.error(line)
  console.log(
    `${kills} kills, ${runs} runs, ${again} of them taken up again; resumed after ${at(0.5)} ms (median), ${at(0.99)} ms (p99), ${at(1)} ms at most, of ${sorted.length}: ` +
      (wrong.length === 0
        ? "every run has its result, nothing that was committed ran again, no clock fired twice or early"
        : `${wrong.length} things wrong`)
  )
  process.exitCode = wrong.length === 0 ? 0 : 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}
