import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { ExitCode } from "../src/ExitCode.ts"

const root = fileURLToPath(new URL("../../..", import.meta.url))

const readme = fs.readFileSync(join(root, "README.md"), "utf8")

describe("README.md", () => {
  it("has a program that runs as it stands", () => {
    const folder = fs.mkdtempSync(join(tmpdir(), "strata-readme-"))
    try {
      const [, code] = /```ts\n(.*?)```/s.exec(readme)!
      fs.writeFileSync(join(folder, "notes.ts"), code!)
      fs.writeFileSync(join(folder, "package.json"), '{ "type": "module" }')
      fs.symlinkSync(join(root, "node_modules"), join(folder, "node_modules"))
      const { stderr, stdout } = spawnSync(
        process.execPath,
        ["--conditions=@strata/source", "--no-warnings", "notes.ts"],
        { cwd: folder, encoding: "utf8" }
      )
      assert.deepStrictEqual({ stderr, stdout }, { stderr: "", stdout: "[ '#work' ]\n" })
    } finally {
      fs.rmSync(folder, { recursive: true, force: true })
    }
  })

  it("lists every exit code", () => {
    const listed = [...readme.matchAll(/^\| ([\d, ]+?) +\|/gm)].flatMap(([, codes]) => codes!.split(", ").map(Number))
    assert.deepStrictEqual(listed, Object.values(ExitCode))
  })
})
