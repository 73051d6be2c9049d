import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"

const script = fileURLToPath(new URL("../../../scripts/crash-actions.mjs", import.meta.url))

describe("a process that is killed while it runs actions", () => {
  it("leaves a whole database and nothing visible without its blobs, and shares everything after a restart", () => {
    const { status, stderr, stdout } = spawnSync(
      process.execPath,
      ["--conditions=@strata/source", "--no-warnings", script, "--kills", "15"],
      { encoding: "utf8" }
    )
    assert.strictEqual(status, 0, `${stdout}${stderr}`)
    assert.match(stdout, /^15 kills/)
  }, 300_000)
})
