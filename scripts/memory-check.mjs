// Checks that memory does not grow with the work: drains dirty rows through a follower, and indexes generated files with
// `strata index`, each in a process whose heap is bounded, and prints the peaks. Exits with 1 when a process does not get
// through.
//
//   node scripts/memory-check.mjs [--rows 1000000] [--files 100000] [--heap 256] [--launcher FILE]
//
// `--heap` is the bound of the old generation in MiB, Node's `--max-old-space-size`; 0 rows or 0 files leave a part out.
import { spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"

const { values } = parseArgs({
  options: {
    rows: { type: "string", default: "1000000" },
    files: { type: "string", default: "100000" },
    heap: { type: "string", default: "256" },
    launcher: { type: "string", default: fileURLToPath(new URL("../packages/cli/bin/strata.js", import.meta.url)) }
  }
})
const rows = Number(values.rows)
const files = Number(values.files)
const heap = Number(values.heap)

const fileOf = (relative) => fileURLToPath(new URL(relative, import.meta.url))

const mebibytes = (bytes) => Math.round(bytes / 2 ** 20)

/** Runs a program with a bounded heap in `folder`, and prints its peaks. */
const measure = (what, folder, args) => {
  const report = join(folder, "peak.json")
  const { status, signal, stderr } = spawnSync(
    process.execPath,
    [`--max-old-space-size=${heap}`, "--no-warnings", "--import", fileOf("memory-peak.mjs"), ...args],
    { cwd: folder, encoding: "utf8", env: { ...process.env, STRATA_MEMORY_PEAK: report }, maxBuffer: 2 ** 26 }
  )
  if (status !== 0) {
    console.error(`${what}: ended with ${signal ?? status} under a heap of ${heap} MiB\n${stderr.slice(-2000)}`)
    process.exitCode = 1
    return
  }
  const peak = JSON.parse(readFileSync(report, "utf8"))
  console.log(`${what}: peak heap ${mebibytes(peak.heap)} MiB of ${heap}, peak RSS ${mebibytes(peak.rss)} MiB`)
}

/** Pages of some hundred words, a hundred in a folder. */
const writeFiles = (folder) => {
  const words = Array.from({ length: 2000 }, (_, i) => `word${i.toString(36)}`)
  for (let i = 0; i < files; i++) {
    const parent = join(folder, "docs", String(Math.floor(i / 100)))
    if (i % 100 === 0) mkdirSync(parent, { recursive: true })
    const text = Array.from({ length: 200 }, (_, j) => words[(i * 7919 + j * j * 31) % words.length]).join(" ")
    writeFileSync(join(parent, `page-${i}.md`), `# Page ${i}\n\n${text}\n`)
  }
}

const inFolder = (use) => {
  const folder = mkdtempSync(join(tmpdir(), "strata-memory-"))
  try {
    use(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

if (rows > 0) {
  inFolder((folder) =>
    measure(`drain ${rows} rows`, folder, [
      "--conditions=@strata/source",
      fileOf("memory-drain.mjs"),
      join(folder, "queue.db"),
      String(rows)
    ])
  )
}

if (files > 0) {
  inFolder((folder) => {
    writeFiles(folder)
    measure(`index ${files} files`, folder, [values.launcher, "index", "docs", "--database", "memory.db"])
  })
}
