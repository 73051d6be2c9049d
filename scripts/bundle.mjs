// Bundles the program `strata` from sources, so that it starts quickly.
//
//   node scripts/bundle.mjs [FOLDER]     default: packages/cli/dist/bundle
//
// What this script imports is looked up at run time: where development dependencies are absent it says so and succeeds,
// since it also runs as the `prepare` script of every install.
import { createHash } from "node:crypto"
import { readFile, rename, rm, stat, writeFile } from "node:fs/promises"
import { dirname, join, relative, resolve } from "node:path"
import { fileURLToPath } from "node:url"

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const cli = join(root, "packages", "cli")
const target = resolve(process.argv[2] ?? join(cli, "dist", "bundle"))

/** The bundler, or undefined where it is not installed. */
const loadBundler = async () => {
  try {
    return await import("rolldown")
  } catch (error) {
    if (error.code === "ERR_MODULE_NOT_FOUND") return undefined
    throw error
  }
}

/**
 * Sources of this repository that went into the bundle, by their path from the root, with their digests, by which the
 * launcher notices when one has changed. One that was written while the bundle was made may have changed already.
 */
const ownSources = async (output, begin) => {
  const files = output
    .flatMap((chunk) => (chunk.type === "chunk" ? chunk.moduleIds : []))
    .filter((id) => id.startsWith(root) && !id.includes("node_modules"))
    .toSorted()
  const entries = await Promise.all(
    files.map(async (file) => {
      const digest = createHash("sha256")
        .update(await readFile(file))
        .digest("hex")
      const { mtimeMs } = await stat(file)
      return [relative(root, file), mtimeMs > begin ? "changed" : digest]
    })
  )
  return Object.fromEntries(entries)
}

/**
 * Effect's help output builds an `Intl.Segmenter` as it is loaded, which takes a fifth of the start of a search. Here
 * it is built when it is first used.
 */
const lazySegmenter = {
  name: "lazy-segmenter",
  transform: {
    filter: { id: /\/effect\/dist\/cli\/CliOutput\.js$/ },
    handler(code) {
      const eager = /new Intl\.Segmenter\(([^()]*)\)/
      if (!eager.test(code)) this.warn("Effect builds no Intl.Segmenter any more: lazySegmenter can go")
      return code.replace(
        eager,
        (construct) => `((segmenter) => ({ segment: (text) => (segmenter ??= ${construct}).segment(text) }))()`
      )
    }
  }
}

/** Two renames, so that there is hardly a moment without a bundle. */
const replace = async (staging) => {
  const old = `${staging}.old`
  await rename(target, old).catch((error) => {
    if (error.code !== "ENOENT") throw error
  })
  await rename(staging, target)
  await rm(old, { recursive: true, force: true })
}

const bundle = async ({ rolldown }) => {
  // Built beside the old bundle and then put in its place, so that a program that starts meanwhile finds a whole one.
  const staging = `${target}.${process.pid}`
  const begin = Date.now()
  const build = await rolldown({
    input: { main: join(cli, "src", "main.ts") },
    platform: "node",
    resolve: { conditionNames: ["@strata/source", "node", "import", "default"] },
    plugins: [lazySegmenter],
    onLog: (level, log, handler) => handler(level === "warn" ? "error" : level, log)
  })
  try {
    const { output } = await build.write({
      dir: staging,
      format: "esm",
      minify: true,
      comments: { legal: true, annotation: false, jsdoc: false },
      entryFileNames: "[name].js",
      chunkFileNames: "[name]-[hash].js"
    })
    const { version } = JSON.parse(await readFile(join(cli, "package.json"), "utf8"))
    const sources = await ownSources(output, begin)
    await writeFile(join(staging, "manifest.json"), JSON.stringify({ version, built: begin, sources }))
    await replace(staging)
    return output.reduce((bytes, file) => bytes + (file.type === "chunk" ? Buffer.byteLength(file.code) : 0), 0)
  } finally {
    await build.close()
    await rm(staging, { recursive: true, force: true })
  }
}

const bundler = await loadBundler()
if (bundler === undefined) {
  console.log("bundle: skipped, as rolldown is not installed (a development dependency)")
} else {
  const bytes = await bundle(bundler)
  console.log(`bundle: ${relative(root, target)}, ${Math.round(bytes / 1024)} KiB`)
}
