import { assert, describe, it } from "@effect/vitest"
import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import * as fs from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import type { WatchResult } from "../src/Results.ts"
import { launcher, makeFolder } from "./program.ts"

const makeTree = (folder: string) => {
  const strata = (...args: ReadonlyArray<string>) => {
    const { stdout } = spawnSync(process.execPath, [launcher, ...args, "--json"], { cwd: folder, encoding: "utf8" })
    return JSON.parse(stdout.trim().split("\n").at(-1)!)
  }
  return {
    strata,
    write: (path: string, content: string) => {
      fs.mkdirSync(dirname(join(folder, path)), { recursive: true })
      fs.writeFileSync(join(folder, path), content)
    },
    remove: (path: string) => fs.rmSync(join(folder, path), { recursive: true }),
    mkdir: (path: string) => fs.mkdirSync(join(folder, path)),
    move: (from: string, to: string) => fs.renameSync(join(folder, from), join(folder, to)),
    count: (word: string): number => strata("search", word).total
  }
}

/** Fails after 10 seconds in which `check` did not come true. */
const until = async (check: () => boolean) => {
  const deadline = performance.now() + 10_000
  while (!check()) {
    if (performance.now() > deadline) assert.fail("did not come true in 10 seconds")
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** Runs `strata watch` in a folder of its own with these files, and calls `body` once its first report is there. */
const watching = async (
  files: Readonly<Record<string, string>>,
  body: (
    tree: ReturnType<typeof makeTree>,
    reports: () => ReadonlyArray<WatchResult>,
    stderr: () => string
  ) => Promise<void>,
  directories: ReadonlyArray<string> = ["docs"]
) => {
  const folder = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), "strata-watch-")))
  const tree = makeTree(folder)
  for (const [path, content] of Object.entries(files)) tree.write(path, content)
  const child = spawn(process.execPath, [launcher, "watch", ...directories, "--json"], { cwd: folder })
  const exit = once(child, "exit")
  let stdout = ""
  let stderr = ""
  child.stdout.on("data", (chunk) => (stdout += chunk))
  child.stderr.on("data", (chunk) => (stderr += chunk))
  try {
    await until(() => stdout.includes("\n"))
    const lines = () => stdout.trim().split("\n")
    await body(
      tree,
      () => lines().map((line) => JSON.parse(line)),
      () => stderr
    )
    for (const line of lines()) {
      assert.hasAllKeys(JSON.parse(line), ["indexed", "removed", "failed", "failures"])
    }
    assert.notMatch(stderr, /WARN|ERROR/)
  } finally {
    child.kill("SIGINT")
    await exit
    fs.rmSync(folder, { recursive: true, force: true })
  }
}

describe("strata watch", () => {
  it("follows changes of what is ignored", () =>
    watching({ "docs/.gitignore": "later/\n", "docs/a.txt": "alpha", "docs/later/b.txt": "beta" }, async (tree) => {
      assert.deepStrictEqual([tree.count("alpha"), tree.count("beta")], [1, 0])
      tree.write("docs/.gitignore", "a.txt\n")
      await until(() => tree.count("alpha") === 0 && tree.count("beta") === 1)
      // The folder is watched by now.
      tree.write("docs/later/c.txt", "gamma")
      await until(() => tree.count("gamma") === 1)
    }))

  it("keeps the index that a rebuild has put in place", () =>
    watching({ "docs/a.txt": "alpha" }, async (tree) => {
      assert.strictEqual(tree.strata("rebuild").indexed, 1)
      tree.write("docs/b.txt", "beta")
      await until(() => tree.count("beta") === 1)
      assert.strictEqual(tree.count("alpha"), 1)
      assert.deepInclude(tree.strata("status"), { documents: 2, dirty: 0 })
    }))

  it("D7: keeps what it has of a directory that vanishes, and says so", () =>
    watching({ "docs/sub/a.txt": "alpha", "docs/sub/b.txt": "beta" }, async (tree, reports) => {
      tree.remove("docs/sub")
      await until(() => reports().some(({ failures }) => failures[0]?.reason.includes("suddenly empty") === true))
      assert.strictEqual(reports().at(-1)?.failures[0]?.path, "docs")
      assert.deepStrictEqual([tree.count("alpha"), tree.count("beta")], [1, 1])
      tree.write("docs/sub/c.txt", "gamma")
      await until(() => tree.count("gamma") === 1 && tree.count("alpha") === 0)
    }))

  it("follows the directory that takes the place of one that was moved away, or removed", () =>
    watching({ "docs/a.txt": "alpha" }, async (tree) => {
      tree.move("docs", "away")
      tree.write("docs/b.txt", "beta")
      await until(() => tree.count("alpha") === 0 && tree.count("beta") === 1)
      tree.write("docs/c.txt", "gamma")
      await until(() => tree.count("gamma") === 1)
      tree.remove("docs")
      tree.write("docs/d.txt", "delta")
      await until(() => tree.count("gamma") === 0 && tree.count("delta") === 1)
      tree.write("docs/e.txt", "epsilon")
      await until(() => tree.count("epsilon") === 1)
      tree.write("away/f.txt", "zeta")
      tree.write("docs/g.txt", "eta")
      await until(() => tree.count("eta") === 1)
      assert.strictEqual(tree.count("zeta"), 0)
    }))

  it("D7: keeps what it has of a directory that is gone, says so once, and goes on with it when it is back", () =>
    watching(
      { "docs/.gitignore": "*.log\n", "docs/a.txt": "alpha", "more/b.txt": "beta" },
      async (tree, reports, stderr) => {
        const said = () => stderr().split("/docs does not exist\n").length - 1
        tree.move("docs", "away")
        await until(() => said() === 1)
        assert.strictEqual(reports().at(-1)?.failures[0]?.path, "docs")
        tree.write("more/c.txt", "gamma")
        await until(() => tree.count("gamma") === 1)
        assert.deepStrictEqual([tree.count("alpha"), tree.count("beta")], [1, 1])
        tree.mkdir("docs")
        await until(() => stderr().includes("/docs is suddenly empty"))
        assert.strictEqual(tree.count("alpha"), 1)
        tree.write("docs/d.txt", "delta")
        await until(() => tree.count("alpha") === 0 && tree.count("delta") === 1)
        assert.strictEqual(said(), 1)
        tree.remove("docs")
        await until(() => said() === 2)
        tree.move("away", "docs")
        await until(() => tree.count("alpha") === 1 && tree.count("delta") === 0)
        tree.write("docs/e.txt", "epsilon")
        await until(() => tree.count("epsilon") === 1)
        assert.strictEqual(said(), 2)
      },
      ["docs", "more"]
    ))

  it("D7: does not start when a directory that was indexed by itself is gone from the one that is watched", () => {
    const folder = makeFolder()
    try {
      folder.write("docs/a.txt", "alpha")
      folder.write("docs/disk/b.txt", "beta")
      assert.strictEqual(folder.run(["index", "docs/disk"]).code, 0)
      fs.rmSync(join(folder.path, "docs/disk"), { recursive: true })
      const options = { cwd: folder.path, encoding: "utf8", timeout: 20_000 } as const
      const { status, stderr } = spawnSync(process.execPath, [launcher, "watch", "docs"], options)
      const disk = join(folder.path, "docs/disk")
      const reason = `${disk} was indexed and does not exist: nothing was removed from the index`
      assert.deepStrictEqual([status, stderr], [3, `watching docs\nstrata: ${reason}\n`])
      assert.strictEqual(folder.json(["search", "beta"])["total"], 1)
    } finally {
      folder.remove()
    }
  })

  it("reports a failure once, until it is mended, and says nothing before there is something to say", async () => {
    const folder = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), "strata-watch-")))
    const tree = makeTree(folder)
    tree.write("docs/a.txt", "alpha")
    tree.strata("index", "docs")
    const child = spawn(process.execPath, [launcher, "watch", "docs"], { cwd: folder })
    const exit = once(child, "exit")
    let stdout = ""
    let stderr = ""
    child.stdout.on("data", (chunk) => (stdout += chunk))
    child.stderr.on("data", (chunk) => (stderr += chunk))
    const bad = Buffer.concat([Buffer.from(join(folder, "docs/bad")), Buffer.from([0xff])])
    try {
      await until(() => stderr.includes("\n"))
      assert.strictEqual(stderr, "watching docs\n")
      // No event comes for such a name: it is found beside the other file.
      fs.writeFileSync(bad, "x")
      const failure = "docs/bad\\xff: the name is not UTF-8\n"
      for (const [i, name] of ["b", "c", "d"].entries()) {
        tree.write(`docs/${name}.txt`, name)
        await until(() => stdout.split("1 file indexed").length === i + 2)
        assert.strictEqual(stderr, `watching docs\n${failure}`)
      }
      fs.rmSync(bad)
      tree.write("docs/e.txt", "e")
      await until(() => stdout.split("1 file indexed").length === 5)
      fs.writeFileSync(bad, "x")
      tree.write("docs/f.txt", "f")
      await until(() => stderr === `watching docs\n${failure}${failure}`)
      assert.isFalse(stdout.startsWith("0 files indexed, 0 removed, 0 failed"))
    } finally {
      child.kill("SIGINT")
      await exit
      fs.rmSync(folder, { recursive: true, force: true })
    }
  })
})
