// Kills `strata index` with SIGKILL at random moments, lets one run go to its end, and compares what it left with what a
// run that was never killed leaves: verify, SQLite's and FTS5's integrity checks, and the results of searches.
//
//   node scripts/crash-index.mjs [--kills N] [--files N] [--seed N]
import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { setTimeout as sleep } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"

const { values } = parseArgs({
  options: {
    kills: { type: "string", default: "50" },
    files: { type: "string", default: "5000" },
    seed: { type: "string", default: "1" }
  }
})
const kills = Number(values.kills)
const files = Number(values.files)

const launcher = fileURLToPath(new URL("../packages/cli/bin/strata.js", import.meta.url))

/** mulberry32, public domain: the same moments and words for the same seed. */
const random = (() => {
  let state = Number(values.seed)
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
})()

const words = Array.from({ length: 400 }, (_, i) => `word${i}`)
const pick = () => words[Math.floor(random() * words.length)]

const makeTree = (folder) => {
  for (let i = 0; i < files; i++) {
    const directory = join(folder, "docs", `d${i % 100}`)
    mkdirSync(directory, { recursive: true })
    const text = Array.from({ length: 60 + Math.floor(random() * 200) }, pick).join(" ")
    writeFileSync(join(directory, `file-${i}.md`), `# File ${i}\n\nunique${i} ${text}\n`)
  }
}

const strata = (folder, ...args) => {
  const { status, stderr, stdout } = spawnSync(process.execPath, [launcher, ...args, "--json"], {
    cwd: folder,
    encoding: "utf8",
    maxBuffer: 1 << 28
  })
  if (stdout === "") throw new Error(`strata ${args.join(" ")} printed nothing: ${stderr}`)
  return { status, result: JSON.parse(stdout.trim().split("\n").at(-1)) }
}

/** Everything a search says but for the scores, which depend on the order of insertion in their last digits. */
const search = (folder, query) => {
  const { result } = strata(folder, "search", query, "--limit", "10000")
  return JSON.stringify([result.total, result.hits.map(({ heading, line, path }) => [path, line, heading]).toSorted()])
}

const problems = []
const expect = (what, holds) => {
  if (!holds) problems.push(what)
}

const folder = mkdtempSync(join(tmpdir(), "strata-crash-"))
try {
  makeTree(folder)
  const begin = performance.now()
  const whole = strata(folder, "index", "docs", "--database", "whole.db")
  const startup = performance.now() - begin - whole.result.elapsedMs
  expect("the run that was not killed indexes everything", whole.result.indexed === files)

  let resumed = 0
  for (let kill = 0; kill < kills; kill++) {
    // Within the first sixth of the work, so that there is work left for the later ones too.
    const moment = startup + (random() * whole.result.elapsedMs) / 6
    const child = spawn(process.execPath, [launcher, "index", "docs"], { cwd: folder, stdio: "ignore" })
    const exit = once(child, "exit")
    await Promise.race([sleep(moment), exit])
    child.kill("SIGKILL")
    await exit
    if (child.signalCode === "SIGKILL") resumed++
  }

  const last = strata(folder, "index", "docs")
  expect("the last run fails nothing", last.status === 0 && last.result.failed === 0)
  const verified = strata(folder, "verify")
  expect("verify is clean", verified.result.ok === true)
  const database = new DatabaseSync(join(folder, ".strata", "strata.db"))
  expect("the database is intact", database.prepare("PRAGMA integrity_check").get().integrity_check === "ok")
  database.exec("INSERT INTO strata_search_fts_1 (strata_search_fts_1) VALUES ('integrity-check')")
  expect("nothing is dirty", database.prepare("SELECT count(*) AS n FROM strata_dirty").get().n === 0)
  database.close()
  for (const query of ["word1", "word2 word3", '"word4 word5"', "word39*", "file -word7", "unique4321", "unique17"]) {
    const expected = strata(folder, "search", query, "--limit", "10000", "--database", "whole.db").result
    const wholeResult = JSON.stringify([
      expected.total,
      expected.hits.map(({ heading, line, path }) => [path, line, heading]).toSorted()
    ])
    expect(`the search for ${query} finds the same`, search(folder, query) === wholeResult)
  }
  console.log(
    JSON.stringify({ files, kills: resumed, lastRunIndexed: last.result.indexed, ok: problems.length === 0, problems })
  )
} finally {
  rmSync(folder, { recursive: true, force: true })
}
process.exitCode = problems.length === 0 ? 0 : 1
