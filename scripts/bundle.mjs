// Bundles the program `strata` into packages/cli/dist/bundle, from sources, so that it starts quickly.
//
// What this script imports is looked up at run time: where development dependencies are absent it says so and succeeds,
// since it also runs as the `prepare` script of every install.
import { readFile, rename, rm, writeFile } from "node:fs/promises"
import { dirname, join, relative } from "node:path"
import { fileURLToPath } from "node:url"

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const cli = join(root, "packages", "cli")
const target = join(cli, "dist", "bundle")

/** The bundler, or undefined where it is not installed. */
const loadBundler = async () => {
  try {
    return await import("rolldown")
  } catch (error) {
    if (error.code === "ERR_MODULE_NOT_FOUND") return undefined
    throw error
  }
}

/** Sources of this repository that went into the bundle, relative to the root: the launcher notices when one is newer. */
const ownSources = (output) =>
  output
    .flatMap((chunk) => (chunk.type === "chunk" ? chunk.moduleIds : []))
    .filter((id) => id.startsWith(root) && !id.includes("node_modules"))
    .map((id) => relative(root, id))
    .toSorted()

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

const bundle = async ({ rolldown }) => {
  // Built beside the old bundle and then put in its place, so that a program that starts meanwhile finds a whole one.
  const staging = `${target}.${process.pid}`
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
    await writeFile(join(staging, "manifest.json"), JSON.stringify({ version, sources: ownSources(output) }))
    await rm(target, { recursive: true, force: true })
    await rename(staging, target)
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
