// Kills `strata index` at random moments while it works, then lets it finish, and compares the index with one that was
// never killed: by verify, by FTS5's integrity check, row for row, and by what searches find.
//
//   node scripts/crash-index.mjs [--kills 50] [--files 5000] [--seed 1] [--launcher FILE]
//
// A run that ends before its moment has come gives the next one new work: two thirds of the files are written anew, some
// are removed and some added. The same seed gives the same files and the same moments.
import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { fileURLToPath } from "node:url"
import { isDeepStrictEqual, parseArgs } from "node:util"

const { values } = parseArgs({
  options: {
    kills: { type: "string", default: "50" },
    files: { type: "string", default: "5000" },
    seed: { type: "string", default: "1" },
    launcher: { type: "string", default: fileURLToPath(new URL("../packages/cli/bin/strata.js", import.meta.url)) }
  }
})
const kills = Number(values.kills)
const files = Number(values.files)
const { launcher } = values

/** Numbers from 0 to 1, the same for the same seed (mulberry32). */
const randomFrom = (seed) => () => {
  seed = (seed + 0x6d2b79f5) | 0
  let t = Math.imul(seed ^ (seed >>> 15), 1 | seed)
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
  return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
}

const random = randomFrom(Number(values.seed))

// ---------------------------------------------------------------------------------------------------------------------
// files
// ---------------------------------------------------------------------------------------------------------------------

const vocabulary = Array.from({ length: 2000 }, (_, i) => `word${i.toString(36)}`)

const sentence = () =>
  Array.from({ length: 12 }, () => vocabulary[Math.floor(random() ** 2 * vocabulary.length)]).join(" ")

const page = (i, version) => {
  const sections = Array.from(
    { length: 1 + Math.floor(random() * 5) },
    (_, n) => `## Section ${n}\n\n${Array.from({ length: 8 }, sentence).join(". ")}.\n`
  )
  return `# Page ${i}\n\nThis is page${i}x in version${version}x.\n\n${sections.join("\n")}`
}

const isThere = (i, version) => (i + version) % 50 !== 0

/** Brings the tree to a version, in which a third of the files is as it was. */
const writeVersion = (root, version) => {
  for (let i = 0; i < files; i++) {
    const file = join(root, `folder-${i % 40}`, `page-${i}.md`)
    if (!isThere(i, version)) rmSync(file, { force: true })
    else if (version === 0 || !isThere(i, version - 1) || i % 3 !== version % 3) {
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, page(i, version))
    }
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// runs
// ---------------------------------------------------------------------------------------------------------------------

const strata = (folder, args) => {
  const { status, stderr, stdout } = spawnSync(process.execPath, [launcher, args[0], "--json", ...args.slice(1)], {
    cwd: folder,
    encoding: "utf8",
    maxBuffer: 2 ** 30
  })
  const last = stdout.trim().split("\n").at(-1)
  return { status, stderr, result: last === "" ? undefined : JSON.parse(last) }
}

const index = (folder, database) => strata(folder, ["index", "docs", "--database", database])

/** Starts an index run, and kills it after `delay` ms. Tells whether it was still at work. */
const killAfter = async (folder, database, delay) => {
  const child = spawn(process.execPath, [launcher, "index", "docs", "--database", database], {
    cwd: folder,
    stdio: "ignore"
  })
  const timer = setTimeout(() => child.kill("SIGKILL"), delay)
  const [code, signal] = await once(child, "exit")
  clearTimeout(timer)
  if (signal === null && code !== 0) throw new Error(`an index run ended with ${code}`)
  return signal === "SIGKILL"
}

// ---------------------------------------------------------------------------------------------------------------------
// comparison
// ---------------------------------------------------------------------------------------------------------------------

/** All documents and passages, without the numbers that depend on the order in which they were indexed. */
const content = (database) => {
  const db = new DatabaseSync(database)
  const { id } = db.prepare("SELECT id FROM strata_search_generation WHERE state = 'active'").get()
  const fts = `strata_search_fts_${id}`
  db.exec(`INSERT INTO ${fts} (${fts}) VALUES ('integrity-check')`)
  const integrity = db.prepare("PRAGMA integrity_check").all()
  const documents = db
    .prepare(
      "SELECT scope, path, digest, title, passages, skipped FROM strata_search_document WHERE generation = ? ORDER BY scope, path"
    )
    .all(id)
  const passages = db
    .prepare(
      `SELECT d.path, f.rowid & 1048575 AS ordinal, f.title, f.heading, f.body, f.line
      FROM ${fts} AS f JOIN strata_search_document AS d ON d.id = f.rowid >> 20 ORDER BY d.path, ordinal`
    )
    .all()
  const { all } = db.prepare(`SELECT count(*) AS "all" FROM ${fts}`).get()
  const { dirty } = db.prepare("SELECT count(*) AS dirty FROM strata_dirty").get()
  db.close()
  return { integrity, documents, passages, all, dirty }
}

const queries = () => [
  ...Array.from({ length: 8 }, () => vocabulary[Math.floor(random() * vocabulary.length)]),
  ...Array.from({ length: 4 }, () => sentence().split(" ").slice(0, 2).join(" OR ")),
  `page${Math.floor(files / 2)}x`,
  "version0x",
  "section",
  '"this is page"',
  "wordz*"
]

/** What is wrong, in lines; nothing when the index that was killed is as good as the other. */
const compare = (folder, killed, reference) => {
  const wrong = []
  const { result, status } = strata(folder, ["verify", "--database", killed])
  if (status !== 0 || result.ok !== true) wrong.push(`verify: ${JSON.stringify(result)}`)
  const [ours, theirs] = [content(killed), content(reference)]
  if (ours.integrity[0].integrity_check !== "ok") wrong.push(`integrity: ${JSON.stringify(ours.integrity)}`)
  for (const part of ["documents", "passages", "all", "dirty"]) {
    if (!isDeepStrictEqual(ours[part], theirs[part])) wrong.push(`${part} differ`)
  }
  if (ours.all !== ours.passages.length) wrong.push(`${ours.all - ours.passages.length} passages without a document`)
  for (const query of queries()) {
    const [found, expected] = [killed, reference].map(
      (database) => strata(folder, ["search", "--database", database, "--limit", "10000", "--", query]).result
    )
    if (expected?.hits === undefined || !isDeepStrictEqual(found, expected)) wrong.push(`search ${query} differs`)
  }
  return wrong
}

// ---------------------------------------------------------------------------------------------------------------------
// program
// ---------------------------------------------------------------------------------------------------------------------

const main = async (folder) => {
  const root = join(folder, "docs")
  const killed = join(folder, "killed.db")
  let version = 0
  writeVersion(root, version)

  const start = performance.now()
  const whole = index(folder, join(folder, "timing.db"))
  if (whole.status !== 0) throw new Error(`a run that is not killed ends with ${whole.status}: ${whole.stderr}`)
  const duration = performance.now() - start

  let done = 0
  while (done < kills) {
    if (await killAfter(folder, killed, random() * duration)) done++
    else writeVersion(root, ++version)
  }
  const last = index(folder, killed)
  const reference = join(folder, "reference.db")
  const never = index(folder, reference)
  const wrong = compare(folder, killed, reference)
  if (last.status !== 0) wrong.push(`the last run ended with ${last.status}: ${last.stderr}`)
  if (never.status !== 0) wrong.push(`the run that was not killed ended with ${never.status}`)
  for (const line of wrong) console.error(line)
  const { scanned } = never.result
  console.log(
    `${done} kills within ${Math.round(duration)} ms each, ${version + 1} versions of ${files} files, ${scanned} at the end: ` +
      (wrong.length === 0 ? "no difference to an index that was never killed" : `${wrong.length} differences`)
  )
  process.exitCode = wrong.length === 0 ? 0 : 1
}

const folder = mkdtempSync(join(tmpdir(), "strata-crash-"))
try {
  await main(folder)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
