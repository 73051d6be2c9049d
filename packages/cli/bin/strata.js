#!/usr/bin/env node
// Starts the bundled program. Kept to what any Node can parse, so that one which is too old gets a clear line.
import fs from "node:fs"
import module from "node:module"
import { fileURLToPath } from "node:url"

const bundle = new URL("../dist/bundle/", import.meta.url)
const program = new URL("main.js", bundle)

const refuse = (message) => {
  process.stderr.write(`strata: ${message}\n`)
  process.exitCode = 3
}

const nodeIsTooOld = () => {
  const [major, minor] = process.versions.node.split(".").map(Number)
  return major < 22 || (major === 22 && minor < 19)
}

/**
 * In a checkout: whether a source that went into the bundle has other content since. Times only tell which to read: a
 * checkout, or a formatter, writes files that stay the same. A published package has no sources.
 */
const bundleIsStale = () => {
  const root = new URL("../../../", import.meta.url)
  if (!fs.existsSync(new URL("scripts/bundle.mjs", root))) return false
  const { built, sources } = JSON.parse(fs.readFileSync(new URL("manifest.json", bundle), "utf8"))
  return Object.entries(sources).some(([source, digest]) => {
    const file = new URL(source, root)
    const stat = fs.statSync(file, { throwIfNoEntry: false })
    if (stat === undefined || digest === "changed") return true
    return stat.mtimeMs > built && sha256(fs.readFileSync(file)) !== digest
  })
}

/** Loaded only where a source is newer, as it takes its time. */
const sha256 = (content) => process.getBuiltinModule("node:crypto").createHash("sha256").update(content).digest("hex")

/** Compiled code is kept with the bundle it belongs to or, where that cannot be written, in the temporary directory. */
const enableCompileCache = () => {
  const { status } = module.enableCompileCache(fileURLToPath(new URL("cache", bundle)))
  if (status === module.constants.compileCacheStatus.FAILED) module.enableCompileCache()
}

/** Node 22 calls `node:sqlite` experimental, on stderr, at every start. */
const silenceSqliteWarning = () => {
  const emitWarning = process.emitWarning
  process.emitWarning = (warning, ...rest) => {
    const type = typeof rest[0] === "object" ? rest[0].type : rest[0]
    if (type !== "ExperimentalWarning" || !String(warning).includes("SQLite")) {
      emitWarning.call(process, warning, ...rest)
    }
  }
}

if (nodeIsTooOld()) {
  refuse(`needs Node 22.19 or newer, this is ${process.versions.node}`)
} else if (!fs.existsSync(program)) {
  refuse("the program is not built yet: run npm ci or, in its repository, npm run bundle")
} else {
  if (bundleIsStale()) {
    process.stderr.write("strata: the program is older than its sources: run npm run bundle\n")
  }
  silenceSqliteWarning()
  enableCompileCache()
  await import(program.href)
}
