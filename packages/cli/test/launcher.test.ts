import { assert, describe, it } from "@effect/vitest"
import { spawn, spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { cpSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { version } from "../src/Version.ts"
import { launcher, programFolder } from "./program.ts"

const start = (launcher: string, args: ReadonlyArray<string>, nodeOptions: ReadonlyArray<string> = []) =>
  spawnSync(process.execPath, [...nodeOptions, launcher, ...args], { encoding: "utf8" })

/** A copy of what is published, laid out as in the repository, so that it can be damaged. */
const withCopy = (body: (copy: { readonly root: string; readonly launcher: string }) => void) => {
  const root = mkdtempSync(join(tmpdir(), "strata-launcher-"))
  try {
    const target = join(root, "packages", "cli")
    cpSync(programFolder, target, { recursive: true })
    body({ root, launcher: join(target, "bin", "strata.js") })
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
}

describe("bin/strata.js", () => {
  it("starts the bundle, without a word on stderr", () => {
    const { status, stderr, stdout } = start(launcher, ["--version"])
    assert.deepStrictEqual({ status, stderr, stdout }, { status: 0, stderr: "", stdout: `strata v${version}\n` })
  })

  it("passes the exit code on", () => {
    assert.strictEqual(start(launcher, ["serch"]).status, 2)
  })

  it("refuses a Node that is too old in one line, before it loads anything", () => {
    const old = `Object.defineProperty(process.versions, "node", { value: "22.18.0" })`
    const { status, stderr } = start(launcher, ["--version"], ["--import", `data:text/javascript,${old}`])
    assert.deepStrictEqual(
      { status, stderr },
      { status: 3, stderr: "strata: needs Node 22.19 or newer, this is 22.18.0\n" }
    )
  })

  it("says what to do when it is not built", () => {
    withCopy(({ launcher, root }) => {
      rmSync(join(root, "packages", "cli", "dist"), { recursive: true })
      const { status, stderr } = start(launcher, ["--version"])
      assert.strictEqual(status, 3)
      assert.match(stderr, /^strata: the program is not built yet: .*npm run bundle\n$/)
    })
  })

  it("works outside of a checkout, and without a place for its compile cache", () => {
    withCopy(({ launcher, root }) => {
      const cache = join(root, "packages", "cli", "dist", "bundle", "cache")
      rmSync(cache, { recursive: true, force: true })
      // A file in its place: as little can be written there as in a folder that is read-only, also by root.
      writeFileSync(cache, "")
      const { status, stderr, stdout } = start(launcher, ["--version"])
      assert.deepStrictEqual({ status, stderr, stdout }, { status: 0, stderr: "", stdout: `strata v${version}\n` })
    })
  })

  it("warns in a checkout where a source has other content than what the bundle was made of", () => {
    withCopy(({ launcher, root }) => {
      mkdirSync(join(root, "scripts"))
      writeFileSync(join(root, "scripts", "bundle.mjs"), "")
      const source = join(root, "packages", "cli", "src", "main.ts")
      const manifest = join(root, "packages", "cli", "dist", "bundle", "manifest.json")
      mkdirSync(join(root, "packages", "cli", "src"))
      const built = Date.now()
      const write = (content: string, mtime: number) => {
        writeFileSync(source, content)
        utimesSync(source, new Date(mtime), new Date(mtime))
      }
      const remember = (digest: string) =>
        writeFileSync(manifest, JSON.stringify({ version, built, sources: { "packages/cli/src/main.ts": digest } }))
      const check = (warns: boolean) => {
        const { status, stderr } = start(launcher, ["--version"])
        const warning = "strata: the program is older than its sources: run npm run bundle\n"
        assert.deepStrictEqual({ status, stderr }, { status: 0, stderr: warns ? warning : "" })
      }
      remember(createHash("sha256").update("as it was").digest("hex"))
      write("as it was", built - 60_000)
      check(false)
      // As a formatter or a checkout leaves it.
      write("as it was", built + 60_000)
      check(false)
      write("changed", built + 60_000)
      check(true)
      rmSync(source)
      check(true)
      // Written while the bundle was made.
      remember("changed")
      write("as it was", built - 60_000)
      check(true)
    })
  })

  it("is silent when the reader of its output has gone", async () => {
    const child = spawn(process.execPath, [launcher, "--completions", "zsh"], { stdio: ["ignore", "pipe", "pipe"] })
    child.stdout.destroy()
    let stderr = ""
    child.stderr.on("data", (data) => (stderr += data))
    const status = await new Promise((resolve) => child.on("close", resolve))
    assert.deepStrictEqual({ status, stderr }, { status: 0, stderr: "" })
  })
})
